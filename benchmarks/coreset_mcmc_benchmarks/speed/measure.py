"""A contestant against the clock, in a process of its own; its draws are judged afterwards.

What judges is loaded only then, so that a contestant pays for everything that it needs and has no memory that it does
not need.
"""

from __future__ import annotations

import importlib
import resource
from collections.abc import Callable
from typing import Any

from coreset_mcmc_benchmarks.speed.clock import timed
from coreset_mcmc_benchmarks.speed.effort import FULL, QUICK, Effort
from coreset_mcmc_benchmarks.speed.memory import peak_memory
from coreset_mcmc_benchmarks.speed.outcome import Outcome
from coreset_mcmc_benchmarks.speed.sizes import Data

Run = Callable[[str, Data, Effort, int], Outcome]


def runner(place: str) -> Run:
    """A function by ``module:function`` within this package."""
    module, _, function = place.partition(":")
    run: Run = getattr(importlib.import_module(f"coreset_mcmc_benchmarks.speed.{module}"), function)
    return run


def make_reference(task: dict[str, Any], data: Data, import_seconds: float) -> dict[str, Any]:
    """Make the reference of a problem, so that contestants only read it."""
    del import_seconds
    from coreset_mcmc_benchmarks.speed.judging import reference_of  # noqa: PLC0415

    made = reference_of(task, data)
    return {} if made is None else made.checks


def measure(task: dict[str, Any], data: Data, import_seconds: float) -> dict[str, Any]:
    """Run a contestant and judge its draws; the clock stands still while it is judged."""
    run = runner(task["run"])
    with peak_memory(task["has_workers"]) as memory, timed() as whole:
        outcome = run(task["kind"], data, QUICK if task["quick"] else FULL, task["seed"])
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    from coreset_mcmc_benchmarks.paper.measure import hardware  # noqa: PLC0415
    from coreset_mcmc_benchmarks.speed.judging import judge, versions  # noqa: PLC0415 - not on the clock

    size = len(next(iter(data.values())))
    seconds = import_seconds + whole.seconds - outcome.free_seconds
    row = {
        **{name: task[name] for name in ("problem", "contestant", "seed")},
        "rows": size,
        "coreset_size": outcome.coreset_size or "",
        "import_seconds": import_seconds,
        "compile_seconds": whole.compile_seconds if outcome.compile_seconds is None else outcome.compile_seconds,
        "training_seconds": outcome.training_seconds,
        "training_seconds_cold": outcome.training_seconds + outcome.training_compile_seconds,
        "sampling_seconds": outcome.sampling_seconds,
        "seconds": seconds,
        "processor_seconds": sum(usage.ru_utime + usage.ru_stime for usage in used),
        "evaluations": outcome.evaluations,
        "passes": outcome.evaluations / size,
        "peak_megabytes": memory.megabytes,
        "kl_estimate": outcome.kl_estimate,
        "note": outcome.note,
        "warnings": outcome.warnings[:300],
        "versions": versions(),
        "hardware": hardware(),
    }
    return row | judge(task, data, outcome, seconds)
