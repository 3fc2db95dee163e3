"""Text files into one Parquet file, a stretch at a time.

Types are the same as if the whole text were read at once: for each column the first type in Arrow's order that takes
all of its values. They are guessed from a first stretch; a later value that does not fit moves its column on to the
next type that takes this value, and the conversion starts over, so that nothing is lost or left out. Each type that is
passed over has met a value that it does not take.
"""

from __future__ import annotations

import io
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.files import write_whole
from coreset_mcmc.core.watching import tell
from coreset_mcmc.scans import text

BLOCK_BYTES = 2**22
"""Bytes of text that are converted at a time; types are guessed from the first of these, and Arrow reads 32 ahead."""
GROUP_ROWS, GROUP_BYTES = 2**18, 2**26
"""A row group is full with so many rows or bytes."""
DOES_NOT_FIT = re.compile(
    r"In CSV column #(\d+): .*?CSV conversion error to .*?: "
    r"(?:invalid value '(?P<value>.*)'$|.*?zone offset in '(?P<zoned>.*?)')",
    re.DOTALL,
)
"""Arrow's words for a value that a type does not take."""


class _DoesNotFit(Exception):  # noqa: N818 - the conversion starts over
    """A value of a column that its type does not take."""

    def __init__(self, column: int, value: str) -> None:
        super().__init__(column, value)
        self.column = column
        self.value = value


def csv_to_parquet(given: str | os.PathLike[str] | Sequence[str | os.PathLike[str]], target: Path | str) -> Path:
    """Write the rows of text files with the same columns into one Parquet file, whole or not at all."""
    paths = [Path(given)] if isinstance(given, str | os.PathLike) else [Path(item) for item in given]
    names = common_names(paths)
    types: dict[str, Any] = {}

    def write(beside: Path) -> None:
        while True:
            try:
                return _convert(paths, beside, types)
            except _DoesNotFit as error:
                name = names[error.column]
                types[name] = _next_type(paths[0], types[name], error.value)

    return write_whole(Path(target), write)


def common_names(paths: Sequence[Path]) -> list[str]:
    """The names of the columns, which all files must have."""
    require(bool(paths), "text files", got="none", expected="at least one", fix="Check the pattern.")
    first: list[str] = []
    for path in paths:
        size = path.stat().st_size if path.is_file() else None
        require(size is not None, f"table {path}", got="no such file", expected="a file", fix="Check the path.")
        require(bool(size), f"table {path}", got="an empty file", expected="a table", fix="Check what wrote it.")
        try:
            names = text.header(path)[0]
        except UnicodeDecodeError as error:
            raise text.not_utf8(path) from error
        repeated = sorted(name for name, count in Counter(names).items() if count > 1)
        require(
            not repeated and all(name.strip() for name in names),
            f"table {path}",
            got=f"repeated columns {repeated}" if repeated else "columns without a name",
            expected="one name for each column in the first line",
            fix="Rename the columns.",
        )
        first = first or names
        require(
            names == first,
            f"table {path}",
            got=f"columns {names[:20]}",
            expected=f"those of {paths[0]}: {first[:20]}",
            fix="Convert tables with other columns apart.",
        )
    return first


def _convert(paths: Sequence[Path], target: Path, types: dict[str, Any]) -> None:
    """One attempt; types that are not known yet are guessed and added to ``types``."""
    from pyarrow import parquet

    writer: Any = None
    progress = _Progress(paths)
    try:
        for path in paths:
            with _opened(path) as (raw, stream):
                for group in _groups(_batches(path, stream, types)):
                    writer = writer or parquet.ParquetWriter(target, group.schema)
                    writer.write_table(group, row_group_size=GROUP_ROWS)
                    progress.add(group.num_rows, raw.tell())
            progress.end_file(path)
        require(progress.rows > 0, f"table {paths[0]}", got="no rows", expected="some", fix="Check what wrote it.")
    finally:
        if writer is not None:
            writer.close()


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Any]]:
    """The file, which knows how far it is read, and the text in it."""
    import pyarrow as pa

    with pa.OSFile(str(path)) as raw:
        yield raw, pa.CompressedInputStream(raw, "gzip") if text.is_compressed(path) else raw


def _batches(path: Path, stream: Any, types: dict[str, Any]) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import csv

    try:
        reader = csv.open_csv(
            stream,
            read_options=csv.ReadOptions(block_size=BLOCK_BYTES),
            **text.options(path, column_types=types),
        )
        for field in reader.schema:
            types.setdefault(field.name, field.type)
        if any(pa.types.is_binary(kind) for kind in types.values()):
            raise text.not_utf8(path)
        yield from reader
    except (pa.ArrowException, OSError) as error:
        match = DOES_NOT_FIT.search(str(error))
        if match is None:
            raise _explained(path, error) from error
        raise _DoesNotFit(int(match[1]), match["value"] or match["zoned"] or "") from error


def _groups(batches: Iterator[Any]) -> Iterator[Any]:
    """Batches put together until they fill a row group."""
    import pyarrow as pa

    waiting: list[Any] = []
    for batch in batches:
        waiting.append(batch)
        if sum(item.num_rows for item in waiting) >= GROUP_ROWS or sum(item.nbytes for item in waiting) >= GROUP_BYTES:
            yield pa.Table.from_batches(waiting)
            waiting = []
    if waiting:
        yield pa.Table.from_batches(waiting)


def _explained(path: Path, error: Exception) -> InputError:
    summary = str(error).strip().splitlines()[0]
    return text.explain(path, error) or InputError(
        f"table {path}",
        got=f"something that cannot be read as text with delimiters ({summary})",
        expected="a complete table in text form",
        fix="It may be cut off, or have the suffix of another format; write or download it again.",
    )


def _next_type(path: Path, kind: Any, value: str) -> Any:
    """The first type after ``kind``, in the order in which Arrow guesses, that takes a value."""
    import pyarrow as pa

    order = [
        *(pa.null(), pa.int64(), pa.bool_(), pa.date32(), pa.time32("s")),
        *(pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("s", "UTC"), pa.timestamp("ns", "UTC")),
        *(pa.float64(), pa.string()),
    ]
    later = order[order.index(kind) + 1 :]
    return next((item for item in later if _takes(path, item, value)), pa.string())


def _takes(path: Path, kind: Any, value: str) -> bool:
    import pyarrow as pa
    from pyarrow import csv

    quoted = value.replace('"', '""')
    try:
        csv.read_csv(io.BytesIO(f'column\n"{quoted}"\n'.encode()), **text.options(path, column_types={"column": kind}))
    except pa.ArrowInvalid:
        return False
    return True


class _Progress:
    """Rows so far, and in all by the share of bytes that is read."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._description = f"converting {paths[0].name} to Parquet" if len(paths) == 1 else "converting to Parquet"
        self._num_bytes = sum(path.stat().st_size for path in paths)
        self._before = 0
        self.rows = 0

    def add(self, count: int, position: int) -> None:
        self.rows += count
        share = max(min((self._before + position) / self._num_bytes, 1.0), 1e-9)
        tell(self._description, self.rows, max(round(self.rows / share), self.rows))

    def end_file(self, path: Path) -> None:
        self._before += path.stat().st_size
        if self._before >= self._num_bytes:
            tell(self._description, self.rows, self.rows)
