"""The rows of a Dask DataFrame, in the order of its partitions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.errors import InputError, RunError, require
from coreset_mcmc.core.types import Batch
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.leaf import Leaf
from coreset_mcmc.data.source import Source
from coreset_mcmc.engines.troubles import require_extra
from coreset_mcmc.engines.worker import SentRows

Columns = Mapping[str, str | Sequence[str]] | Sequence[str]
"""Names of columns, or what a model calls them; several columns become a matrix."""


def is_dask_frame(data: Any) -> bool:
    """Whether this is a Dask DataFrame; Dask is not imported to find out."""
    return type(data).__module__.partition(".")[0] == "dask" and hasattr(data, "partitions")


def source_from_dask(frame: Any, columns: Columns | None = None) -> DaskFrame:
    """The rows of a Dask DataFrame; the lengths of its partitions are computed here, once.

    With ``cm.Dask`` its partitions are computed and kept on the cluster. Otherwise they are computed by Dask's default
    scheduler, one after the other.

    Args:
        frame: a ``dask.dataframe.DataFrame`` whose partitions are the same whenever they are computed.
        columns: a list of columns, or a mapping such as ``{"x": ["x1", "x2"], "y": "y"}``; by default all columns.
    """
    require_extra("dask", "dask.dataframe")
    names = [str(name) for name in frame.columns]
    chosen = _chosen(names, columns)
    needed = list(dict.fromkeys(name for group in chosen.values() for name in _group(group)))
    frame = frame[needed]
    schema = {name: _row_type(frame.dtypes, group) for name, group in chosen.items()}
    lengths = [int(length) for length in frame.map_partitions(len, meta=("length", "int64")).compute()]
    require(
        sum(lengths) > 0,
        "Dask DataFrame",
        got="0 rows",
        expected="at least one row",
        fix="Check the filter that produced the data.",
    )
    return DaskFrame(Contents(chosen, schema), lengths, frame)


class Contents(NamedTuple):
    """Which columns make up a batch, and of what types."""

    columns: dict[str, str | list[str]]
    schema: dict[str, jax.ShapeDtypeStruct]

    def batch(self, frame: Any, partition: int, length: int) -> Batch:
        """From a partition, a pandas DataFrame, that must be as long and of the types that were announced."""
        if len(frame) != length:
            raise RunError(
                f"Partition {partition} of the Dask DataFrame had {length} rows at first and has {len(frame)} now. "
                "Write the data to Parquet files and read those, so that they stay as they are."
            )
        return {name: self._array(frame, name, partition) for name in self.columns}

    def _array(self, frame: Any, name: str, partition: int) -> np.ndarray:
        group, wanted = self.columns[name], self.schema[name].dtype
        for column in _group(group):
            found = frame[column].dtype
            require(
                isinstance(found, np.dtype) and np.can_cast(found, wanted, "safe"),
                f"partition {partition} of the Dask DataFrame, column {column!r}",
                got=f"type {found}",
                expected=f"type {wanted}, as the DataFrame announces",
                fix="Gaps turn whole numbers into floats: fill or drop them, or convert with astype.",
            )
        array: np.ndarray = frame[group].to_numpy(dtype=wanted)
        return array


class Pieces(NamedTuple):
    """How the rows of a part are cut out of the partitions that hold them."""

    contents: Contents
    partitions: list[int]
    lengths: list[int]
    skipped: int
    """Rows of the first partition that belong to earlier parts."""
    leaf_lengths: list[int]


def cut(pieces: Pieces, *frames: Any) -> SentRows:
    """The rows of each leaf of a part; runs on a worker."""
    batches = [
        pieces.contents.batch(frame, partition, length)
        for frame, partition, length in zip(frames, pieces.partitions, pieces.lengths, strict=True)
    ]
    whole = jax.tree.map(lambda *arrays: np.concatenate(arrays), *batches)
    ends = pieces.skipped + np.cumsum(pieces.leaf_lengths)
    return [
        (jax.tree.map(lambda array, end=end, length=length: array[end - length : end], whole), None)
        for end, length in zip(ends, pieces.leaf_lengths, strict=True)
    ]


class DaskFrame(Source):
    """Made by :func:`source_from_dask`."""

    def __init__(self, contents: Contents, lengths: Sequence[int], frame: Any) -> None:
        from dask.base import tokenize

        self.contents = contents
        self._lengths = list(lengths)
        self._starts = np.concatenate([[0], np.cumsum(self._lengths)]).tolist()
        self._delayed = frame.to_delayed()
        self._token = tokenize(frame)

    @property
    def size(self) -> int:
        return int(self._starts[-1])

    @property
    def schema(self) -> Batch:
        return self.contents.schema

    def read(self, start: int, stop: int) -> Batch:
        return self._read(start, stop, {})

    def leaves(self, layout: Layout, numbers: Sequence[int]) -> Iterator[Leaf]:
        """Each partition is computed once, if leaves follow one another."""
        computed: dict[int, Batch] = {}
        for number in numbers:
            yield Leaf(layout, number, self._read(*layout.rows_of_leaf(number), computed))

    def pieces(self, layout: Layout, part: int) -> tuple[Pieces, list[Any]]:
        """How a part is cut, and the delayed partitions that it is cut from."""
        bounds = [layout.rows_of_leaf(number) for number in layout.leaves_of_part(part)]
        partitions = self._partitions(bounds[0][0], bounds[-1][1])
        lengths = [self._lengths[partition] for partition in partitions]
        skipped = bounds[0][0] - self._starts[partitions[0]]
        pieces = Pieces(self.contents, partitions, lengths, skipped, [stop - start for start, stop in bounds])
        return pieces, [self._delayed[partition] for partition in partitions]

    def place_of(self, row: int) -> str:
        partition = bisect_right(self._starts, row) - 1
        return f"row {row} (row {row - self._starts[partition]} of partition {partition})"

    def fingerprint(self, *, full: bool = False) -> Any:
        """What Dask calls the computation, with the lengths of its partitions; all values if ``full``."""
        types = {name: [str(row.dtype), list(row.shape)] for name, row in self.contents.schema.items()}
        known = {"rows": self.size, "partitions": self._lengths, "types": types, "computation": self._token}
        return {**known, "values": self.read(0, self.size)} if full else known

    def _partitions(self, start: int, stop: int) -> list[int]:
        first = bisect_right(self._starts, start) - 1
        after = bisect_right(self._starts, stop - 1)
        return [partition for partition in range(first, after) if self._lengths[partition]]

    def _read(self, start: int, stop: int, computed: dict[int, Batch]) -> Batch:
        partitions = self._partitions(start, stop)
        for partition in [other for other in computed if other not in partitions]:
            del computed[partition]
        for partition in partitions:
            if partition not in computed:
                frame = self._delayed[partition].compute()
                computed[partition] = self.contents.batch(frame, partition, self._lengths[partition])
        runs = []
        for partition in partitions:
            first = self._starts[partition]
            inside = slice(max(start - first, 0), stop - first)
            runs.append(jax.tree.map(lambda array, inside=inside: array[inside], computed[partition]))
        return jax.tree.map(lambda *arrays: np.concatenate(arrays), *runs)


def _group(group: str | Sequence[str]) -> list[str]:
    return [group] if isinstance(group, str) else list(group)


def _chosen(names: list[str], columns: Columns | None) -> dict[str, str | list[str]]:
    if columns is None:
        columns = names
    pairs = columns.items() if isinstance(columns, Mapping) else [(name, name) for name in columns]
    chosen = {name: group if isinstance(group, str) else list(group) for name, group in pairs}
    absent = [name for group in chosen.values() for name in _group(group) if name not in names]
    require(
        bool(chosen) and not absent,
        "columns",
        got=f"{absent}, which the Dask DataFrame has not" if absent else "no columns",
        expected=f"some of {names}",
        fix='Name columns in a list, or map names of the model to them: {"x": ["x1", "x2"], "y": "y"}.',
    )
    return chosen


def _row_type(types: Any, group: str | list[str]) -> jax.ShapeDtypeStruct:
    for column in _group(group):
        if not isinstance(types[column], np.dtype) or types[column].kind not in "biuf":
            raise InputError(
                f"column {column!r} of the Dask DataFrame",
                got=f"type {types[column]}",
                expected="real numbers or booleans of a type of NumPy",
                fix='Encode text, dates and categories as numbers, convert others with astype("float64"), or leave the '
                "column out by columns=.",
            )
    shape = () if isinstance(group, str) else (len(group),)
    return jax.ShapeDtypeStruct(shape, np.result_type(*(types[column] for column in _group(group))))
