"""What a person sees while work goes on: a bar for steps, and one for passes over very many rows.

Passes that are over in two seconds are not shown. On a terminal a longer one has a bar: rows done, rate and time left.
Elsewhere, as in a log, there is a line now and then. While a run shows its own bar, a pass is told at the end of that.
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
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from coreset_mcmc.core.watching import watched_by

PATIENCE = 2.0
"""Seconds after which a pass is worth showing."""
BETWEEN_LINES = 10.0
"""Seconds between two lines where there is no terminal."""


class _RateColumn(ProgressColumn):
    """Steps or rows in a second."""

    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f}/s", style="progress.data.speed")


class ProgressBar:
    """One bar: steps done, rate, time left, and a live line from the method."""

    def __init__(self, description: str, total: int, *, enabled: bool, transient: bool = False) -> None:
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            _RateColumn(),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            TextColumn("{task.fields[note]}"),
            disable=not enabled,
            transient=transient,
        )
        self.description = description
        self._task = self._bar.add_task(description, total=total, note="compiling")
        self._token: Token[ProgressBar | None] | None = None

    def __enter__(self) -> Self:
        self._bar.start()
        if not self._bar.disable:
            self._token = _shown_bar.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _shown_bar.reset(self._token)
        self._bar.stop()

    def update(self, completed: int, note: str) -> None:
        self._bar.update(self._task, completed=completed, note=note)

    def tell(self, note: str) -> None:
        """Another live line, until the next update."""
        self._bar.update(self._task, note=note)

    def finish(self, completed: int, note: str) -> None:
        """Show a run that ended early as complete at the steps it took."""
        self._bar.update(self._task, completed=completed, total=completed, note=note)


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
        self._description, self._num_done, self._num_rows = "", 0, 0
        self._began = self._last_line = 0.0
        self._timer: threading.Timer | None = None
        self._progress: Progress | None = None
        self._has_lines = False

    def __call__(self, description: str, num_done: int, num_rows: int) -> None:
        with self._lock:
            if num_done == 0 or description != self._description:
                self._begin(description, num_rows)
            self._num_done = num_done
            if num_done >= num_rows:
                self.end()
            elif time.monotonic() - self._began >= PATIENCE:
                self._show(_shown_bar.get())

    def _begin(self, description: str, num_rows: int) -> None:
        self.end()
        self._description, self._num_rows = description, num_rows
        self._began = self._last_line = time.monotonic()
        if self._console.is_terminal:
            self._timer = threading.Timer(PATIENCE, self._show, (_shown_bar.get(),))
            self._timer.daemon = True
            self._timer.start()

    def end(self) -> None:
        """The pass is over, for whatever reason."""
        with self._lock:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if self._progress is not None:
                self._progress.stop()
                self._progress = None
            if self._has_lines:
                seconds = time.monotonic() - self._began
                self._line(f"{self._description}: {self._num_done:,} of {self._num_rows:,} rows in {seconds:,.0f} s")
                self._has_lines = False
            self._description = ""

    def _show(self, bar: ProgressBar | None) -> None:
        """In the thread of the pass, or in that of the timer if no part of the rows is done yet."""
        with self._lock:
            if not self._description:
                return
            if not self._console.is_terminal:
                self._line_now_and_then()
            elif bar is not None:
                bar.tell(f"{self._description}: {self._num_done / self._num_rows:.0%} of the rows")
            else:
                self._progress = self._progress or self._bar()
                self._progress.update(self._progress.task_ids[0], completed=self._num_done)

    def _bar(self) -> Progress:
        progress = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(bar_width=12),
            TextColumn("{task.completed:,.0f}/{task.total:,.0f} rows"),
            _RateColumn(),
            TimeRemainingColumn(compact=True),
            console=self._console,
            transient=True,
        )
        progress.add_task(self._description, total=self._num_rows)
        progress.start()
        return progress

    def _line_now_and_then(self) -> None:
        now = time.monotonic()
        if now - self._last_line < BETWEEN_LINES or self._num_done == 0:
            return
        rate = self._num_done / (now - self._began)
        left = (self._num_rows - self._num_done) / rate
        self._line(
            f"{self._description}: {self._num_done:,} of {self._num_rows:,} rows, {rate:,.0f}/s, {left:,.0f} s left"
        )
        self._last_line, self._has_lines = now, True

    def _line(self, text: str) -> None:
        self._console.print(text, highlight=False, soft_wrap=True)
