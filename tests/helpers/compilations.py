"""Which programs XLA compiles while something runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import jax

EVENT = "/jax/core/compile/backend_compile_duration"


@contextmanager
def compilations() -> Iterator[list[str]]:
    """The names of functions compiled inside, in whatever thread, as a list that grows."""
    compiled: list[str] = []
    listen = _listener(compiled)
    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        yield compiled
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)


@cache
def compiled_from_now_on() -> list[str]:
    """The same for the rest of a process, such as a worker of a cluster; the list of the first call."""
    compiled: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(_listener(compiled))
    return compiled


def _listener(compiled: list[str]) -> Callable[..., None]:
    def listen(event: str, seconds: float, **details: object) -> None:
        del seconds
        if event == EVENT:
            compiled.append(str(details.get("fun_name")))

    return listen
