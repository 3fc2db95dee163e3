"""The tidy tables of all benchmarks: a CSV file with one row for each run, appended as soon as the run has ended.

Some columns are the key of a run. A command that was stopped is given again and makes only the runs whose key is not in
the file. A last line that was cut short is as good as absent: its run is made again.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pandas as pd

from coreset_mcmc.core.errors import require

Key = tuple[str, ...]


class Keyed(Protocol):
    """A run that can be found in a table."""

    @property
    def key(self) -> Key:
        """Values of the key columns, as the file holds them."""
        ...


Job = TypeVar("Job", bound=Keyed)


@dataclass(frozen=True)
class RunsTable:
    """A CSV file of runs; it need not exist yet.

    Args:
        path: of the file.
        fields: its columns.
        keys: those that tell one run from another.
        digits: that numbers are written with.
    """

    path: Path
    fields: tuple[str, ...]
    keys: tuple[str, ...]
    digits: int = 5

    def append(self, *rows: Mapping[str, Any]) -> None:
        """Add rows at once, so that an interruption loses nothing that has ended; missing values are left empty."""
        self._check_columns()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        text = io.StringIO()
        writer = csv.DictWriter(text, self.fields)
        whole = self._whole_bytes()
        if not whole:
            writer.writeheader()
        for row in rows:
            writer.writerow({field: self._written(row.get(field, "")) for field in self.fields})
        with self.path.open("ab") as file:
            file.truncate(len(whole))
            file.write(text.getvalue().encode())

    def rows(self) -> list[dict[str, str]]:
        """All runs, as texts."""
        self._check_columns()
        return list(csv.DictReader(io.StringIO(self._whole_bytes().decode(), newline="")))

    def finished(self) -> set[Key]:
        """Keys of the runs that have ended."""
        return {tuple(row[key] for key in self.keys) for row in self.rows()}

    def missing(self, jobs: Iterable[Job]) -> list[Job]:
        """Those that have no row."""
        finished = self.finished()
        return [job for job in jobs if job.key not in finished]

    def frame(self, texts: Iterable[str] = ()) -> pd.DataFrame:
        """All runs with numbers as numbers; columns of ``texts`` stay texts where they would be taken for numbers."""
        require(
            self.path.exists(), str(self.path), got="no such file", expected="a table of runs",
            fix="Make the runs first.",
        )  # fmt: skip
        self._check_columns()
        return pd.read_csv(io.BytesIO(self._whole_bytes()), dtype=dict.fromkeys(texts, "string"))

    def _whole_bytes(self) -> bytes:
        """The file up to its last whole line."""
        content = self.path.read_bytes() if self.path.exists() else b""
        return content[: content.rfind(b"\n") + 1]

    def _check_columns(self) -> None:
        whole = self._whole_bytes()
        if not whole:
            return
        found = next(csv.reader([whole.decode().splitlines()[0]]))
        require(
            tuple(found) == self.fields,
            str(self.path),
            got=f"columns {found}",
            expected="the columns of this version",
            fix="Use another --out folder, or move the old table away.",
        )

    def _written(self, value: Any) -> Any:
        if isinstance(value, float):
            return f"{value:.{self.digits}g}"
        return " ".join(value.splitlines()) if isinstance(value, str) else value
