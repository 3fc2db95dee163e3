"""Text files with delimiters as a table: read at once, or converted to Parquet and left there."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from coreset_mcmc.commands.budget import BYTES_PER_VALUE
from coreset_mcmc.commands.paths import is_address, name_of
from coreset_mcmc.commands.same_files import described
from coreset_mcmc.commands.table import Table
from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.scans import Scan, csv_to_parquet, scan_parquet
from coreset_mcmc.scans.csv import common_names
from coreset_mcmc.scans.finding import find
from coreset_mcmc.scans.text import DELIMITERS, is_compressed
from coreset_mcmc.tables import column_names, digest, read_table

if TYPE_CHECKING:
    import pandas as pd

SAMPLE_BYTES = 2**20
"""Of text, by which the number of rows is estimated."""


class TextTable(Table):
    """One file or several, each with the names of the columns in its first line."""

    converts = True

    def __init__(self, paths: Sequence[str]) -> None:
        remote = [path for path in paths if is_address(path)]
        require(
            not remote,
            f"table {remote[0].partition('?')[0] if remote else ''}",
            got="text in an object store",
            expected="Parquet there, or text on this machine",
            fix="Copy the files here, or convert them.",
        )
        self._places, self._entries = find(list(paths), "text", tuple(DELIMITERS), None)
        self._paths = [Path(entry.path) for entry in self._entries]
        self.name = name_of(paths)
        self.names = column_names(self._paths[0]) if len(self._paths) == 1 else common_names(self._paths)

    def num_bytes(self, columns: Sequence[str]) -> int:
        return sum(_num_rows(path) for path in self._paths) * len(columns) * BYTES_PER_VALUE

    def frame(self, columns: Sequence[str]) -> pd.DataFrame:
        """Types of several files are those of all their text, so that they take the same way as if streamed."""
        if len(self._paths) == 1:
            return read_table(self._paths[0], columns)
        with TemporaryDirectory() as folder:
            scan = scan_parquet(csv_to_parquet(self._paths, Path(folder) / "table.parquet"), list(columns))
            return scan.frame(0, scan.size)

    def scan(self, columns: Sequence[str], target: Path) -> Scan:
        """The file has the time of the text, so that it is the same file however often it is made."""
        if not target.exists():
            csv_to_parquet(self._paths, target)
        newest = max(path.stat().st_mtime_ns for path in self._paths)
        os.utime(target, ns=(newest, newest))
        return scan_parquet(target, list(columns))

    def identity(self, *, in_memory: bool) -> dict[str, Any]:
        if len(self._paths) == 1 and in_memory:
            return {"sha256": digest(self._paths[0]), "files": {}}
        return {
            "sha256": "",
            "files": {self._places.name(entry.path): described(entry.size, entry.stamp, "") for entry in self._entries},
        }


def _num_rows(path: Path) -> int:
    """By the length of the first lines."""
    size = path.stat().st_size
    try:
        with path.open("rb") as raw:
            file: Any = gzip.GzipFile(fileobj=raw) if is_compressed(path) else raw
            sample = file.read(SAMPLE_BYTES)
            taken = raw.tell()
    except (OSError, EOFError) as error:
        raise InputError(
            f"table {path}",
            got=f"something that cannot be read ({error})",
            expected="a complete file of text",
            fix="It may be cut off, or have the suffix of another format; write or download it again.",
        ) from error
    num_lines: int = sample.count(b"\n")
    return max(num_lines, 1) * size // max(taken, 1)
