"""Wall time of a stage, and the part of it that JAX spent compiling."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import jax.monitoring

COMPILING = "/jax/core/compile/"
"""Events of tracing, lowering and compiling begin with this."""


@dataclass
class Stage:
    """Filled in when the stage is over."""

    seconds: float = 0.0
    compile_seconds: float = 0.0

    @property
    def running_seconds(self) -> float:
        """What is left without compilation."""
        return max(self.seconds - self.compile_seconds, 0.0)


@dataclass
class _Total:
    seconds: float = 0.0


@cache
def _compiling() -> _Total:
    """Seconds of compilation since the first call, whatever library asked for it."""
    total = _Total()

    def listen(event: str, duration_secs: float, **kwargs: str | int) -> None:
        del kwargs
        if event.startswith(COMPILING):
            total.seconds += duration_secs

    jax.monitoring.register_event_duration_secs_listener(listen)
    return total


@contextmanager
def timed() -> Iterator[Stage]:
    """Time what happens inside; results must be ready when it ends."""
    stage, total = Stage(), _compiling()
    before, began = total.seconds, time.perf_counter()
    yield stage
    stage.seconds = time.perf_counter() - began
    stage.compile_seconds = min(total.seconds - before, stage.seconds)
