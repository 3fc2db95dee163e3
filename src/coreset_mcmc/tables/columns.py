"""The columns that a formula uses, in types that it can be evaluated on, without rows that lack a value.

What becomes of a column is settled for all rows (:class:`Column`) before any run of rows is converted (:func:`clean`),
so that a run does not depend on which others it came with.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.tables.trouble import Found, PlaceOf

NUMBER, WHOLE, BOOLEAN, LEVELS = "numbers", "whole numbers", "booleans", "levels"
MIXED = "mixed"
KINDS_OF_OBJECTS = {
    "boolean": (BOOLEAN, ("bool",)),
    "integer": (NUMBER, ("int",)),
    "floating": (NUMBER, ("float",)),
    "mixed-integer-float": (NUMBER, ("int", "float")),
    "decimal": (NUMBER, ("Decimal",)),
    "string": (LEVELS, ("str",)),
}
"""What pandas finds in a column of objects, and what that becomes."""
LARGEST_WHOLE = 2**53
"""Below this every whole number is a float."""


@dataclass(frozen=True)
class Column:
    """What the values of a column become: float64, int64, bool, or one of some levels.

    Whole numbers stay whole only where they serve as levels: powers of them would overflow in silence.
    """

    name: str
    kind: str
    levels: tuple[Any, ...] | None = None
    """All that occur, in the order in which they are coded; None for numbers that are no levels."""
    other: str | None = None
    """The level, the last one, of all values that are none of the others."""
    is_ordered: bool = False
    """Whether the user has given the levels their order."""


class CleanRows:
    """A run of rows without missing values; :attr:`columns` holds arrays, and categoricals for levels."""

    def __init__(
        self, columns: dict[str, Any], places: np.ndarray | None, start: int, count: int, place_of: PlaceOf
    ) -> None:
        self.columns = columns
        self.places = places
        """Of these rows in the run that was read; None if none was dropped."""
        self.start = start
        """The first row of the run in the table."""
        self.count = count
        self.place_in_table = place_of

    def row_of(self, place: int) -> int:
        """The number of a row in the table."""
        return self.start + int(place if self.places is None else self.places[place])

    def place_of(self, place: int) -> str:
        """How a user would find a row."""
        return self.place_in_table(self.row_of(place))

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The same columns for ``formulae``."""
        return pd.DataFrame(self.columns, index=pd.RangeIndex(self.count), copy=False)


def check_types(frame: pd.DataFrame) -> None:
    """Refuse types that are neither numbers nor levels."""
    for name, column in frame.items():
        dtype = column.dtype
        if pd.api.types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
            raise _wrong_type(name, "dates", "Use year(date), month(date), dayofweek(date), hour(date) or days(date).")
        if pd.api.types.is_timedelta64_dtype(dtype):
            raise _wrong_type(name, "durations", "Turn them into numbers first, e.g. column.dt.total_seconds().")
        if pd.api.types.is_complex_dtype(dtype):
            raise _wrong_type(name, "complex numbers", "Use real and imaginary parts as columns.")
        if isinstance(dtype, pd.IntervalDtype):
            raise _wrong_type(name, "intervals", "Turn them into text: column.astype(str).")


def _wrong_type(name: Any, got: str, fix: str) -> InputError:
    return InputError(f"column {name!r}", got=got, expected="numbers, booleans, text or categories", fix=fix)


def wrong_values(name: str, types: Iterable[str]) -> InputError:
    """The error about a column whose values have nothing in common."""
    return InputError(
        f"column {name!r}",
        got=f"values of type {', '.join(sorted(types))}",
        expected="numbers only, or text only",
        fix="Turn all of them into one type, e.g. column.astype(str) or pandas.to_numeric(column).",
    )


def plain_columns(frame: pd.DataFrame, as_levels: Collection[str]) -> tuple[Column, ...] | None:
    """The columns, if their types say all about them: numbers and booleans that are no levels."""
    columns = []
    for name, column in frame.items():
        is_boolean = pd.api.types.is_bool_dtype(column.dtype) and not isinstance(column.dtype, pd.CategoricalDtype)
        if name in as_levels or not (is_boolean or pd.api.types.is_numeric_dtype(column.dtype)):
            return None
        columns.append(Column(str(name), BOOLEAN if is_boolean else NUMBER))
    return tuple(columns)


def kind_of(column: pd.Series) -> tuple[str, Collection[str]]:
    """What some values of a column may become, and their types as far as they are told at a glance."""
    dtype = column.dtype
    if pd.api.types.is_object_dtype(dtype):
        found = pd.api.types.infer_dtype(column, skipna=True)
        return KINDS_OF_OBJECTS.get(found) or (MIXED, {type(value).__name__ for value in column})
    if isinstance(dtype, pd.CategoricalDtype):
        return LEVELS, ("category",)
    if pd.api.types.is_bool_dtype(dtype):
        return BOOLEAN, ("bool",)
    return (NUMBER, ("float",)) if pd.api.types.is_numeric_dtype(dtype) else (LEVELS, ("str",))


def missing_values(column: pd.Series) -> np.ndarray | None:
    """Where it lacks a value; None if it does not."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in "iub":
        return None
    lacks = (
        np.isnan(column.to_numpy()) if isinstance(dtype, np.dtype) and dtype.kind == "f" else column.isna().to_numpy()
    )
    return lacks if lacks.any() else None


def complete_places(missing: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """Rows that lack nothing; None if all do not."""
    return np.flatnonzero(~np.logical_or.reduce(list(missing.values()))) if missing else None


def missing_by_column(frame: pd.DataFrame, names: Iterable[str]) -> dict[str, np.ndarray]:
    """Where columns lack values, of those that do."""
    return {name: lacks for name in names if (lacks := missing_values(frame[name])) is not None}


def clean(
    frame: pd.DataFrame, start: int, columns: Sequence[Column], place_of: PlaceOf, chosen: np.ndarray | None = None
) -> CleanRows:
    """A run of rows that begins with row ``start`` of the table, of which only some places are chosen."""
    some = frame if chosen is None else frame.iloc[chosen]
    missing = missing_by_column(some, (column.name for column in columns))
    return without_missing(some, start, columns, missing, place_of, chosen)


def without_missing(
    frame: pd.DataFrame,
    start: int,
    columns: Sequence[Column],
    missing: Mapping[str, np.ndarray],
    place_of: PlaceOf,
    chosen: np.ndarray | None = None,
) -> CleanRows:
    """As :func:`clean`, where it is known what is missing among the rows that were chosen."""
    places = complete_places(missing)
    values = {}
    for column in columns:
        stored = frame[column.name]
        values[column.name] = _converted(stored if places is None else stored.iloc[places], column)
    in_run = chosen if places is None else places if chosen is None else chosen[places]
    return CleanRows(values, in_run, start, len(frame) if places is None else len(places), place_of)


def numbers_of(column: pd.Series, name: str) -> np.ndarray:
    """float64 in one piece, so that functions of NumPy take the same way through it wherever it was."""
    kind, types = kind_of(column)
    if len(column) and kind not in (NUMBER, BOOLEAN):
        raise wrong_values(name, types)
    return np.ascontiguousarray(column.to_numpy(dtype=np.float64))


def _converted(stored: pd.Series, column: Column) -> Any:
    if column.kind == LEVELS:
        return coded(stored, column.levels or (), column.other)
    if column.kind == BOOLEAN and (not len(stored) or kind_of(stored)[0] == BOOLEAN):
        return stored.to_numpy(dtype=bool)
    values = numbers_of(stored, column.name)
    return values.astype(np.int64) if column.kind == WHOLE and are_whole(values) else values


def are_whole(values: np.ndarray) -> bool:
    """Whether they can be turned into integers and back."""
    return bool(np.all(values == np.floor(values)) and np.all(np.abs(values) < LARGEST_WHOLE))


def coded(stored: pd.Series, levels: tuple[Any, ...], other: str | None = None) -> pd.Categorical:
    """The places of values among levels; values that are none of them count as ``other``, or come after them."""
    if isinstance(stored.dtype, pd.CategoricalDtype):
        codes, found = stored.cat.codes.to_numpy(), stored.cat.categories.tolist()
    else:
        codes, index = pd.factorize(stored)
        found = index.tolist()
    places = {level: place for place, level in enumerate(levels)}
    present = set(np.unique(codes).tolist())
    for place, level in enumerate(found):
        if place in present and level not in places:
            places[level] = len(places) if other is None else places[other]
    moved = np.array([places.get(level, -1) for level in found], dtype=np.int64)
    names = list(places) if other is None else list(levels)
    return pd.Categorical.from_codes(moved[codes] if len(found) else codes, pd.Index(names), ordered=True)


def lacking_rows(missing: Mapping[str, np.ndarray], start: int, chosen: np.ndarray | None = None) -> Found | None:
    """How many of the chosen rows of a run that begins with row ``start`` lack a value, and the first of them."""
    if not missing:
        return None
    lacks = np.logical_or.reduce(list(missing.values()))
    first = int(np.argmax(lacks))
    return Found(int(np.count_nonzero(lacks)), start + int(first if chosen is None else chosen[first]), math.nan)


def check_missing(
    missing: Mapping[str, int], lacking: Found | None, num_rows: int, place_of: PlaceOf, *, drop_missing: bool
) -> None:
    """Refuse rows that lack values unless they may be dropped and some are left."""
    if lacking is None:
        return
    listed = ", ".join(f"{name}: {count}" for name, count in missing.items() if count)
    require(
        drop_missing,
        "missing values",
        got=f"{lacking.count} of {num_rows} rows with missing values ({listed}; first in {place_of(lacking.row)})",
        expected="a value in every column that the formula uses",
        fix="Drop those rows with drop_missing=True, or fill them in.",
    )
    require(
        lacking.count < num_rows,
        "missing values",
        got=f"none of {num_rows} rows without missing values ({listed})",
        expected="at least one complete row",
        fix="Leave out the columns that are mostly missing.",
    )
