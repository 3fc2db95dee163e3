"""The clock on the wall, from the start of a command to its end, and which part of it took how long."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

OURSELVES = ("coreset-mcmc", "coreset-mcmc.exe", "__main__.py")


class Clock:
    """Seconds since the command was given, the time to load its libraries among them."""

    def __init__(self) -> None:
        self._began = time.perf_counter() - _age_of_process()
        self._last = self._began
        self.parts: dict[str, float] = {}
        """Seconds by name."""

    def mark(self, part: str) -> None:
        """What was done since the last mark."""
        now = time.perf_counter()
        self.parts[part] = self.parts.get(part, 0.0) + now - self._last
        self._last = now

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._began

    def in_words(self) -> str:
        """In all, and the parts that took a second or more."""
        long = [f"{name} {seconds:.0f}" for name, seconds in self.parts.items() if seconds >= 1.0]
        return f"{self.seconds:.0f} s from start to finish" + (f" ({', '.join(long)})" if len(long) > 1 else "")


def _age_of_process() -> float:
    """If the command is the program that runs and the system tells; otherwise nothing came before."""
    if Path(sys.argv[0]).name not in OURSELVES:
        return 0.0
    try:
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        started = int(fields[19]) / os.sysconf("SC_CLK_TCK")
        return max(time.clock_gettime(time.CLOCK_BOOTTIME) - started, 0.0)
    except (OSError, ValueError, AttributeError, IndexError):
        return 0.0
