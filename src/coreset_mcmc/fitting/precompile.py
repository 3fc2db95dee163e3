"""Programs compiled before they are needed: those of training, of sampling and of the final check, beside each other.

XLA compiles without Python's lock. None of it changes a number of the result; a program that cannot be compiled here
is compiled again, and the trouble reported, where it is needed. The model's functions are called in the caller's
thread only: each program is traced there and handed over.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

import numpy as np

from coreset_mcmc.driver.compiled import trace_ahead
from coreset_mcmc.methods.contract import Method
from coreset_mcmc.posterior.problem import Problem

MANY_ROWS = 3_000_000
"""From here on a few passes over the rows take longer than compiling the next program."""

NUM_WORKERS = 2
"""Programs compiled at the same time."""


class Preparation:
    """What a fit will need, made ready from the first phase of training on.

    Passes over very many rows go on while later programs are compiled. With fewer rows training is over sooner than
    that and would only fight for the cores, so it waits for everything.
    """

    def __init__(self, method: Method, problem: Problem, num_chains: int) -> None:
        self._method, self._problem, self._num_chains = method, problem, num_chains
        self._parts: list[tuple[int | None, Future[None]]] = []
        """Programs by the phase of training that needs them; None if a later stage does."""
        self._pool: ThreadPoolExecutor | None = None

    def before_phase(self, phase: int | None) -> None:
        """Begin if this is the first phase; return when its programs are ready."""
        if self._pool is None:
            self._begin()
        if phase is not None and self._problem.data.size >= MANY_ROWS:
            for needed_in, part in self._parts:
                if needed_in == phase:
                    part.result()
        else:
            self.wait_for_all()

    def wait_for_all(self) -> None:
        """So that nothing is compiled twice."""
        for _, part in self._parts:
            part.result()
        self.give_up()

    def give_up(self) -> None:
        """Begin nothing more; what is being compiled goes on."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    def _begin(self) -> None:
        """Trace and hand over, in the order of need; meanwhile ArviZ's statistics are imported.

        The sampler is put together first: its small programs would wait behind the large ones.
        """
        method, problem = self._method, self._problem
        trained = method.expected_sampler(problem, self._num_chains)
        self._pool = ThreadPoolExecutor(NUM_WORKERS, thread_name_prefix="coreset-mcmc-ahead")
        for phase, work in method.ahead(problem):
            self._parts.append((phase, self._pool.submit(_quietly, work)))
        if trained is not None:
            sampling = trace_ahead(trained.sampler, trained.problem)
            self._parts.append((None, self._pool.submit(_quietly, sampling)))
        _import_statistics()


def _import_statistics() -> None:
    """And the array libraries that xarray looks for when it makes its first array."""
    for name in ("arviz_stats", "arviz_base"):
        importlib.import_module(name)
    importlib.import_module("xarray").DataArray(np.zeros(1))


def _quietly(work: Callable[[], None]) -> None:
    with suppress(Exception):
        work()
