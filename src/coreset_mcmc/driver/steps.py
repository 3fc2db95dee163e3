"""What the driver can run: anything that starts somewhere and takes steps.

The driver knows these names and no others, so progress bars, checkpoints, timing and counts of evaluations are the
same for whatever runs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from coreset_mcmc.core.types import Key


class Steps(ABC):
    """A start and a step, pure functions of their arguments; the rest has defaults.

    The state has a boolean ``done``. The info has ``num_evaluations``, the number of log-likelihoods of single rows
    that the step evaluated (a gradient of one counts as one), and ``status``, see :mod:`coreset_mcmc.core.status`.

    Steps on the host may differ in kind, first a search and then rounds of sampling, say: numbered phases, each with
    programs of its own.
    """

    name: ClassVar[str]

    takes_few_steps: ClassVar[bool] = False
    """Whether the driver should rather compile fast than run fast."""

    on_host: ClassVar[bool] = False
    """Whether steps are Python that calls compiled programs of its own, as between passes over rows that are not in
    memory. States and infos are pytrees of NumPy arrays then, and ``problem`` may be any object. Otherwise the driver
    compiles many steps into one program.
    """

    @abstractmethod
    def init(self, key: Key, problem: Any) -> Any:
        """The state before the first step."""

    @abstractmethod
    def step(self, key: Key, state: Any, problem: Any) -> tuple[Any, Any]:
        """The next state, and the info of this step."""

    def blank_info(self, problem: Any) -> Any:
        """Something of the structure, shapes and types of an info, for steps on the host."""
        raise NotImplementedError(f"{type(self).__name__}.blank_info")

    def ahead(self, problem: Any) -> Iterator[tuple[int | None, Callable[[], None]]]:
        """For steps on the host: by phase, what compiles their programs, in any thread, in the order of need.

        Without a phase: what is needed after the last step.
        """
        del problem
        yield from ()

    def init_evaluations(self, problem: Any) -> int:
        """How many log-likelihoods of single rows ``init`` evaluates."""
        del problem
        return 0

    def describe(self, info: Any) -> str:
        """A live line for the progress bar, from the info of the latest chunk, with a leading step axis."""
        del info
        return ""

    def phase_of(self, state: Any) -> int | None:
        """The number of the phase to which the next step on the host belongs; None without phases."""
        del state
        return None
