"""What a person sees while a run goes on: a rich progress bar, updated between compiled chunks."""

from __future__ import annotations

from types import TracebackType
from typing import Self

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


class _RateColumn(ProgressColumn):
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

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def update(self, completed: int, note: str) -> None:
        self._bar.update(self._task, completed=completed, note=note)

    def passing(self, description: str, num_done: int, num_rows: int) -> None:
        """Show how far a pass over the rows has come."""
        share = f" {100 * num_done / num_rows:.0f} % of {num_rows:,} rows" if num_done < num_rows else ""
        self._bar.update(self._task, note=description + share)

    def finish(self, completed: int, note: str) -> None:
        """Show a run that ended early as complete at the steps it took."""
        self._bar.update(self._task, completed=completed, total=completed, note=note)
