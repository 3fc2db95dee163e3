"""Which programs XLA compiles while something runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import jax

EVENT = "/jax/core/compile/backend_compile_duration"


@contextmanager
def compilations() -> Iterator[list[str]]:
    """The names of functions compiled inside, in whatever thread, as a list that grows."""
    compiled: list[str] = []

    def listen(event: str, seconds: float, **details: object) -> None:
        del seconds
        if event == EVENT:
            compiled.append(str(details.get("fun_name")))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
