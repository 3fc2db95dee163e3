"""Rows out of files: each group is decoded once, in order, and cut and joined into the runs that are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from coreset_mcmc.core.errors import RunError
from coreset_mcmc.scans.files import WHAT_TO_DO, Files, tag_of
from coreset_mcmc.scans.footer import Opened
from coreset_mcmc.scans.retries import pause_or_give_up

Run = tuple[int, int]
"""A first row, and the row after the last."""


def rows_of(files: Files, runs: Sequence[Run], names: Sequence[str], batch_rows: int) -> Iterator[list[Any]]:
    """For each of these runs, in ascending order, its rows as record batches; groups that hold none are not read."""
    batches = _batches(files, runs, names, batch_rows)
    start, batch = 0, None
    for first, last in runs:
        pieces = []
        position = first
        while position < last:
            while batch is None or start + batch.num_rows <= position:
                start, batch = next(batches)
            piece = batch.slice(position - start, last - position)
            pieces.append(piece)
            position += piece.num_rows
        yield pieces
    if runs:
        files.check(files.file_of(runs[-1][1] - 1))


def _batches(files: Files, runs: Sequence[Run], names: Sequence[str], batch_rows: int) -> Iterator[tuple[int, Any]]:
    """All groups that hold wanted rows, file by file, with the global number of the first row of each batch."""
    groups: dict[int, None] = {}
    for run in runs:
        groups.update(dict.fromkeys(files.groups(*run)))
    for file, members in groupby(groups, key=lambda group: int(files.group_places[group, 0])):
        reader = _Reader(files, file, names, batch_rows)
        for stretch in stretches(files, list(members), batch_rows):
            yield from reader.batches(stretch)
        files.check(file)


def stretches(files: Files, groups: list[int], rows: int) -> Iterator[list[int]]:
    """Consecutive groups that are read in one go: several if they are small, so that none is held for long."""
    stretch: list[int] = []
    for group in groups:
        is_full = stretch and int(files.group_starts[group + 1] - files.group_starts[stretch[0]]) > rows
        if stretch and (is_full or group != stretch[-1] + 1):
            yield stretch
            stretch = []
        stretch.append(group)
    if stretch:
        yield stretch


class _Reader:
    """One file, which is opened again when reading fails."""

    def __init__(self, files: Files, file: int, names: Sequence[str], batch_rows: int) -> None:
        self._files, self._file, self._names, self._batch_rows = files, file, names, batch_rows
        self._opened: Opened | None = None

    def batches(self, groups: list[int]) -> Iterator[tuple[int, Any]]:
        """The rows of consecutive groups; after a failure those that were handed over are skipped."""
        import pyarrow as pa

        first, last = (int(self._files.group_starts[group]) for group in (groups[0], groups[-1] + 1))
        position, attempt = first, 0
        while position < last:
            try:
                for start, batch in self._from(groups, first):
                    if start + batch.num_rows > position:
                        fresh = batch.slice(position - start) if position > start else batch
                        yield position, fresh
                        position += fresh.num_rows
                        attempt = 0
                if position != last:
                    self._files.check(self._file)
                    raise RunError(f"{self._name} has {last - position} rows less than before. {WHAT_TO_DO}")
            except (OSError, pa.ArrowException, EOFError) as error:
                self._opened = None
                self._files.check(self._file)
                pause_or_give_up(self._name, attempt, error)
                attempt += 1

    @property
    def _name(self) -> str:
        return self._files.name(self._file)

    def _from(self, groups: list[int], first: int) -> Iterator[tuple[int, Any]]:
        if self._opened is None:
            self._opened = self._open()
        inside = [int(self._files.group_places[group, 1]) for group in groups]
        for batch in self._opened.batches(inside, self._batch_rows):
            yield first, batch
            first += batch.num_rows

    def _open(self) -> Opened:
        files, store = self._files, self._files.places.store
        entry, tag = files.entries[self._file], files.tags[self._file]
        files.check(self._file)
        handle = store.open(entry.path)
        if tag is not None and tag_of(handle) != tag:
            raise RunError(f"{self._name} was written again since the scan was opened. {WHAT_TO_DO}")
        return files.form.open(handle, self._names, is_remote=store.is_remote)
