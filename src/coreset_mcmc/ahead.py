"""Programs compiled before they are needed: phases of training beside each other, sampling while training runs.

XLA compiles without Python's lock. None of it changes a number of the result; whatever goes wrong here goes wrong
again, and is reported, where it is needed. The model's functions are called in the caller's thread only: each program
is traced there and handed over.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import jax

from coreset_mcmc.chunks import expected_phases, first_state, trace_ahead
from coreset_mcmc.method import Method
from coreset_mcmc.problem import Problem

NUM_WORKERS = 2
"""Programs compiled at the same time."""


class Preparation:
    """What is being made ready; wait for a part of it before it is used, so that nothing is compiled twice."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(NUM_WORKERS, thread_name_prefix="coreset-mcmc-ahead")
        self._parts: dict[Any, Future[None]] = {}

    def add(self, part: Any, work: Callable[[], Any]) -> None:
        """Begin as soon as a worker is free."""
        self._parts[part] = self._pool.submit(_quietly, work)

    def wait(self, part: Any) -> None:
        """Return when this part is over, or at once if there is no such part."""
        if part in self._parts:
            self._parts[part].result()

    def wait_for_all(self) -> None:
        for part in self._parts:
            self.wait(part)
        self._pool.shutdown()


def _quietly(work: Callable[[], Any]) -> None:
    with suppress(Exception):
        work()


def prepare(method: Method, problem: Problem, num_chains: int) -> Preparation:
    """Start preparing the phases of training, each a part with its number, and all that comes after it.

    The small programs that are needed soon come first, here: they would wait behind the large ones. While those are
    compiled, ArviZ's statistics are imported.
    """
    first_state(method, problem, jax.random.split(jax.random.key(0))[0])
    expected: Any = getattr(method, "expected_sampler", None)
    trained = expected(problem, num_chains) if expected is not None else None
    preparation = Preparation()
    for phase in expected_phases(method, problem):
        preparation.add(phase, trace_ahead(method, problem, phase))
    if trained is not None:
        preparation.add("sampling", trace_ahead(trained.sampler, trained.problem))
    importlib.import_module("arviz_stats")
    return preparation
