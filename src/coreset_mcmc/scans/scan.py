"""A table in files as a source of rows: what is known without reading, and reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.types import Batch
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.leaf import Leaf
from coreset_mcmc.data.source import Source
from coreset_mcmc.scans.columns import Column, Shape, check_numbers, suggestion
from coreset_mcmc.scans.files import Files
from coreset_mcmc.scans.fingerprint import fingerprint
from coreset_mcmc.scans.frames import as_frame
from coreset_mcmc.scans.numbers import MissingValue, fill, number_type
from coreset_mcmc.scans.reading import rows_of

if TYPE_CHECKING:
    import pandas as pd


class Scan(Source):
    """Rows on disk or in an object store, made by ``scan_parquet`` or ``scan_arrow``.

    It can be pickled: files are opened by whoever reads.
    """

    def __init__(self, files: Files, columns: dict[str, Column], shape: Shape) -> None:
        self.files = files
        self._columns = columns
        self._shape = shape

    def __repr__(self) -> str:
        places = self.files.places
        return f"Scan({places.shown!r}: {self.size} rows in {len(self.files.entries)} files, columns {self.names})"

    @property
    def size(self) -> int:
        return self.files.size

    @property
    def names(self) -> list[str]:
        """The columns, as they are called in the files."""
        return list(self._columns)

    @property
    def column_types(self) -> dict[str, Any]:
        """The Arrow type of each column, which holds the values of all files."""
        return {name: column.kind for name, column in self._columns.items()}

    @cached_property
    def schema(self) -> Batch:
        """From each name, or key of the mapping, to the shape and type of one row; refuses what is no number."""
        check_numbers(self.files.places.shown, self._columns)
        return {
            key: jax.ShapeDtypeStruct(() if isinstance(value, str) else (len(value),), self._type(_tuple(value)))
            for key, value in self._shape.items()
        }

    def _type(self, names: tuple[str, ...]) -> np.dtype:
        columns = [self._columns[name] for name in names]
        return np.result_type(*(number_type(column.kind, column.lacks) for column in columns))

    def read(self, start: int, stop: int) -> Batch:
        whole = self._empty(stop - start)
        step = self.layout.leaf_rows
        runs = [(first, min(first + step, stop)) for first in range(start, stop, step)]
        for (first, last), pieces in zip(runs, rows_of(self.files, runs, self.names, step), strict=True):
            self._fill(
                jax.tree.map(lambda array, part=slice(first - start, last - start): array[part], whole), first, pieces
            )
        return whole

    def leaves(self, layout: Layout, numbers: Sequence[int]) -> Iterator[Leaf]:
        """One group after the other, each decoded once. Whoever reads the first leaf looks after all files before."""
        if len(numbers) and numbers[0] == 0:
            self.files.check_all()
        runs = [layout.rows_of_leaf(number) for number in numbers]
        batches = rows_of(self.files, runs, self.names, layout.leaf_rows)
        for number, (start, stop), pieces in zip(numbers, runs, batches, strict=True):
            batch = self._empty(stop - start)
            self._fill(batch, start, pieces)
            yield Leaf(layout, number, batch)

    def _empty(self, count: int) -> dict[str, np.ndarray]:
        return {key: np.empty((count, *row.shape), row.dtype) for key, row in self.schema.items()}

    def _fill(self, batch: dict[str, np.ndarray], start: int, pieces: Sequence[Any]) -> None:
        done = 0
        for piece in pieces:
            for key, array in batch.items():
                try:
                    fill(array[done : done + piece.num_rows], piece, _tuple(self._shape[key]))
                except MissingValue as missing:
                    raise InputError(
                        f"column {missing.name!r}",
                        got=f"a missing value in {self.place_of(start + done + missing.place)}",
                        expected="a value in every row",
                        fix="Drop or impute such rows before they are written.",
                    ) from None
            done += piece.num_rows

    def frame(self, start: int, stop: int, names: Sequence[str] | None = None) -> pd.DataFrame:
        """Rows as a data frame with text, categories and dates, as ``read_table`` would give them."""
        wanted = self._checked(names)
        (pieces,) = rows_of(self.files, [(start, stop)], wanted, self.layout.leaf_rows)
        return self._frame(pieces, wanted)

    def frames(
        self, layout: Layout, numbers: Sequence[int], names: Sequence[str] | None = None
    ) -> Iterator[tuple[int, pd.DataFrame]]:
        """The frames of these leaves with their numbers, in ascending order, each group decoded once."""
        wanted = self._checked(names)
        if len(numbers) and numbers[0] == 0:
            self.files.check_all()
        runs = [layout.rows_of_leaf(number) for number in numbers]
        for number, pieces in zip(numbers, rows_of(self.files, runs, wanted, layout.leaf_rows), strict=True):
            yield number, self._frame(pieces, wanted)

    def _checked(self, names: Sequence[str] | None) -> list[str]:
        wanted = self.names if names is None else list(dict.fromkeys(names))
        for name in wanted:
            require(
                name in self._columns,
                f"scan {self.files.places.shown}",
                got=f"no column {name!r}",
                expected=f"one of {self.names[:20]}{' ...' if len(self.names) > 20 else ''}",
                fix=suggestion(name, self.names),
            )
        return wanted

    def _frame(self, pieces: Sequence[Any], names: Sequence[str]) -> pd.DataFrame:
        return as_frame(pieces, {name: self._columns[name] for name in names})

    @property
    def layout(self) -> Layout:
        """By the number of columns, so that tables with text have one too."""
        return Layout.of(self.size, sum(len(_tuple(value)) for value in self._shape.values()))

    def place_of(self, row: int) -> str:
        return self.files.place_of(row)

    def fingerprint(self, *, full: bool = False) -> Any:
        """Names, sizes, times or ETags and footers of all files; with ``full`` their bytes instead of times."""
        types = {name: str(column.kind) for name, column in self._columns.items()}
        described = {key: list(_tuple(value)) for key, value in self._shape.items()}
        return {"columns": described, "types": types, **fingerprint(self.files, full=full)}


def _tuple(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value
