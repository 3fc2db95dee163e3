"""Spreads jobs over processes, each bound to one core so that its timings mean something."""

from __future__ import annotations

import multiprocessing
import os
import queue
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from coreset_mcmc.core.errors import RunError
from coreset_mcmc_benchmarks.paper.jobs import Job
from coreset_mcmc_benchmarks.paper.measure import Setup, measure, reference_of

PATIENCE = 5.0
"""Seconds between looks whether the other side is still alive."""


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


@contextmanager
def _bound_to(core: int) -> Iterator[None]:
    """Processes started inside run on this core alone, with all their threads; the caller is free again afterwards."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _work(setup: Setup, tasks: Any, outcomes: Any) -> None:
    parent = multiprocessing.parent_process()
    while parent is None or parent.is_alive():
        try:
            task = tasks.get(timeout=PATIENCE)
        except queue.Empty:
            continue
        if task is None:
            return
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
    cores = available_cores()
    processes = []
    for number in range(min(num_workers, len(tasks))):
        waiting.put(None)
        process = context.Process(target=_work, args=(setup, waiting, outcomes), daemon=True)
        with _bound_to(cores[number % len(cores)]):
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
