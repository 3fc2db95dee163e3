"""A Parquet file with a line for each row of the data, written as the lines come: it is whole, or it is not there."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from coreset_mcmc.core.errors import RunError, require
from coreset_mcmc.core.files import write_whole

ROW = "row"
"""The column of global row numbers."""


def check_place(path: Path | str) -> Path:
    """Whether a file could be written there, before any work."""
    place = Path(path)
    require(
        place.suffix == ".parquet",
        "to",
        got=repr(str(path)),
        expected="a name that ends in .parquet",
        fix='Pass e.g. to="values.parquet".',
    )
    require(
        place.parent.is_dir() and os.access(place.parent, os.W_OK) and not place.is_dir(),
        "to",
        got=repr(str(path)),
        expected="a file in a folder that exists and can be written to",
        fix="Make the folder first.",
    )
    return place


def write_rows(path: Path, parts: Generator[Mapping[str, np.ndarray], None, None]) -> Path:
    """Columns of consecutive rows, part after part, each of which is a row group.

    If the disk is full, or whatever else fails, the file that was there before is there still, and nothing else.
    """
    is_writing, num_rows = True, 0

    def write(place: Path) -> None:
        nonlocal is_writing, num_rows
        writer: Any = None
        try:
            while True:
                is_writing = False
                columns = next(parts, None)
                is_writing = True
                if columns is None:
                    break
                table = _table(columns, num_rows)
                writer = writer or _writer(place, table)
                writer.write_table(table, row_group_size=max(len(table), 1))
                num_rows += len(table)
        finally:
            if writer is not None:
                writer.close()

    try:
        return write_whole(path, write)
    except OSError as error:
        if not is_writing:
            raise
        raise RunError(
            f"{path}: writing failed after {num_rows:,} rows ({error.strerror or error}), and no part of the file was "
            "left behind. Make room on that disk or choose another one, and call again."
        ) from error
    finally:
        parts.close()


def _table(columns: Mapping[str, np.ndarray], first_row: int) -> Any:
    import pyarrow  # noqa: PLC0415 - heavy, and few need it

    count = len(next(iter(columns.values())))
    return pyarrow.table({ROW: np.arange(first_row, first_row + count, dtype=np.int64), **columns})


def _writer(place: Path, table: Any) -> Any:
    from pyarrow import parquet  # noqa: PLC0415 - heavy, and few need it

    return parquet.ParquetWriter(place, table.schema)
