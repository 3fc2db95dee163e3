"""Spreads jobs over processes, each bound to one core so that its timings mean something."""

from __future__ import annotations

import multiprocessing
import os
import queue
import traceback
from collections.abc import Iterator
from typing import Any, NamedTuple

from coreset_mcmc.errors import RunError
from coreset_mcmc.experiments.jobs import Job
from coreset_mcmc.experiments.measure import Setup

PATIENCE = 5.0
"""Seconds between looks whether the workers are still alive."""


class Outcome(NamedTuple):
    """What a worker sends back."""

    job: Job | str
    """The job, or the name of the experiment whose reference is ready."""
    row: dict[str, Any]
    points: list[dict[str, Any]]
    error: str | None = None


def available_cores() -> list[int]:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _work(core: int | None, setup: Setup, tasks: Any, outcomes: Any) -> None:
    if core is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {core})
    from coreset_mcmc.experiments.measure import measure, reference_of  # noqa: PLC0415 - JAX counts cores when it loads

    while (task := tasks.get()) is not None:
        try:
            if isinstance(task, str):
                checks = reference_of(task, setup).checks
                outcomes.put(Outcome(task, checks, []))
            else:
                outcomes.put(Outcome(task, *measure(task, setup)))
        except Exception:
            outcomes.put(Outcome(task, {}, [], traceback.format_exc()))


def spread(tasks: list[Job | str], setup: Setup, num_workers: int) -> Iterator[Outcome]:
    """Outcomes in the order in which they come; leaving the loop ends the workers."""
    context = multiprocessing.get_context("spawn")
    waiting, outcomes = context.Queue(), context.Queue()
    for task in tasks:
        waiting.put(task)
    cores: list[int | None] = [*available_cores()]
    count = min(num_workers, len(tasks))
    processes = []
    for number in range(count):
        waiting.put(None)
        core = cores[number % len(cores)]
        process = context.Process(target=_work, args=(core, setup, waiting, outcomes), daemon=True)
        process.start()
        processes.append(process)
    try:
        num_left = len(tasks)
        while num_left:
            try:
                outcome: Outcome = outcomes.get(timeout=PATIENCE)
            except queue.Empty:
                if not any(process.is_alive() for process in processes):
                    raise RunError("All worker processes died; the table holds what had ended.") from None
                continue
            num_left -= 1
            yield outcome
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.join()
