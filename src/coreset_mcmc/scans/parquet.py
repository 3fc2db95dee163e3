"""Parquet files: row groups, read a stretch at a time so that their size does not matter."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from coreset_mcmc.scans.footer import FileFormat, Footer, NotThatFormat, Opened, can_hold_nan, tail

MAGIC, ENCRYPTED = b"PAR1", b"PARE"
END_BYTES = 8
"""The length of the footer and the magic word."""
FIRST_GUESS = 2**16
"""Most footers are shorter than this, so that one request brings them."""
BUFFER = 2**20
"""Bytes of a column that are read at a time from a local disk."""


class Parquet(FileFormat):
    """https://parquet.apache.org"""

    name = "Parquet"
    suffixes = (".parquet", ".pq")

    def footer(self, file: Any, size: int) -> Footer:
        import pyarrow as pa
        from pyarrow import parquet

        end = _footer_bytes(file, size)
        try:
            metadata = parquet.read_metadata(pa.BufferReader(end))
            schema = metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError) as error:
            raise NotThatFormat(f"a damaged index at its end ({str(error).splitlines()[0]})") from error
        rows = np.array([metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)], np.int64)
        return Footer(rows, schema, _lacks(metadata, schema), hashlib.sha256(end).hexdigest())

    def open(self, file: Any, names: Sequence[str], *, is_remote: bool) -> Opened:
        from pyarrow import parquet

        reader = parquet.ParquetFile(file, pre_buffer=is_remote, buffer_size=0 if is_remote else BUFFER)
        return _OpenedParquet(reader, list(names))


class _OpenedParquet(Opened):
    def __init__(self, reader: Any, names: list[str]) -> None:
        self._reader = reader
        self._names = names

    def batches(self, groups: Sequence[int], rows: int) -> Iterator[Any]:
        yield from self._reader.iter_batches(batch_size=rows, row_groups=list(groups), columns=self._names)


def _footer_bytes(file: Any, size: int) -> bytes:
    if size < END_BYTES + len(MAGIC):
        raise NotThatFormat(f"{size} bytes, too few for a Parquet file")
    end = tail(file, size, FIRST_GUESS)
    if end[-4:] == ENCRYPTED:
        raise NotThatFormat("an encrypted Parquet file")
    if end[-4:] != MAGIC:
        file.seek(0)
        began_well = bytes(file.read(4)) == MAGIC
        raise NotThatFormat("a Parquet file that is cut off" if began_well else "a file in another format")
    length = int.from_bytes(end[-8:-4], "little") + END_BYTES
    if length + len(MAGIC) > size:
        raise NotThatFormat("a damaged index at its end")
    return end[-length:] if length <= len(end) else tail(file, size, length)


def _lacks(metadata: Any, schema: Any) -> dict[str, bool | None]:
    """Whether values are missing, by the statistics of the row groups, where these are kept."""
    result: dict[str, bool | None] = {}
    first = 0
    for field in schema:
        if not can_hold_nan(field.type):
            result[field.name] = _is_null_in(metadata, first) if field.nullable else False
        first += _num_leaves(field.type)
    return result


def _is_null_in(metadata: Any, column: int) -> bool | None:
    is_known = True
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(column).statistics
        if statistics is None or not statistics.has_null_count:
            is_known = False
        elif statistics.null_count:
            return True
    return False if is_known else None


def _num_leaves(kind: Any) -> int:
    """Columns of the file that a column of the table takes."""
    import pyarrow as pa

    if pa.types.is_map(kind):
        return _num_leaves(kind.key_type) + _num_leaves(kind.item_type)
    if pa.types.is_struct(kind):
        return sum(_num_leaves(field.type) for field in kind)
    return _num_leaves(kind.value_type) if pa.types.is_nested(kind) else 1
