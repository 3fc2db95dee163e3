"""Dates as numbers: ``year(date)``, ``month(date)``, ``dayofweek(date)`` and others become columns of their own.

Such a call is taken for the name of a column, so whatever can be done with a column can be done with it: levels by
``C(month(date))``, groups by ``(1|year(date))``, filters. The column is computed from each run of rows as it is read.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.tables.frames import Frames, FrameSource

DATE_CALLS: dict[str, Callable[[Any], Any]] = {
    "year": lambda dates: dates.year,
    "quarter": lambda dates: dates.quarter,
    "month": lambda dates: dates.month,
    "day": lambda dates: dates.day,
    "dayofweek": lambda dates: dates.day_of_week,
    "dayofyear": lambda dates: dates.day_of_year,
    "hour": lambda dates: dates.hour,
    "days": lambda dates: (dates - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1),
}
"""Monday is day 0 of the week; ``days`` counts days since 1970 with their parts."""
CALL = re.compile(rf"(?<![\w.`])({'|'.join(DATE_CALLS)})\(\s*(`[^`]+`|[A-Za-z_][\w.]*)\s*\)")
STRINGS = re.compile(r"('[^']*'|\"[^\"]*\"|`[^`]*`(?!\s*\)))")


@dataclass(frozen=True)
class DatePart:
    """A column that follows from a column of dates."""

    call: str
    source: str

    @property
    def name(self) -> str:
        return f"{self.call}({self.source})"

    def values(self, dates: pd.Series, place_of: Callable[[int], str], start: int) -> np.ndarray:
        """NaN where there is no date."""
        found = _as_dates(dates, self, place_of, start)
        return np.asarray(DATE_CALLS[self.call](pd.DatetimeIndex(found)), float)


def without_calls(text: str) -> tuple[str, tuple[DatePart, ...]]:
    """The text with calls of dates as names between backticks, and what those are."""
    parts: dict[str, DatePart] = {}

    def replaced(found: re.Match[str]) -> str:
        part = DatePart(found[1], found[2].strip("`"))
        parts[part.name] = part
        return f"`{part.name}`"

    pieces = re.split(r"('[^']*'|\"[^\"]*\")", text)
    pieces = [piece if piece[:1] in "'\"" and piece else CALL.sub(replaced, piece) for piece in pieces]
    return "".join(pieces), tuple(parts.values())


def sources_of(names: Iterable[str], parts: Sequence[DatePart]) -> list[str]:
    """Columns of the table that these names need, each once."""
    by_name = {part.name: part.source for part in parts}
    return list(dict.fromkeys(by_name.get(name, name) for name in names))


class WithDates:
    """A table with columns that follow from its dates."""

    def __init__(self, table: FrameSource, parts: Sequence[DatePart]) -> None:
        self._table, self._parts = table, {part.name: part for part in parts}

    @property
    def size(self) -> int:
        return self._table.size

    @property
    def names(self) -> list[str]:
        return [*self._table.names, *self._parts]

    @property
    def column_types(self) -> Mapping[str, Any]:
        return {**self._table.column_types, **dict.fromkeys(self._parts, np.dtype(float))}

    def frame(self, start: int, stop: int, names: Sequence[str]) -> pd.DataFrame:
        return self._extended(self._table.frame(start, stop, self._needed(names)), names, start)

    def frames(self, layout: Layout, numbers: Sequence[int], names: Sequence[str]) -> Frames:
        for number, frame in self._table.frames(layout, numbers, self._needed(names)):
            yield number, self._extended(frame, names, layout.rows_of_leaf(number)[0])

    def place_of(self, row: int) -> str:
        return self._table.place_of(row)

    def fingerprint(self, *, full: bool = False) -> Any:
        return {"table": self._table.fingerprint(full=full), "dates": list(self._parts)}

    def _needed(self, names: Sequence[str]) -> list[str]:
        return sources_of(names, list(self._parts.values()))

    def _extended(self, frame: pd.DataFrame, names: Sequence[str], start: int) -> pd.DataFrame:
        columns: dict[str, Any] = {}
        for name in names:
            part = self._parts.get(name)
            columns[name] = (
                frame[name] if part is None else part.values(frame[part.source], self._table.place_of, start)
            )
        return pd.DataFrame(columns, index=frame.index, copy=False)


def _as_dates(column: pd.Series, part: DatePart, place_of: Callable[[int], str], start: int) -> pd.Series:
    """Dates as they are stored, or text such as 2024-03-01 12:00."""
    dtype = column.dtype
    if pd.api.types.is_datetime64_any_dtype(dtype):
        return column.dt.tz_localize(None) if getattr(dtype, "tz", None) is not None else column
    if isinstance(dtype, pd.PeriodDtype):
        return pd.Series(column.dt.to_timestamp())
    is_number = pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)
    plain = column.astype(object)
    dates = pd.Series(pd.NaT, column.index) if is_number else pd.to_datetime(plain, format="ISO8601", errors="coerce")
    wrong = dates.isna().to_numpy() & column.notna().to_numpy()
    if wrong.any():
        first = int(np.argmax(wrong))
        raise InputError(
            f"term {part.name!r}",
            got=f"{column.iloc[first]!r} in column {part.source!r} ({place_of(start + first)})",
            expected="dates, or text such as 2024-03-01 or 2024-03-01 12:30",
            fix=f"Convert the column first: pandas.to_datetime(frame[{part.source!r}], ...); a number that is a year "
            "needs no call.",
        )
    return dates
