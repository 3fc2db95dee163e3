"""The memory of a test process: compiled programs are forgotten in time, and the peak is reported.

JAX keeps every program that it compiled, and each maps a few pieces of memory. A thousand tests compile thousands of
programs; without forgetting, the memory of the machine runs out, or the number of maps that the kernel allows.
"""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from pathlib import Path

import jax

MEBIBYTE = 2**20
LIMIT = 2_048 * MEBIBYTE
"""What a process may have at its peak."""
ROOM_FOR_ONE_TEST = 500 * MEBIBYTE
"""For one more test after a look at the memory; the greediest of all added 263 MiB."""
ROOM_BETWEEN = 150 * MEBIBYTE
"""If forgetting leaves more than the threshold, grow this much before the next try: each costs compilations."""

STATUS = Path("/proc/self/status")


def peak() -> int:
    """The most bytes that this process has had in memory."""
    if STATUS.exists():
        return _kibibytes("VmHWM") * 1_024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1_024


class Forgetting:
    """Forgets compiled programs when the process has grown to its threshold. What is needed again compiles again."""

    def __init__(self) -> None:
        self._threshold = LIMIT - ROOM_FOR_ONE_TEST
        self.count = 0

    def after_test(self) -> None:
        """Look at the memory, which takes microseconds, and act if there is need. Only Linux says how much there is."""
        if not STATUS.exists() or _resident() < self._threshold:
            return
        jax.clear_caches()
        gc.collect()
        _give_back()
        self.count += 1
        self._threshold = max(LIMIT - ROOM_FOR_ONE_TEST, _resident() + ROOM_BETWEEN)


def _resident() -> int:
    return _kibibytes("VmRSS") * 1_024


def _kibibytes(name: str) -> int:
    return next(int(line.split()[1]) for line in STATUS.read_text().splitlines() if line.startswith(f"{name}:"))


def _give_back() -> None:
    """Free memory goes back to the system; the C library would keep it. Only that of GNU has the call."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
