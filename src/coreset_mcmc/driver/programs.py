"""The compiled programs of one run, and how a run goes on by them: chunks of steps, or one step on the host."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.randomness import fold_in
from coreset_mcmc.core.types import Key
from coreset_mcmc.core.watching import Stopped
from coreset_mcmc.driver.compiled import chunk_for, first_for
from coreset_mcmc.driver.steps import Steps


class Programs:
    """Chunks of steps, compiled once."""

    def __init__(
        self,
        method: Steps,
        problem: Any,
        key: Key,
        record: Callable[[Any], Any] | None,
        before_phase: Callable[[int | None], None] | None,
    ) -> None:
        self.method, self.problem, self.key, self.record = method, problem, key, record
        self.before_phase = before_phase or (lambda phase: None)
        self.chunk = chunk_for(method)
        self.buffers: Any = None
        """Empty infos and records, once they are known."""
        self.compile_seconds = 0.0

    def first(self, key: Key) -> Any:
        """The state before any step."""
        return first_for(self.method)(self.method, self.problem, key)

    def prepare(self, state: Any) -> Any:
        """Compile if that has not been done; returns empty buffers."""
        if self.buffers is None:
            began = time.perf_counter()
            self.before_phase(None)
            _, self.buffers, _ = self.advance(state, 0, 0)
            self.compile_seconds += time.perf_counter() - began
        return self.buffers

    def advance(self, state: Any, start: int, length: int) -> Any:
        """Up to ``length`` steps from step number ``start``."""
        arguments = (self.method, self.problem, self.key, state, np.int64(start), np.int32(length))
        return jax.block_until_ready(self.chunk(*arguments, record=self.record))

    @staticmethod
    def restored(state: Any) -> Any:
        """A state that was read from a file."""
        return jax.tree.map(jnp.asarray, state)


class OnHost(Programs):
    """Steps that are Python, one at a time, with programs of their own that are ready when their phase begins."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._begun: set[int | None] = set()

    def first(self, key: Key) -> Any:
        return self.method.init(key, self.problem)

    def prepare(self, state: Any) -> Any:
        phase = self.method.phase_of(state)
        if phase not in self._begun:
            began = time.perf_counter()
            self._begun.add(phase)
            self.before_phase(phase)
            self.compile_seconds += time.perf_counter() - began
        if self.buffers is None:
            self.buffers = self._observed(state, self.method.blank_info(self.problem))
        return self.buffers

    def advance(self, state: Any, start: int, length: int) -> Any:
        del length
        state, info = self.method.step(fold_in(self.key, start), state, self.problem)
        return state, self._observed(state, info), 1

    def _observed(self, state: Any, info: Any) -> Any:
        return _with_axis(info), _with_axis(self.record(state)) if self.record else None

    @staticmethod
    def restored(state: Any) -> Any:
        return state


def _with_axis(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], tree)


def advanced(programs: Programs, state: Any, start: int, length: int) -> Any:
    """Up to ``length`` steps; None if a pass over rows was asked to end in the middle of one."""
    try:
        return programs.advance(state, start, length)
    except Stopped:
        return None
