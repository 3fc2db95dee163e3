"""What sampling and its diagnostics will need, made ready on another core while training compiles and runs.

XLA compiles without Python's lock, and importing ArviZ's statistics takes a second. Neither changes a number of the
result; whatever goes wrong here goes wrong again, and is reported, where it is needed. The model's functions are called
in the caller's thread only.
"""

from __future__ import annotations

import importlib
import threading
from contextlib import suppress
from typing import Any

from coreset_mcmc.method import Method
from coreset_mcmc.problem import Problem
from coreset_mcmc.run import trace_ahead


def prepare(method: Method, problem: Problem, num_chains: int) -> threading.Thread:
    """Start preparing; join the thread before sampling, so that nothing is compiled twice."""
    expected: Any = getattr(method, "expected_sampler", None)
    trained = expected(problem, num_chains) if expected is not None else None
    compile_sampler = trace_ahead(trained.sampler, trained.problem) if trained is not None else None

    def work() -> None:
        with suppress(Exception):
            if compile_sampler is not None:
                compile_sampler()
        with suppress(Exception):
            importlib.import_module("arviz_stats")

    thread = threading.Thread(target=work, name="coreset-mcmc-ahead", daemon=True)
    thread.start()
    return thread
