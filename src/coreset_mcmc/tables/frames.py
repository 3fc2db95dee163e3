"""Tables that are read in runs of rows: a data frame in memory, or files that are larger than memory.

Everything here knows a table by :class:`FrameSource` alone, so whatever is done with a data frame is done with files in
the same steps, and with the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, Protocol, runtime_checkable

import jax
import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.types import Batch
from coreset_mcmc.data.convert import check_names
from coreset_mcmc.data.engine import Engine, merged
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.leaf import Leaf
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.source import Source
from coreset_mcmc.data.task import Task

Frames = Iterator[tuple[int, pd.DataFrame]]
"""Leaves with their numbers."""
SAMPLED_ROWS = 4_096
"""Rows that tell one table from another, spread over all of them."""


@runtime_checkable
class FrameSource(Protocol):
    """Rows in a fixed order with columns of any type; it can be pickled."""

    @property
    def size(self) -> int:
        """The number of rows, known without reading them."""
        ...

    @property
    def names(self) -> Sequence[str]:
        """Of the columns."""
        ...

    @property
    def column_types(self) -> Mapping[str, Any]:
        """How each column is stored."""
        ...

    def frame(self, start: int, stop: int, names: Sequence[str]) -> pd.DataFrame:
        """These columns of rows ``start`` to ``stop``."""
        ...

    def frames(self, layout: Layout, numbers: Sequence[int], names: Sequence[str]) -> Frames:
        """These columns of leaves, with their numbers, in ascending order."""
        ...

    def place_of(self, row: int) -> str:
        """How a user would find a row."""
        ...

    def fingerprint(self, *, full: bool = False) -> Any:
        """What tells this table from others, in plain values."""
        ...


class FrameTable:
    """A data frame as a :class:`FrameSource`; what it hands out are views."""

    def __init__(self, frame: pd.DataFrame) -> None:
        check_frame(frame)
        self._columns = {str(name): frame[name].array for name in frame.columns}
        self._size = len(frame)

    @property
    def size(self) -> int:
        return self._size

    @property
    def names(self) -> list[str]:
        return list(self._columns)

    @property
    def column_types(self) -> dict[str, Any]:
        return {name: values.dtype for name, values in self._columns.items()}

    def frame(self, start: int, stop: int, names: Sequence[str]) -> pd.DataFrame:
        columns = {name: pd.Series(self._columns[name][start:stop], copy=False) for name in names}
        return pd.DataFrame(columns, index=pd.RangeIndex(stop - start), copy=False)

    def frames(self, layout: Layout, numbers: Sequence[int], names: Sequence[str]) -> Frames:
        for number in numbers:
            yield number, self.frame(*layout.rows_of_leaf(number), names)

    def place_of(self, row: int) -> str:
        return f"row {row}"

    def fingerprint(self, *, full: bool = False) -> Any:
        if full:
            chosen = self.frame(0, self.size, self.names)
        else:
            places = np.unique(np.linspace(0, self.size - 1, SAMPLED_ROWS).astype(np.int64))
            chosen = pd.DataFrame({name: values[places] for name, values in self._columns.items()})
        types = {name: str(dtype) for name, dtype in self.column_types.items()}
        return {"rows": self.size, "columns": types, "values": pd.util.hash_pandas_object(chosen).to_numpy()}


class FrameRows(Source):
    """Some columns of a table for passes over its rows: the batch of a leaf is a data frame."""

    def __init__(self, table: FrameSource, names: Sequence[str], values_per_row: int) -> None:
        self.table, self.names = table, list(names)
        self._layout = Layout.of(table.size, values_per_row)

    @property
    def size(self) -> int:
        return self.table.size

    @property
    def layout(self) -> Layout:
        return self._layout

    @property
    def schema(self) -> Batch:
        return {name: jax.ShapeDtypeStruct((), np.float64) for name in self.names}

    def read(self, start: int, stop: int) -> Batch:
        return self.table.frame(start, stop, self.names)

    def leaves(self, layout: Layout, numbers: Sequence[int]) -> Iterator[Leaf]:
        for number, frame in self.table.frames(layout, numbers, self.names):
            yield Leaf(layout, number, frame)

    def place_of(self, row: int) -> str:
        return self.table.place_of(row)

    def fingerprint(self, *, full: bool = False) -> Any:
        return {"table": self.table.fingerprint(full=full), "columns": self.names}


def scan_frames(rows: FrameRows, engine: Engine, task: Task, description: str) -> Any:
    """The result of a task for all rows of a table: a pass that brings no sample of rows along, which are no arrays."""
    parts = Rows(rows, engine).each_part([task], description)
    return reduce(lambda one, other: merged([task], one, other), parts)[0]


def as_table(table: Any) -> FrameSource:
    """A data frame or a table on disk, with rows and with names that tell its columns apart."""
    if isinstance(table, pd.DataFrame):
        return FrameTable(table)
    require(
        isinstance(table, FrameSource),
        "table",
        got=type(table).__name__,
        expected="a pandas DataFrame or a scan of files",
        fix="Build one with pandas.DataFrame(...), or read a file with read_table.",
    )
    require(table.size > 0, "table", got="0 rows", expected="at least one row", fix="Check what wrote the files.")
    source: FrameSource = table
    return source


def check_frame(frame: pd.DataFrame) -> None:
    """At least one row, and one column for each name."""
    require(len(frame) > 0, "table", got="0 rows", expected="at least one row", fix="Check the filter that made it.")
    check_names("table", frame.columns)
