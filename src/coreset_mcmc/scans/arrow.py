"""Arrow files, which Feather is another name for: record batches with an index at the end of the file.

The index says where each batch lies, and the head of a batch how many rows it has and how many values are missing
(https://arrow.apache.org/docs/format/Columnar.html). Arrow's own reader gives neither without reading the rows, so the
few tables of both are read here.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from coreset_mcmc.scans.footer import FileFormat, Footer, NotThatFormat, Opened, can_hold_nan, tail

MAGIC = b"ARROW1"
STREAM = b"\xff\xff\xff\xff"
END_BYTES = 4 + len(MAGIC)
BLOCK_BYTES = 24
NODE_BYTES = 16


class Arrow(FileFormat):
    """The file format of Arrow IPC, compressed or not; streams have no index."""

    name = "Arrow"
    suffixes = (".arrow", ".feather", ".ipc")

    def footer(self, file: Any, size: int) -> Footer:
        import pyarrow as pa

        end = _footer_bytes(file, size)
        try:
            file.seek(0)
            schema = pa.ipc.open_file(file).schema
            heads = [_Head(file, *block) for block in _blocks(end)]
        except (pa.ArrowException, OSError, struct.error, IndexError) as error:
            raise NotThatFormat(f"a damaged index at its end ({str(error).splitlines()[0]})") from error
        rows = np.array([head.rows for head in heads], np.int64)
        return Footer(rows, schema, _lacks(heads, schema), hashlib.sha256(end).hexdigest())

    def open(self, file: Any, names: Sequence[str], *, is_remote: bool) -> Opened:
        import pyarrow as pa

        schema = pa.ipc.open_file(file).schema
        fields = [schema.get_field_index(name) for name in names]
        file.seek(0)
        return _OpenedArrow(pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=fields)))


class _OpenedArrow(Opened):
    def __init__(self, reader: Any) -> None:
        self._reader = reader

    def batches(self, groups: Sequence[int], rows: int) -> Iterator[Any]:
        for group in groups:
            yield self._reader.get_batch(group)


def _footer_bytes(file: Any, size: int) -> bytes:
    file.seek(0)
    start = bytes(file.read(len(MAGIC)))
    if start[:4] == STREAM:
        raise NotThatFormat("a stream of Arrow batches, which has no index")
    if start != MAGIC:
        raise NotThatFormat("a file in another format")
    end = tail(file, size, END_BYTES)
    if end[4:] != MAGIC or size < 2 * END_BYTES:
        raise NotThatFormat("an Arrow file that is cut off")
    (length,) = struct.unpack("<i", end[:4])
    if not 0 < length < size:
        raise NotThatFormat("a damaged index at its end")
    return tail(file, size, length + END_BYTES)[:length]


class _Table:
    """A table of a flatbuffer: fields are found through an index of offsets before it."""

    def __init__(self, data: bytes, place: int) -> None:
        self.data = data
        self.place = place

    @classmethod
    def root(cls, data: bytes) -> _Table:
        return cls(data, _number("<I", data, 0))

    def _field(self, number: int) -> int | None:
        index = self.place - _number("<i", self.data, self.place)
        if 4 + 2 * number >= _number("<H", self.data, index):
            return None
        offset = _number("<H", self.data, index + 4 + 2 * number)
        return self.place + offset if offset else None

    def integer(self, number: int) -> int:
        place = self._field(number)
        return 0 if place is None else _number("<q", self.data, place)

    def table(self, number: int) -> _Table:
        place = self._field(number)
        if place is None:
            raise IndexError("a part is missing")
        return _Table(self.data, place + _number("<I", self.data, place))

    def structs(self, number: int, size: int) -> list[int]:
        """Where each item of a list lies."""
        place = self._field(number)
        if place is None:
            return []
        start = place + _number("<I", self.data, place)
        return [start + 4 + size * item for item in range(_number("<I", self.data, start))]


def _number(kind: str, data: bytes, place: int) -> int:
    return int(struct.unpack_from(kind, data, place)[0])


def _blocks(footer: bytes) -> Iterator[tuple[int, int]]:
    """Where the head of each record batch begins, and its length."""
    for place in _Table.root(footer).structs(3, BLOCK_BYTES):
        yield _number("<q", footer, place), _number("<i", footer, place + 8)


class _Head:
    """What is known of a record batch before its values."""

    def __init__(self, file: Any, offset: int, length: int) -> None:
        file.seek(offset)
        data = bytes(file.read(length))
        batch = _Table.root(data[8:] if data[:4] == STREAM else data[4:]).table(2)
        self.rows = batch.integer(0)
        self.missing = [_number("<q", batch.data, place + 8) for place in batch.structs(1, NODE_BYTES)]


def _lacks(heads: list[_Head], schema: Any) -> dict[str, bool | None]:
    result: dict[str, bool | None] = {}
    first = 0
    for field in schema:
        if not can_hold_nan(field.type):
            result[field.name] = any(head.missing[first] for head in heads)
        first += _num_nodes(field.type)
    return result


def _num_nodes(kind: Any) -> int:
    """Arrays that a column takes: itself and those inside it."""
    import pyarrow as pa

    if not pa.types.is_nested(kind):
        return 1
    return 1 + sum(_num_nodes(kind.field(place).type) for place in range(kind.num_fields))
