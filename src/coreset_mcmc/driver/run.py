"""The one driver of every method: compiled chunks, progress, callbacks, counters, interruption and checkpoints.

It runs anything that keeps the contract of :class:`coreset_mcmc.driver.steps.Steps`. The random key of a step
depends on its number alone, so neither the size of the chunks nor a checkpoint in between changes a bit of the result.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.errors import RunError
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.core.randomness import split
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Key
from coreset_mcmc.core.watching import stopped_by
from coreset_mcmc.driver.checkpoint import Checkpoint, Snapshot, load, save
from coreset_mcmc.driver.compiled import CAPACITY
from coreset_mcmc.driver.programs import OnHost, Programs, advanced
from coreset_mcmc.driver.progress import ProgressBar
from coreset_mcmc.driver.steps import Steps

CHUNK_SECONDS = 0.25
"""Aim for chunks of this length: often enough to feel live, rarely enough to cost nothing."""


DEAR_SECONDS = 1.0
"""A step on the host that took longer, a pass over many rows, say, is saved at once."""


class Event(NamedTuple):
    """What a callback is told after each chunk."""

    num_steps: int
    state: Any
    info: Any
    """The info of the chunk's steps, with a leading step axis."""
    seconds: float


Callback = Callable[[Event], bool | None]
"""Called after each chunk; returning True stops the run."""


@dataclass(frozen=True)
class Run:
    """A finished, converged or interrupted run."""

    state: Any
    history: Any
    """The info of every step, with a leading step axis."""
    record: Any
    """What ``record(state)`` returned at every ``record_every``-th step, or None."""
    num_steps: int
    num_evaluations: int
    seconds: float
    """Time spent stepping, over all resumed parts; compilation is apart."""
    compile_seconds: float
    step_seconds: np.ndarray
    """Time spent stepping until the end of each step (T,); steps of one compiled chunk count alike."""
    reason: str
    """Why it ended: "total reached", "converged", "stopped by a callback" or "interrupted"."""

    @property
    def is_interrupted(self) -> bool:
        return self.reason == "interrupted"


class _History:
    """Chunks of info and records on the host."""

    def __init__(self, record_every: int) -> None:
        self.record_every = record_every
        self.infos: list[Any] = []
        self.records: list[Any] = []
        self.step_seconds = [np.zeros(0)]
        self.num_steps = 0
        self.num_evaluations = 0

    def append(self, info: Any, record: Any, count: int, seconds: float = 0.0) -> Any:
        """``count`` more steps, which took ``seconds``.

        They are copied: a view of a few steps would keep the buffers of a whole chunk.
        """
        spent = self.step_seconds[-1][-1] if self.step_seconds[-1].size else 0.0
        self.step_seconds.append(spent + seconds * np.arange(1, count + 1) / max(count, 1))
        info = jax.tree.map(lambda leaf: np.asarray(leaf)[:count].copy(), info)
        is_kept = (self.num_steps + 1 + np.arange(count)) % self.record_every == 0
        self.infos.append(info)
        self.records.append(jax.tree.map(lambda leaf: np.asarray(leaf)[:count][is_kept], record))
        self.num_steps += count
        self.num_evaluations += int(np.sum(info.num_evaluations, dtype=np.int64))
        return info

    def joined(self) -> tuple[Any, Any]:
        def join(parts: list[Any]) -> Any:
            return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)

        self.infos, self.records = [join(self.infos)], [join(self.records)]
        self.step_seconds = [np.concatenate(self.step_seconds)]
        return self.infos[0], self.records[0]


@double_precision
def run(
    method: Steps,
    problem: Any,
    key: Key,
    *,
    num_steps: int,
    callbacks: Sequence[Callback] = (),
    progressbar: bool = False,
    description: str | None = None,
    transient: bool = False,
    checkpoint: Checkpoint | None = None,
    fingerprint: str = "",
    record: Callable[[Any], Any] | None = None,
    record_every: int = 1,
    before_phase: Callable[[int | None], None] | None = None,
) -> Run:
    """Run ``method`` until ``num_steps`` in all, or until its state says that it is done.

    Args:
        transient: remove the progress bar when the run is over.
        callbacks: called after each chunk of steps; one that returns True stops the run.
        checkpoint: save there as the run goes on, and resume from there if the file exists.
        fingerprint: what a resumed checkpoint must match.
        record: a function of the state, evaluated after each step and kept every ``record_every`` steps.
        before_phase: called before a phase is compiled here; it may wait for one that is being compiled elsewhere.
    """
    init_key, step_key = split(key)
    programs = (OnHost if method.on_host else Programs)(method, problem, step_key, record, before_phase)
    state = programs.first(init_key)
    history = _History(record_every)

    with ProgressBar(description or method.name, num_steps, enabled=progressbar, transient=transient) as bar:
        info, recorded = programs.prepare(state)
        history.append(info, recorded, 0)
        history.num_evaluations = method.init_evaluations(problem)

        seconds = 0.0
        if checkpoint is not None and Path(checkpoint.path).exists():
            state, seconds = _resume(checkpoint, fingerprint, state, history)
            state = programs.restored(state)

        reason = "total reached"
        length = 1
        last_save = time.perf_counter()
        with _interruptions() as interrupted, stopped_by(interrupted):
            while history.num_steps < num_steps and not bool(state.done):
                programs.prepare(state)
                began = time.perf_counter()
                length = min(length, num_steps - history.num_steps)
                moved = advanced(programs, state, history.num_steps, length)
                if moved is None:
                    reason = "interrupted"
                    break
                state, (info, recorded), taken = moved
                elapsed = time.perf_counter() - began
                seconds += elapsed
                info = history.append(info, recorded, int(taken), elapsed)
                _raise_on_status(method, info.status, history.num_steps - int(taken))
                bar.update(history.num_steps, method.describe(info))
                length = int(np.clip(length * CHUNK_SECONDS / max(elapsed, 1e-6), 1, min(CAPACITY, 4 * length)))
                is_dear = method.on_host and elapsed > DEAR_SECONDS
                if checkpoint is not None and (is_dear or time.perf_counter() - last_save >= checkpoint.seconds):
                    _save(checkpoint, fingerprint, state, history, seconds)
                    last_save = time.perf_counter()
                event = Event(history.num_steps, state, info, seconds)
                if any(callback(event) for callback in callbacks):
                    reason = "stopped by a callback"
                    break
                if interrupted.is_set():
                    reason = "interrupted"
                    break
            if bool(state.done):
                reason = "converged" if history.num_steps < num_steps else "total reached"
            if history.num_steps:
                bar.finish(history.num_steps, f"{method.describe(history.infos[-1])} ({reason})")
    if checkpoint is not None:
        _save(checkpoint, fingerprint, state, history, seconds)
    return _finished(state, history, seconds, programs.compile_seconds, reason, is_recorded=record is not None)


def _finished(
    state: Any, history: _History, seconds: float, compile_seconds: float, reason: str, *, is_recorded: bool
) -> Run:
    infos, records = history.joined()
    return Run(
        state=state,
        history=infos,
        record=records if is_recorded else None,
        num_steps=history.num_steps,
        num_evaluations=history.num_evaluations,
        seconds=seconds,
        compile_seconds=compile_seconds,
        step_seconds=history.step_seconds[0],
        reason=reason,
    )


def _raise_on_status(method: Steps, status: np.ndarray, first_step: int) -> None:
    if status.any():
        place = int(np.flatnonzero(status)[0])
        raise RunError(f"{method.name}, step {first_step + place + 1}: {Status(int(status[place])).message}")


@contextmanager
def _interruptions() -> Iterator[threading.Event]:
    """The first Ctrl-C asks the run to end after the current chunk; the second one raises as usual."""
    asked = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield asked
        return

    def ask(number: int, frame: Any) -> None:
        if asked.is_set():
            raise KeyboardInterrupt
        asked.set()

    previous = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, previous)


def _save(checkpoint: Checkpoint, fingerprint: str, state: Any, history: _History, seconds: float) -> None:
    infos, records = history.joined()
    header = {
        "fingerprint": fingerprint,
        "num_steps": history.num_steps,
        "num_evaluations": history.num_evaluations,
        "seconds": seconds,
        "jax": jax.__version__,
    }
    trees = {"state": state, "history": infos, "record": records, "step_seconds": history.step_seconds[0]}
    leaves = {name: [np.asarray(leaf) for leaf in jax.tree.leaves(tree)] for name, tree in trees.items()}
    save(checkpoint.path, Snapshot(header, leaves))


def _resume(checkpoint: Checkpoint, fingerprint: str, state: Any, history: _History) -> tuple[Any, float]:
    """Put the saved leaves back into the structures of a fresh state and history."""
    snapshot = load(checkpoint.path, expected_fingerprint=fingerprint)

    def restore(name: str, like: Any) -> Any:
        return jax.tree.unflatten(jax.tree.structure(like), snapshot.trees.get(name, []))

    history.infos = [restore("history", history.infos[0])]
    history.records = [restore("record", history.records[0])]
    history.step_seconds = [restore("step_seconds", history.step_seconds[0])]
    history.num_steps = snapshot.header["num_steps"]
    history.num_evaluations = snapshot.header["num_evaluations"]
    return restore("state", state), snapshot.header["seconds"]
