"""The most memory that a task had at one time, its worker processes included."""

from __future__ import annotations

import os
import resource
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SECONDS_BETWEEN = 0.25
PROC = Path("/proc")


@dataclass
class Peak:
    """Filled in when it is over."""

    megabytes: float = 0.0


@contextmanager
def peak_memory(has_workers: bool) -> Iterator[Peak]:
    """The peak of this process; if it ``has_workers``, they are looked for four times a second and added.

    Pages that processes share count once. Where there is no ``/proc``, workers are not counted.
    """
    peak, is_over = Peak(), threading.Event()

    def watch() -> None:
        while not is_over.wait(SECONDS_BETWEEN):
            workers = _descendants(os.getpid())
            if workers:
                together = sum(_share(process) for process in (os.getpid(), *workers))
                peak.megabytes = max(peak.megabytes, together)

    watcher = threading.Thread(target=watch, daemon=True)
    if has_workers:
        watcher.start()
    yield peak
    is_over.set()
    if has_workers:
        watcher.join()
    peak.megabytes = max(peak.megabytes, _alone())


def _alone() -> float:
    """Peak of this process in megabytes.

    Linux hands ``ru_maxrss`` down from the process that started this one, which may be larger; ``VmHWM`` begins anew.
    """
    kibibytes = _field(PROC / "self" / "status", "VmHWM:")
    if kibibytes:
        return kibibytes * 1.024e-3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1e-6 if sys.platform == "darwin" else 1.024e-3)


def _descendants(process: int) -> list[int]:
    parents: dict[int, int] = {}
    for folder in PROC.glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found = [process]
    for parent in found:
        found += [child for child, its_parent in parents.items() if its_parent == parent]
    return found[1:]


def _share(process: int) -> float:
    """Megabytes of a process, those it shares with others divided among them; none if it has just ended."""
    return _field(PROC / str(process) / "smaps_rollup", "Pss:") * 1.024e-3


def _field(path: Path, name: str) -> float:
    """A number in a file of the system, zero if there is none."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return 0.0
    return next((float(line.split()[1]) for line in lines if line.startswith(name)), 0.0)
