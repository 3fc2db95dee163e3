"""The compiled programs of one run, and how a run goes on by them: chunks of steps, or one step on the host."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.types import Key
from coreset_mcmc.core.watching import Stopped
from coreset_mcmc.driver.compiled import chunk_for, first_state, phase_on_host
from coreset_mcmc.driver.steps import Steps


class Programs:
    """The compiled chunks of one run, each compiled when its phase begins."""

    def __init__(
        self,
        method: Steps,
        problem: Any,
        key: Key,
        record: Callable[[Any], Any] | None,
        before_phase: Callable[[int | None], None] | None,
    ) -> None:
        self.method = method
        self.chunk = chunk_for(method)
        self.arguments = (method, problem, key)
        self.record = record
        self.before_phase = before_phase
        self.compiled: dict[int | None, Any] = {}
        """Empty buffers of each phase."""
        self.compile_seconds = 0.0

    def first(self, key: Key) -> Any:
        """The state before any step."""
        return first_state(self.method, self.arguments[1], key)

    def prepare(self, state: Any) -> Any:
        """Compile the phase of this state if that has not been done; returns empty buffers."""
        phase = phase_on_host(self.method, state)
        if phase not in self.compiled:
            began = time.perf_counter()
            if self.before_phase is not None:
                self.before_phase(phase)
            _, self.compiled[phase], _ = self.advance(state, 0, 0)
            self.compile_seconds += time.perf_counter() - began
        return self.compiled[phase]

    def advance(self, state: Any, start: int, length: int) -> Any:
        """Up to ``length`` steps of the state's phase, from step number ``start``."""
        phase = phase_on_host(self.method, state)
        return jax.block_until_ready(
            self.chunk(*self.arguments, state, jnp.int64(start), jnp.int32(length), phase=phase, record=self.record)
        )

    @staticmethod
    def restored(state: Any) -> Any:
        """A state that was read from a file."""
        return jax.tree.map(jnp.asarray, state)


class OnHost(Programs):
    """The same for steps that are Python: one at a time, with programs that are compiled as they are met."""

    def first(self, key: Key) -> Any:
        return self.method.init(key, self.arguments[1])

    def prepare(self, state: Any) -> Any:
        if not self.compiled:
            began = time.perf_counter()
            if self.before_phase is not None:
                self.before_phase(None)
            info = self.method.blank_info(self.arguments[1])
            self.compiled[None] = (_with_axis(info), _with_axis(self.record(state)) if self.record else None)
            self.compile_seconds += time.perf_counter() - began
        return self.compiled[None]

    def advance(self, state: Any, start: int, length: int) -> Any:
        del length
        method, problem, key = self.arguments
        state, info = method.step(jax.random.fold_in(key, start), state, problem)
        return state, (_with_axis(info), _with_axis(self.record(state)) if self.record else None), 1

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
