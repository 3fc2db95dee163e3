"""The faults themselves: each trial hits a run somewhere, looks at what is left, goes on, and compares bits."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from coreset_mcmc_benchmarks.faults.boundaries import FLUSH, RENAMED, killed_copies, watched
from coreset_mcmc_benchmarks.faults.damage import DAMAGES
from coreset_mcmc_benchmarks.faults.runs import (
    IN_WORDS,
    SETTINGS,
    call,
    differs,
    half_written,
    recovered,
    write_table,
)

SEED, OTHER_SEED = 1, 2


class Trial(NamedTuple):
    """What happened."""

    fault: str
    place: str
    outcome: str
    """"same bits" or "refused, then the same bits"; anything else is a failure, in words."""


class Stage(NamedTuple):
    """A finished run to compare with, one with another seed, and copies of the first at every moment."""

    folder: Path
    table: Path
    whole: Path
    other: Path
    copies: Path
    names: list[str]
    """Of the files in the order in which they were written."""

    @property
    def ends(self) -> list[int]:
        """The first and the last file of each name: checkpoints are many."""
        first = {name: number for number, name in reversed(list(enumerate(self.names)))}
        last = {name: number for number, name in enumerate(self.names)}
        return sorted({*first.values(), *last.values()})


SAME, REFUSED = "same bits", "refused in words, then the same bits"


def prepare(folder: Path) -> Stage:
    """Two finished runs, one of them watched."""
    folder.mkdir(parents=True, exist_ok=True)
    table, whole, other, copies = write_table(folder / "table.parquet"), *(folder / n for n in ("whole", "other", "at"))
    for path in (whole, other, copies):
        shutil.rmtree(path, ignore_errors=True)
    copies.mkdir()
    for place, seed, act in (
        (other, OTHER_SEED, lambda *_: None),
        (whole, SEED, killed_copies(whole, copies)),
    ):
        with watched(act) as watch:
            ended = call("fit", table, *SETTINGS, "--seed", seed, "--no-report", "--out", place)
        if ended.code:
            raise RuntimeError(ended.text or ended.trouble)
    return Stage(folder, table, whole, other, copies, watch.names)


def fresh(stage: Stage, copy: Path | None) -> Path:
    """A run folder to be hit: empty, or a copy of one."""
    run = stage.folder / "run"
    shutil.rmtree(run, ignore_errors=True)
    if copy is not None:
        shutil.copytree(copy, run)
    return run


def killed(stage: Stage) -> Iterator[Trial]:
    """What SIGKILL leaves at each moment, resumed."""
    for copy in sorted(stage.copies.iterdir()):
        if int(copy.name[:2]) not in stage.ends:
            continue
        run = fresh(stage, copy)
        broken = half_written(run)
        outcome = f"half-written {broken}" if broken else recovered(run, stage.whole, stage.table, SEED) or SAME
        yield Trial("kill -9", copy.name, outcome)


def hit(stage: Stage, fault: str, number: int, moment: str, strike: Callable[[], None]) -> Trial:
    """A new run that is struck once; it must end in words and go on to the same bits."""
    run = fresh(stage, None)

    def act(count: int, now: str, part: Path, path: Path) -> None:
        del part, path
        if (count, now) == (number, moment):
            strike()

    with watched(act):
        ended = call("fit", stage.table, *SETTINGS, "--seed", SEED, "--no-report", "--out", run)
    place = f"{number:02d}-{stage.names[number]}-{moment}"
    broken = half_written(run) if run.exists() else ""
    if ended.trouble or (ended.code and ended.code not in IN_WORDS):
        return Trial(fault, place, ended.trouble or f"exit {ended.code}")
    if broken:
        return Trial(fault, place, f"half-written {broken}")
    if not ended.code and not differs(run, stage.whole):
        return Trial(fault, place, SAME)
    run.mkdir(exist_ok=True)
    return Trial(fault, place, recovered(run, stage.whole, stage.table, SEED) or SAME)


def fails_with(code: int) -> Callable[[], None]:
    """An error of the operating system."""

    def strike() -> None:
        raise OSError(code, os.strerror(code))

    return strike


def out_of_memory() -> None:
    """What Python raises when it gets no more."""
    raise MemoryError


STRIKES: dict[str, Callable[[], None]] = {
    "Ctrl-C": lambda: signal.raise_signal(signal.SIGINT),
    "full disk": fails_with(errno.ENOSPC),
    "read-only": fails_with(errno.EROFS),
    "out of memory": out_of_memory,
}


def struck(stage: Stage) -> Iterator[Trial]:
    """Every strike at every file, before it has its name; Ctrl-C after that, too."""
    for fault, strike in STRIKES.items():
        for number in stage.ends:
            yield hit(stage, fault, number, FLUSH, strike)
            if fault == "Ctrl-C":
                yield hit(stage, fault, number, RENAMED, strike)


def clock_backwards(stage: Stage) -> Iterator[Trial]:
    """The time of day jumps back by a day at each file; what is measured by it may be nonsense, draws may not."""
    true = time.time

    def yesterday() -> float:
        return true() - 86_400.0

    for number in stage.ends:
        with ExitStack() as later:

            def jump(later: ExitStack = later) -> None:
                later.enter_context(mock.patch("time.time", yesterday))

            yield hit(stage, "clock back", number, RENAMED, jump)


def damaged(stage: Stage) -> Iterator[Trial]:
    """Each file of a run that was killed just after it, spoilt in each way."""
    for name in dict.fromkeys(stage.names):
        for damage in DAMAGES:
            yield damaged_once(stage, name, damage)


def damaged_once(stage: Stage, name: str, damage: str) -> Trial:
    """The last file of that name, spoilt in that way."""
    number = max(count for count, found in enumerate(stage.names) if found == name)
    run = fresh(stage, stage.copies / f"{number:02d}-{name}-{RENAMED}")
    (path,) = run.rglob(name)
    DAMAGES[damage](path, stage.other)
    return Trial(f"{damage} file", name, spoilt(stage, run, path, damage))


def a_few(stage: Stage) -> Iterator[Trial]:
    """Something small, to see that everything works."""
    yield damaged_once(stage, "trust.json", "cut")
    yield damaged_once(stage, "summary.json", "swapped")
    yield hit(stage, "full disk", stage.names.index("draws.nc"), FLUSH, STRIKES["full disk"])


def spoilt(stage: Stage, run: Path, path: Path, damage: str) -> str:
    """A spoilt file is written anew, or refused in words; without it the run goes on."""
    ended = call("resume", run)
    if ended.trouble:
        return ended.trouble
    if not ended.code:
        is_other = damage == "swapped" and path.name == "config.toml"
        return differs(run, stage.other if is_other else stage.whole) or SAME
    if ended.code not in IN_WORDS or path.name.split(".")[0] not in ended.text:
        return f"exit {ended.code}, which does not name the file: {ended.text[-120:]}"
    path.unlink()
    return recovered(run, stage.whole, stage.table, SEED) or REFUSED


def twice(stage: Stage) -> Iterator[Trial]:
    """A second process where one is at work, at each file: refused in words, and the first does not notice.

    Once the last file is there the run is finished, and the second process says so.
    """
    for number in stage.ends[1:]:
        seen: list[str] = []
        run = stage.folder / "run"

        def intrude(seen: list[str] = seen, run: Path = run, number: int = number) -> None:
            second = call("resume", run)
            is_finished = number == stage.ends[-1] and "is finished" in second.text
            is_told = is_finished or (second.code in IN_WORDS and "another process" in second.text)
            seen.append("" if is_told else second.trouble or f"exit {second.code}: {second.text[-100:]}")

        trial = hit(stage, "two processes", number, RENAMED, intrude)
        yield trial if not any(seen) or trial.outcome != SAME else trial._replace(outcome=seen[0])


FAULTS: dict[str, Callable[[Stage], Iterator[Trial]]] = {
    "killed": killed, "struck": struck, "clock": clock_backwards, "damaged": damaged, "twice": twice,
}  # fmt: skip
