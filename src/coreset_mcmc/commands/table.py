"""A table that was named on the command line, before its rows are read: what can be known of it, and how to read it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.tables import column_names, digest, read_table

if TYPE_CHECKING:
    import pandas as pd

    from coreset_mcmc.scans import Scan


class Table(ABC):
    """Files with the same columns."""

    name: str
    """In a line of text."""
    names: list[str]
    """Of the columns."""
    converts = False
    """Whether it has to be converted before it can be streamed."""

    @abstractmethod
    def num_bytes(self, columns: Sequence[str]) -> int:
        """About what these columns take in memory."""

    @abstractmethod
    def frame(self, columns: Sequence[str]) -> pd.DataFrame:
        """All rows."""

    @abstractmethod
    def scan(self, columns: Sequence[str], target: Path) -> Scan:
        """Rows that stay where they are; ``target`` is where they may be converted to."""

    @abstractmethod
    def identity(self, *, in_memory: bool) -> dict[str, Any]:
        """What tells the table from others: values of the configuration's part about data."""

    @property
    def can_stream(self) -> bool:
        return True


class WholeTable(Table):
    """A single file or folder that can only be read at once."""

    def __init__(self, path: Path, reason: str) -> None:
        self._path, self._reason = path, reason
        self.name = path.name
        self.names = column_names(path)

    def num_bytes(self, columns: Sequence[str]) -> int:
        files = [self._path] if self._path.is_file() else [part for part in self._path.rglob("*") if part.is_file()]
        return sum(file.stat().st_size for file in files) * len(columns) // len(self.names)

    def frame(self, columns: Sequence[str]) -> pd.DataFrame:
        return read_table(self._path, columns)

    def scan(self, columns: Sequence[str], target: Path) -> Scan:
        raise InputError(
            f"table {self._path}",
            got=self._reason,
            expected="files that can be read a stretch at a time",
            fix="Use --engine memory, or save the table as Parquet: frame.to_parquet('table.parquet').",
        )

    def identity(self, *, in_memory: bool) -> dict[str, Any]:
        return {"sha256": digest(self._path), "files": {}}

    @property
    def can_stream(self) -> bool:
        return False
