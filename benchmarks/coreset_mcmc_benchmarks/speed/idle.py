"""How busy others keep the machine: waiting until it is idle, and what they used during a run.

The system counts the time of all processors (``/proc/stat``); what this process and its children used is taken off.
Where it does not count, nothing is waited for and the load is not a number.
"""

from __future__ import annotations

import math
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STAT = Path("/proc/stat")
IDLE, BUSY = 0.15, 0.25
"""Cores that others may use before a run, and during one."""
LOOK_SECONDS, PATIENCE_SECONDS = 1.0, 60.0
MOST_REPEATS = 2


@dataclass
class Load:
    """Filled in when the time is over."""

    before: float = math.nan
    after: float = math.nan
    others: float = math.nan
    """Cores that other processes used, on average."""


def busy_seconds(stat: Path = STAT) -> float:
    """Processor time that was not idle since the start, of all cores; time that a host took away counts as used."""
    try:
        user, nice, system, _, _, interrupts, soft, stolen = map(int, stat.read_text().split()[1:9])
    except (OSError, ValueError):
        return math.nan
    return (user + nice + system + interrupts + soft + stolen) / os.sysconf("SC_CLK_TCK")


def own_seconds() -> float:
    """Processor time of this process and of its children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


@contextmanager
def watched(busy: Callable[[], float] = busy_seconds, own: Callable[[], float] = own_seconds) -> Iterator[Load]:
    """The load of the machine around and during what happens inside; children must have ended when it ends."""
    load = Load(before=_load_average())
    began, busy_before, own_before = time.perf_counter(), busy(), own()
    yield load
    seconds = time.perf_counter() - began
    used = (busy() - busy_before) - (own() - own_before)
    load.others = math.nan if math.isnan(used) else max(used, 0.0) / seconds
    load.after = _load_average()


def others_now() -> float:
    """Cores that others use, measured over a moment."""
    with watched() as load:
        time.sleep(LOOK_SECONDS)
    return load.others


def wait_until_idle(look: Callable[[], float] = others_now, patience: float = PATIENCE_SECONDS) -> bool:
    """Look until others use next to nothing, but not for ever; whether they do. What cannot be measured is idle."""
    ends = time.perf_counter() + patience
    while look() >= IDLE:
        if time.perf_counter() >= ends:
            return False
    return True


def undisturbed(run: Callable[[], dict[str, Any]], wait: Callable[[], object] = wait_until_idle) -> dict[str, Any]:
    """Wait and run; again if others were busy meanwhile, up to twice. The least disturbed row, which tells its load."""
    rows: list[dict[str, Any]] = []
    while len(rows) <= MOST_REPEATS:
        wait()
        rows.append(with_load(run))
        if not rows[-1]["other_load"] > BUSY:
            return rows[-1]
    return min(rows, key=lambda row: float(row["other_load"]))


def with_load(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """The row of a run with the columns of the load."""
    with watched() as load:
        row = run()
    return row | {"load_before": load.before, "load_after": load.after, "other_load": load.others}


def _load_average() -> float:
    try:
        return os.getloadavg()[0]
    except OSError:
        return math.nan
