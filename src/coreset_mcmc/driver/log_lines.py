"""Where there is no terminal: lines of a log, at most one in ten seconds whatever they are about."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from rich.console import Console

BETWEEN_LINES = 10.0
"""Seconds between two lines, and before the first one of a stage."""

_lock = threading.Lock()
_last_line = float("-inf")


def has_bars(console: Console) -> bool:
    """Whether lines can be drawn again."""
    return console.is_terminal and not console.is_jupyter


def say(console: Console, text: str, seconds: float) -> bool:
    """A line about a stage that has gone on for so long, unless one was written just now; whether it was written."""
    global _last_line  # noqa: PLW0603 - one log for all stages
    now = time.monotonic()
    with _lock:
        if seconds < BETWEEN_LINES or 0.0 <= now - _last_line < BETWEEN_LINES:
            return False
        _last_line = now
    console.print(text, highlight=False, soft_wrap=True, markup=False)
    return True


class Heartbeat:
    """Calls a function every so often, in a thread of its own, until it is stopped."""

    def __init__(self, function: Callable[[], None], seconds: float | None = None) -> None:
        self._function, self._seconds = function, BETWEEN_LINES if seconds is None else seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()

    def _beat(self) -> None:
        while not self._stopped.wait(max(self._seconds, 0.01)):
            self._function()
