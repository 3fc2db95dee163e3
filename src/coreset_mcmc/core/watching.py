"""Long passes over rows: who wants to see how far they are, and who may end them.

Both are set for the duration of a block of code, for everything that is called from it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Watcher = Callable[[str, int, int], None]
"""Called with what is being done, rows done so far and rows in all; what is done may say that it counts something else
than rows, "reading big.csv [MB]" for instance."""

_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
_always: ContextVar[Watcher | None] = ContextVar("always", default=None)
_stop: ContextVar[threading.Event | None] = ContextVar("stop", default=None)


class Stopped(Exception):  # noqa: N818 - nothing has gone wrong
    """A pass that was asked to end before it was through."""


@contextmanager
def watched_by(watcher: Watcher | None) -> Iterator[None]:
    """Tell ``watcher`` about passes made inside."""
    token = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(token)


@contextmanager
def stopped_by(event: threading.Event) -> Iterator[None]:
    """Passes made inside raise :class:`Stopped` soon after the event is set."""
    token = _stop.set(event)
    try:
        yield
    finally:
        _stop.reset(token)


@contextmanager
def always_watched_by(watcher: Watcher) -> Iterator[None]:
    """Tell ``watcher`` about all passes made inside, besides whoever else watches them."""
    token = _always.set(watcher)
    try:
        yield
    finally:
        _always.reset(token)


def tell(description: str, num_done: int, num_rows: int) -> None:
    """Tell whoever watches, and end the pass if somebody has asked for that."""
    for watcher in (_watcher.get(), _always.get()):
        if watcher is not None:
            watcher(description, num_done, num_rows)
    end_if_asked()


def unit_of(description: str) -> tuple[str, str]:
    """What is done, and what is counted."""
    text, bracket, unit = description.rpartition(" [")
    return (text, unit.removesuffix("]")) if bracket and unit.endswith("]") else (description, "rows")


def tell_bytes(description: str, num_done: int, num_bytes: int) -> None:
    """Tell how much of a file is read, in millions of bytes."""
    is_over = num_done >= num_bytes
    total = max(round(num_bytes / 1e6), 1)
    tell(f"{description} [MB]", total if is_over else min(int(num_done / 1e6), total - 1), total)


def end_if_asked() -> None:
    """End the pass if somebody has asked for that: for those who wait."""
    event = _stop.get()
    if event is not None and event.is_set():
        raise Stopped
