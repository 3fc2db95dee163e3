"""The files of a scan as they were when it was opened: which there are, and which rows lie in which group of which.

Nothing is ever read from a file that has changed since: rows of two states would be mixed without anybody knowing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from coreset_mcmc.core.errors import InputError, RunError, require
from coreset_mcmc.scans.finding import Places, find
from coreset_mcmc.scans.footer import FileFormat, Footer, NotThatFormat
from coreset_mcmc.scans.retries import with_retries
from coreset_mcmc.scans.stores import Entry

FOOTERS_AT_ONCE = 16
WHAT_TO_DO = "Rows of two states would be mixed. Put the files back as they were, or scan and fit again."


@dataclass(frozen=True, eq=False)
class Files:
    """All files with rows, in natural order."""

    places: Places
    form: FileFormat
    listed: tuple[Entry, ...]
    """Every file that was there, those without rows too."""
    entries: tuple[Entry, ...]
    """Those with rows."""
    digests: tuple[str, ...]
    """Of their footers."""
    tags: tuple[str | None, ...]
    """ETags, where the store gives them."""
    starts: np.ndarray
    """(F + 1,): the global number of the first row of each file, and of the row after the last."""
    group_starts: np.ndarray
    """(G + 1,): the same for the groups of all files."""
    group_places: np.ndarray
    """(G, 2): the file of each group and its number there."""

    @property
    def size(self) -> int:
        return int(self.starts[-1])

    def name(self, file: int) -> str:
        """Relative to the folder of them all."""
        return self.places.name(self.entries[file].path)

    def groups(self, start: int, stop: int) -> range:
        """The groups, of all files, that hold these rows."""
        first = int(np.searchsorted(self.group_starts, start, side="right")) - 1
        return range(first, int(np.searchsorted(self.group_starts, stop, side="left"))) if stop > start else range(0)

    def file_of(self, row: int) -> int:
        """The number of the file that holds a row."""
        return int(np.searchsorted(self.starts, row, side="right")) - 1

    def place_of(self, row: int) -> str:
        """The file of a row, and its number there."""
        file = self.file_of(row)
        inside = f"row {row - int(self.starts[file])} of {self.name(file)}"
        return inside if len(self.entries) == 1 else f"{inside} (row {row} of all)"

    def check_all(self) -> None:
        """Look whether the same files are there and none has changed; it reads none."""
        before = {entry.path: entry for entry in self.listed}
        try:
            now = {entry.path: entry for entry in with_retries(self.places.look, self.places.shown)}
        except InputError as error:
            raise RunError(f"{error.subject}: {error.got}, since the scan was opened. {WHAT_TO_DO}") from error
        for path in [*before, *now]:
            self._compare(before.get(path), now.get(path))

    def check(self, file: int) -> None:
        """The same for one file."""
        entry = self.entries[file]
        now = with_retries(lambda: self.places.store.entries([entry.path]), self.name(file))
        self._compare(entry, now[0])

    def _compare(self, before: Entry | None, now: Entry | None) -> None:
        if before == now:
            return
        name = self.places.name((before or now).path)  # type: ignore[union-attr]
        if before is None:
            what = "was added"
        elif now is None:
            what = "has vanished"
        elif before.size != now.size:
            what = f"has changed: {before.size} bytes then, {now.size} now"
        else:
            what = "was written again"
        raise RunError(f"{name} {what} since the scan of {self.places.shown} was opened. {WHAT_TO_DO}")


def open_files(given: Any, form: FileFormat, options: Mapping[str, Any] | None) -> tuple[Files, dict[str, Footer]]:
    """Find the files and read their footers, several at a time."""
    places, listed = find(given, form.name, form.suffixes, options)
    with ThreadPoolExecutor(FOOTERS_AT_ONCE) as pool:
        read = list(pool.map(lambda entry: _footer(places, form, entry), listed))
    kept = [(entry, *parts) for entry, parts in zip(listed, read, strict=True) if parts[0].group_rows.sum() > 0]
    require(
        bool(kept),
        f"scan {places.shown}",
        got=f"no rows in {len(listed)} file{'s' if len(listed) > 1 else ''}",
        expected="at least one row",
        fix="Check what wrote them.",
    )
    entries, footers, tags = zip(*kept, strict=True)
    files = Files(
        places, form, tuple(listed), entries, tuple(footer.digest for footer in footers), tags, *_numbered(footers)
    )
    return files, {places.name(entry.path): footer for entry, footer in zip(entries, footers, strict=True)}


def _numbered(footers: Sequence[Footer]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where files and groups begin; groups without rows are left out."""
    places = [
        (file, group) for file, footer in enumerate(footers) for group in np.flatnonzero(footer.group_rows).tolist()
    ]
    sizes = np.array([footers[file].group_rows[group] for file, group in places], np.int64)
    totals = np.array([footer.group_rows.sum() for footer in footers], np.int64)
    return _cumulative(totals), _cumulative(sizes), np.array(places, np.int64)


def _cumulative(sizes: np.ndarray) -> np.ndarray:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])


def _footer(places: Places, form: FileFormat, entry: Entry) -> tuple[Footer, str | None]:
    name = places.name(entry.path)
    require(
        entry.size > 0,
        name,
        got="an empty file (0 bytes)",
        expected=f"a {form.name} file",
        fix="Check what wrote it; a table without rows is no empty file.",
    )

    def read() -> tuple[Footer, str | None]:
        with places.store.open(entry.path) as file:
            return form.footer(file, entry.size), tag_of(file)

    try:
        return with_retries(read, name)
    except NotThatFormat as error:
        raise InputError(
            name,
            got=str(error),
            expected=f"a complete {form.name} file",
            fix="Write or download it again, or leave it out.",
        ) from error
    except RunError as error:
        raise InputError(
            name, got=str(error), expected="a file that can be read", fix="Check its permissions."
        ) from error


def tag_of(file: Any) -> str | None:
    """The ETag of an open file, if its store has such a thing."""
    try:
        tag = file.metadata().get("ETag")
    except (NotImplementedError, AttributeError, OSError):
        return None
    return None if tag is None else bytes(tag).decode().strip('"')
