"""Parquet and Arrow files as a table: read at once, or left where they are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from coreset_mcmc.commands.budget import BYTES_PER_VALUE
from coreset_mcmc.commands.paths import name_of
from coreset_mcmc.commands.same_files import described
from coreset_mcmc.commands.table import Table
from coreset_mcmc.scans import Scan
from coreset_mcmc.scans.columns import common_columns, wanted
from coreset_mcmc.scans.files import open_files
from coreset_mcmc.scans.footer import FileFormat
from coreset_mcmc.scans.text import is_index
from coreset_mcmc.tables import digest, read_table

if TYPE_CHECKING:
    import pandas as pd


class ScannedTable(Table):
    """Files with an index at their end, from which sizes and types are known.

    Args:
        paths: as they were named.
        form: of all of them.
        single: the file itself if there is one alone, which is then read into memory by whoever reads such files.
    """

    def __init__(self, paths: Sequence[str], form: FileFormat, single: Path | None) -> None:
        self._single = single
        self._files, self._footers = open_files(list(paths), form, None)
        self.name = name_of(paths)
        found = dict.fromkeys(name for footer in self._footers.values() for name in footer.schema.names)
        self.names = [name for name in found if not is_index(name)]

    def num_bytes(self, columns: Sequence[str]) -> int:
        return self._files.size * len(columns) * BYTES_PER_VALUE

    def frame(self, columns: Sequence[str]) -> pd.DataFrame:
        if self._single is not None:
            return read_table(self._single, columns)
        return self._scan(columns).frame(0, self._files.size)

    def scan(self, columns: Sequence[str], target: Path) -> Scan:
        del target
        return self._scan(columns)

    def _scan(self, columns: Sequence[str]) -> Scan:
        """Columns that are not wanted may be missing in some files."""
        shape = wanted(list(columns))
        assert shape is not None
        return Scan(self._files, common_columns(self._files.places.shown, self._footers, shape), shape)

    def identity(self, *, in_memory: bool) -> dict[str, Any]:
        if self._single is not None and in_memory:
            return {"sha256": digest(self._single), "files": {}}
        files = self._files
        parts = zip(files.entries, files.digests, files.tags, strict=True)
        return {
            "sha256": "",
            "files": {
                files.name(number): described(entry.size, tag or entry.stamp, digest)
                for number, (entry, digest, tag) in enumerate(parts)
            },
        }
