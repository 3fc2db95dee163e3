"""The columns that a formula uses: missing values, infinite values and types, settled before ``formulae`` sees them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import InputError, require

LARGEST_VALUE = 1e100
"""Squares of larger numbers overflow when their rows are summed."""
MOST_LEVELS = 1000
"""A factor with more levels than this has no place in a dense design."""


@dataclass(frozen=True, eq=False)
class CleanRows:
    """Rows without missing values, in types that a formula can be evaluated on."""

    frame: pd.DataFrame
    row_numbers: np.ndarray
    num_dropped: int


def check_frame(frame: Any) -> None:
    """A data frame with rows and with names that tell its columns apart."""
    require(
        isinstance(frame, pd.DataFrame),
        "table",
        got=type(frame).__name__,
        expected="a pandas DataFrame",
        fix="Build one with pandas.DataFrame(...), or read a file with read_table.",
    )
    require(len(frame) > 0, "table", got="0 rows", expected="at least one row", fix="Check the filter that made it.")
    repeated = sorted(name for name, count in Counter(map(str, frame.columns)).items() if count > 1)
    require(
        not repeated,
        "table",
        got=f"repeated columns {repeated}",
        expected="one column for each name",
        fix="Rename or drop the repeated columns.",
    )


def clean_rows(
    frame: pd.DataFrame, names: Sequence[str], as_levels: Collection[str], *, drop_missing: bool
) -> CleanRows:
    """The named columns, converted, without the rows in which one of them is missing.

    Whole numbers of the columns ``as_levels`` stay whole.
    """
    by_text = {str(name): name for name in frame.columns}
    used = {name: frame[by_text[name]] for name in names}
    for name, column in used.items():
        _check_type(name, column)
    missing = {name: lacks for name, column in used.items() if (lacks := column.isna().to_numpy()).any()}
    keep = None
    if missing:
        is_missing = np.logical_or.reduce(list(missing.values()))
        listed = ", ".join(f"{name}: {int(lacks.sum())}" for name, lacks in missing.items())
        require(
            drop_missing,
            "missing values",
            got=f"{int(is_missing.sum())} of {len(frame)} rows with missing values ({listed})",
            expected="a value in every column that the formula uses",
            fix="Drop those rows with drop_missing=True, or fill them in.",
        )
        keep = np.flatnonzero(~is_missing)
        require(
            keep.size > 0,
            "missing values",
            got=f"none of {len(frame)} rows without missing values ({listed})",
            expected="at least one complete row",
            fix="Leave out the columns that are mostly missing.",
        )
    kept = {name: column if keep is None else column.iloc[keep] for name, column in used.items()}
    row_numbers = np.arange(len(frame)) if keep is None else keep
    converted = {name: _converted(name, column, row_numbers, name in as_levels) for name, column in kept.items()}
    clean = pd.DataFrame(converted, index=pd.Index(row_numbers), copy=False)
    return CleanRows(clean, row_numbers, len(frame) - len(row_numbers))


def _check_type(name: str, column: pd.Series) -> None:
    dtype = column.dtype
    if pd.api.types.is_datetime64_any_dtype(dtype) or isinstance(dtype, pd.PeriodDtype):
        raise _wrong_type(name, "dates", "Turn them into numbers first, e.g. days since a start, or the month.")
    if pd.api.types.is_timedelta64_dtype(dtype):
        raise _wrong_type(name, "durations", "Turn them into numbers first, e.g. column.dt.total_seconds().")
    if pd.api.types.is_complex_dtype(dtype):
        raise _wrong_type(name, "complex numbers", "Use real and imaginary parts as columns.")
    if isinstance(dtype, pd.IntervalDtype):
        raise _wrong_type(name, "intervals", "Turn them into text: column.astype(str).")


def _wrong_type(name: str, got: str, fix: str) -> InputError:
    return InputError(f"column {name!r}", got=got, expected="numbers, booleans, text or categories", fix=fix)


def _converted(name: str, column: pd.Series, row_numbers: np.ndarray, keep_integers: bool) -> Any:
    """Numbers as float64, booleans as they are, everything else as ordered categories that occur.

    Whole numbers stay whole only where they serve as levels: powers of them would overflow in silence.
    """
    dtype = column.dtype
    found = pd.api.types.infer_dtype(column, skipna=True) if pd.api.types.is_object_dtype(dtype) else ""
    if found == "boolean" or (pd.api.types.is_bool_dtype(dtype) and not isinstance(dtype, pd.CategoricalDtype)):
        return column.to_numpy(dtype=bool)
    if found in ("integer", "floating", "mixed-integer-float", "decimal") or pd.api.types.is_numeric_dtype(dtype):
        values = column.to_numpy(dtype=np.float64)
        check_numbers(f"column {name!r}", values, row_numbers)
        is_whole = keep_integers and bool(np.all(values == np.floor(values)) and np.all(np.abs(values) < 2**53))
        return values.astype(np.int64) if is_whole else values
    if found not in ("", "string"):
        raise _wrong_values(name, {type(value).__name__ for value in column})
    return _levels(name, column)


def check_numbers(subject: str, values: np.ndarray, row_numbers: np.ndarray) -> None:
    """Finite numbers of a size whose squares can be summed; an error names the row of the user's table."""
    with np.errstate(invalid="ignore"):
        is_bad = ~(np.abs(values) <= LARGEST_VALUE)
    if not is_bad.any():
        return
    first = int(np.argmax(is_bad))
    num_infinite = int((~np.isfinite(values)).sum())
    if num_infinite:
        first = int(np.argmin(np.isfinite(values)))
        raise InputError(
            subject,
            got=f"{num_infinite} values that are infinite or not a number (first in row {row_numbers[first]})",
            expected="finite numbers",
            fix="Drop or repair those rows; a transform such as np.log needs arguments inside its domain.",
        )
    raise InputError(
        subject,
        got=f"{int(is_bad.sum())} values as large as {values[first]:.3g} (first in row {row_numbers[first]})",
        expected=f"numbers of at most {LARGEST_VALUE:g}",
        fix="Such values usually stand for something that is missing; drop those rows, or change the unit.",
    )


def _levels(name: str, column: pd.Series) -> Any:
    """Ordered categories that occur, sorted unless the user has ordered them."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        present = column.cat.remove_unused_categories()
        levels = present.cat.categories.tolist()
        levels = levels if column.dtype.ordered else _sorted(name, levels)
        result = pd.Categorical(present, categories=levels, ordered=True)
    else:
        codes, found = pd.factorize(column)
        levels = _sorted(name, found.tolist())
        places = {level: place for place, level in enumerate(levels)}
        moved = np.array([places[level] for level in found.tolist()], dtype=np.int64)
        result = pd.Categorical.from_codes(moved[codes], pd.Index(levels), ordered=True)
    return result


def check_levels(frame: pd.DataFrame, as_levels: Collection[str]) -> None:
    """Factors have far fewer levels than there are rows."""
    for name, column in frame.items():
        if isinstance(column.dtype, pd.CategoricalDtype):
            count = len(column.cat.categories)
        elif name in as_levels:
            count = int(column.nunique())
        else:
            continue
        if count == len(frame) and count > 2:
            raise InputError(
                f"column {name!r}",
                got=f"{count} different values in {len(frame)} rows",
                expected="fewer levels than rows",
                fix="A name or number of each row explains nothing: leave it out. Numbers that were read as text "
                "(a decimal comma, a unit) have to be converted first.",
            )
        require(
            count <= MOST_LEVELS,
            f"column {name!r}",
            got=f"{count} levels",
            expected=f"at most {MOST_LEVELS}",
            fix="Group rare levels together, or use a group-specific term (1|g) in Bambi with cm.from_bambi.",
        )


def _sorted(name: str, levels: list[Any]) -> list[Any]:
    types = {type(level).__name__ for level in levels}
    if len(types) > 1 or not types <= {"str", "int", "float", "bool"}:
        raise _wrong_values(name, types)
    return sorted(levels)


def _wrong_values(name: str, types: set[str]) -> InputError:
    return InputError(
        f"column {name!r}",
        got=f"values of type {', '.join(sorted(types))}",
        expected="numbers only, or text only",
        fix="Turn all of them into one type, e.g. column.astype(str) or pandas.to_numeric(column).",
    )
