"""What the driver can run: anything that starts somewhere and takes steps.

The driver knows these names and no others, so progress bars, checkpoints, timing and counts of evaluations are the
same for whatever runs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import jax

from coreset_mcmc.core.types import Key


class Steps(ABC):
    """A start and a step, pure functions of their arguments; the rest has defaults.

    The state has a boolean ``done``. The info has ``num_evaluations``, the number of log-likelihoods of single rows
    that the step evaluated (a gradient of one counts as one), and ``status``, see :mod:`coreset_mcmc.core.status`.

    Steps that differ in kind, first a search and then rounds of sampling, say, may be divided into numbered phases.
    Each is then a compiled program of its own: whoever has phases implements the last three hooks.
    """

    name: ClassVar[str]

    takes_few_steps: ClassVar[bool] = False
    """Whether the driver should rather compile fast than run fast."""

    on_host: ClassVar[bool] = False
    """Whether ``init`` and ``step`` are called as they are, for they pass over rows that no compiled program holds."""

    @abstractmethod
    def init(self, key: Key, problem: Any) -> Any:
        """The state before the first step."""

    @abstractmethod
    def step(self, key: Key, state: Any, problem: Any) -> tuple[Any, Any]:
        """The next state, and the info of this step."""

    def init_evaluations(self, problem: Any) -> int:
        """How many log-likelihoods of single rows ``init`` evaluates."""
        del problem
        return 0

    def describe(self, info: Any) -> str:
        """A live line for the progress bar, from the info of the latest chunk, with a leading step axis."""
        del info
        return ""

    def phase_of(self, state: Any) -> jax.Array | None:
        """The number of the phase to which the next step belongs; None without phases."""
        del state
        return None

    def expected_phases(self, problem: Any) -> tuple[int, ...]:
        """The phases that a run most likely goes through, in their order: worth compiling before they are needed."""
        del problem
        return ()

    def step_in(self, phase: int, key: Key, state: Any, problem: Any) -> tuple[Any, Any]:
        """A step of which the phase is known beforehand."""
        del phase
        return self.step(key, state, problem)
