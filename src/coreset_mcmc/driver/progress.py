"""What a person sees while work goes on: a bar for steps, and one for passes over very many rows.

Stages that are over in two seconds are not shown. On a terminal a longer one has a bar: what is done, the rate, seconds
so far and seconds left; so it has in a notebook. In a log there is a line now and then, at most one in ten seconds.
While a run shows its own bar, a pass is told at the end of that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Self

import rich
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from coreset_mcmc.core.watching import unit_of, watched_by
from coreset_mcmc.driver.log_lines import BETWEEN_LINES, Heartbeat, has_bars, say
from coreset_mcmc.driver.notebook_bar import NotebookBar

PATIENCE = 2.0
"""Seconds after which a pass is worth showing."""
MEMORY = 3_600.0
"""Seconds of which the rate is the average: steps may take minutes."""


class _RateColumn(ProgressColumn):
    """Steps or rows in a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        digits = 0 if speed is None or speed >= 10 else 1
        return Text("" if speed is None else f"{speed:,.{digits}f}/s", style="progress.data.speed")


class _TimeColumn(ProgressColumn):
    """Seconds so far, which go on even if nothing else does, and seconds left."""

    def render(self, task: Task) -> Text:
        seconds = (task.finished_time if task.finished else task.elapsed) or 0.0
        left = None if task.finished else task.time_remaining
        return Text(f"{seconds:,.0f} s" + ("" if left is None else f", {left:,.0f} s left"), style="progress.remaining")


_prefix: ContextVar[str] = ContextVar("_prefix", default="")


@contextmanager
def labelled(prefix: str) -> Iterator[None]:
    """Bars of runs made inside say what they are part of."""
    token = _prefix.set(prefix)
    try:
        yield
    finally:
        _prefix.reset(token)


class ProgressBar:
    """One bar: steps done, rate, time left, and a live line from the method; lines where there is no terminal."""

    def __init__(self, description: str, total: int, *, enabled: bool, transient: bool = False) -> None:
        console = rich.get_console()
        self._console = console
        self._is_bar = enabled and has_bars(console)
        self._notebook = NotebookBar() if enabled and console.is_jupyter else None
        self._is_log = enabled and not self._is_bar and self._notebook is None
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            _RateColumn(),
            _TimeColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            disable=not self._is_bar,
            transient=transient,
            speed_estimate_period=MEMORY,
        )
        self.description = description
        self._shown = f"{_prefix.get()}{description}"
        self._task = self._bar.add_task(self._shown, total=total, note="compiling")
        self._total, self._completed, self._note = total, 0, "compiling"
        self._first: tuple[float, int] | None = None
        """When steps were first reported, and how many."""
        self._began = 0.0
        self._heartbeat: Heartbeat | None = None
        self._token: Token[ProgressBar | None] | None = None

    def __enter__(self) -> Self:
        self._began = time.monotonic()
        if self._is_bar:
            self._bar.start()
        if self._is_log:
            self._heartbeat = Heartbeat(self._line)
        if self._is_bar or self._is_log or self._notebook is not None:
            self._token = _shown_bar.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _shown_bar.reset(self._token)
        if self._heartbeat is not None:
            self._heartbeat.stop()
        if self._is_bar:
            self._bar.stop()

    def update(self, completed: int, note: str) -> None:
        self._first = self._first or (time.monotonic(), completed)
        self._completed = completed
        self._bar.update(self._task, completed=completed)
        self.tell(note)

    def tell(self, note: str) -> None:
        """Another live line, until the next update."""
        self._note = note
        self._bar.update(self._task, note=note)
        if self._notebook is not None:
            self._notebook.show(self._text(), self._completed, self._total)
        if self._is_log:
            self._line()

    def finish(self, completed: int, note: str) -> None:
        """Show a run that ended early as complete at the steps it took."""
        self._bar.update(self._task, completed=completed, total=completed, note=note)
        self._completed, self._total, self._note = completed, completed, note
        if self._notebook is not None:
            self._notebook.show(self._text(), completed, completed, is_last=True)

    def _line(self) -> None:
        say(self._console, self._text(), time.monotonic() - self._began)

    def _text(self) -> str:
        """Steps, seconds so far and left, and the live line."""
        now = time.monotonic()
        time_left = ""
        if self._first is not None and self._completed > self._first[1]:
            rate = (self._completed - self._first[1]) / max(now - self._first[0], 1e-9)
            time_left = (
                f", {(self._total - self._completed) / rate:,.0f} s left" if self._completed < self._total else ""
            )
        text = f"{self._shown}: {self._completed:,} of {self._total:,} steps, {now - self._began:,.0f} s{time_left}"
        return f"{text} ({self._note})" if self._note else text


_shown_bar: ContextVar[ProgressBar | None] = ContextVar("_shown_bar", default=None)
"""The bar that is on the screen."""


@contextmanager
def show_passes(enabled: bool, console: Console | None = None) -> Iterator[None]:
    """Show how far long passes over rows are, if ``enabled``."""
    if not enabled:
        yield
        return
    watcher = _Watcher(console or rich.get_console())
    try:
        with watched_by(watcher):
            yield
    finally:
        watcher.end()


class _Watcher:
    """Told about passes, one after the other."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lock = threading.RLock()
        self._description, self._unit, self._num_done, self._num_rows = "", "", 0, 0
        self._began = 0.0
        self._heartbeat: Heartbeat | None = None
        self._progress: Progress | None = None
        self._has_lines = False

    def __call__(self, description: str, num_done: int, num_rows: int) -> None:
        with self._lock:
            text, unit = unit_of(description)
            if num_done == 0 or text != self._description:
                self._begin(text, unit)
            self._num_done, self._num_rows = num_done, num_rows
            if num_done >= num_rows:
                self.end()
            elif time.monotonic() - self._began >= PATIENCE:
                self._show(_shown_bar.get())

    def _begin(self, description: str, unit: str) -> None:
        self.end()
        self._description, self._unit = description, unit
        self._began = time.monotonic()
        bar = _shown_bar.get()
        self._heartbeat = Heartbeat(lambda: self._show(bar), PATIENCE if has_bars(self._console) else BETWEEN_LINES)

    def end(self) -> None:
        """The pass is over, for whatever reason."""
        with self._lock:
            if self._heartbeat is not None:
                self._heartbeat.stop()
                self._heartbeat = None
            if self._progress is not None:
                self._progress.stop()
                self._progress = None
            if self._has_lines:
                seconds = time.monotonic() - self._began
                done = f"{self._num_done:,} of {self._num_rows:,} {self._unit}"
                say(self._console, f"{self._description}: {done} in {seconds:,.0f} s", seconds)
                self._has_lines = False
            self._description = ""

    def _show(self, bar: ProgressBar | None) -> None:
        """In the thread of the pass, or in that of the heartbeat if no part of the rows is done for a while."""
        with self._lock:
            if not self._description:
                return
            if bar is not None:
                bar.tell(f"{self._description}: {self._num_done / max(self._num_rows, 1):.0%} of the {self._unit}")
            elif not has_bars(self._console):
                self._line()
            else:
                self._progress = self._progress or self._bar()
                self._progress.update(self._progress.task_ids[0], completed=self._num_done, total=self._num_rows)

    def _bar(self) -> Progress:
        progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=12),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} " + self._unit),
            _RateColumn(),
            _TimeColumn(),
            console=self._console,
            transient=True,
            speed_estimate_period=MEMORY,
        )
        progress.add_task(self._description, total=self._num_rows)
        progress.start()
        return progress

    def _line(self) -> None:
        seconds = time.monotonic() - self._began
        text = f"{self._description}: {self._num_done:,} of {self._num_rows:,} {self._unit}"
        if self._num_done:
            rate = self._num_done / max(seconds, 1e-9)
            text += f", {rate:,.0f}/s, {(self._num_rows - self._num_done) / rate:,.0f} s left"
        else:
            text += f", {seconds:,.0f} s"
        self._has_lines = say(self._console, text, seconds) or self._has_lines
