"""What the driver can run."""

from __future__ import annotations

from typing import Any, Protocol

from coreset_mcmc.core.types import Key


class Steps(Protocol):
    """What the driver can run: a start and a step, pure functions of their arguments.

    The state has a boolean ``done``. The info has ``num_evaluations``, the number of log-likelihoods of single rows
    that the step evaluated (a gradient of one counts as one), and ``status``, see :mod:`coreset_mcmc.core.status`.
    """

    name: str

    # A method may say ``takes_few_steps = True``: then the driver rather compiles fast than runs fast. One whose steps
    # differ in kind may declare ``expected_phases(problem)``, numbers in order, with ``state.phase`` the number of the
    # next step's and ``step_in(phase, key, state, problem)`` a step of that phase: each is then compiled on its own.

    def init(self, key: Key, problem: Any) -> Any: ...

    def step(self, key: Key, state: Any, problem: Any) -> tuple[Any, Any]: ...

    def init_evaluations(self, problem: Any) -> int:
        """How many log-likelihoods of single rows ``init`` evaluates."""

    def describe(self, info: Any) -> str:
        """A live line for the progress bar, from the info of the latest chunk."""
