"""Wall time of a stage, and the part of it that JAX spent compiling."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

COMPILING = "/jax/core/compile/"
"""Events of tracing, lowering and compiling begin with this."""


@dataclass
class Stage:
    """Filled in when the stage is over."""

    seconds: float = 0.0
    compile_seconds: float = math.nan
    """Not a number where JAX was not loaded when the stage began."""

    @property
    def running_seconds(self) -> float:
        """What is left without compilation, as far as that is known."""
        known = 0.0 if math.isnan(self.compile_seconds) else self.compile_seconds
        return max(self.seconds - known, 0.0)


@dataclass
class _Total:
    seconds: float = 0.0


@cache
def _compiling() -> _Total:
    """Seconds of compilation since the first call, whatever library asked for it."""
    import jax.monitoring  # noqa: PLC0415 - not every contestant loads JAX

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
    stage, total = Stage(), _compiling() if "jax" in sys.modules else None
    before, began = total.seconds if total else 0.0, time.perf_counter()
    yield stage
    stage.seconds = time.perf_counter() - began
    if total:
        stage.compile_seconds = min(total.seconds - before, stage.seconds)
