"""The levels of a factor, found leaf by leaf: which there are, and in which order they are coded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.tables.columns import LEVELS, Column, wrong_values

MOST_LEVELS = 1000
"""Of a factor: each is a parameter, and the covariance of all of them is held."""
MOST_COUNTED = 1_000_000
"""Levels are counted for an error message up to here, which bounds the memory that a column of names takes."""
OTHER = "other"
"""The level of all that are rare."""
PLAIN_TYPES = frozenset({"str", "int", "float", "bool"})


@dataclass(frozen=True)
class Levels:
    """Values that occur."""

    values: frozenset[Any]
    types: frozenset[str]
    orders: frozenset[tuple[Any, ...] | None]
    """Categories as the user has ordered them, whether or not they occur; None where they are not ordered."""
    are_more: bool = False
    """Whether counting was given up."""

    @classmethod
    def of_column(cls, column: pd.Series) -> Levels:
        """Of text or categories without missing values."""
        order = None
        if isinstance(column.dtype, pd.CategoricalDtype):
            categories = column.cat.categories.tolist()
            present = np.unique(column.cat.codes.to_numpy()).tolist()
            found = [categories[place] for place in present]
            order = tuple(categories) if column.dtype.ordered else None
        else:
            found = pd.factorize(column)[1].tolist()
        return cls(frozenset(found), frozenset(type(level).__name__ for level in found), frozenset([order]))

    @classmethod
    def of_numbers(cls, values: np.ndarray) -> Levels:
        return cls(frozenset(np.unique(values).tolist()), frozenset(), frozenset([None]))

    def joined(self, later: Levels) -> Levels:
        are_more = self.are_more or later.are_more
        values = self.values if are_more or later.values <= self.values else self.values | later.values
        orders = self.orders | later.orders
        return Levels(values, self.types | later.types, orders, are_more or len(values) > MOST_COUNTED)


def no_levels() -> Levels:
    """Of a column in which nothing was found yet."""
    return Levels(frozenset(), frozenset(), frozenset())


def in_order(name: str, levels: Levels) -> tuple[Any, ...]:
    """As the user has ordered them, or else sorted."""
    require(
        len(levels.orders) == 1,
        f"column {name!r}",
        got=f"ordered categories that differ between files: {'; '.join(sorted(map(_some, levels.orders)))}",
        expected="the same categories in the same order in all files",
        fix="Write the files with the same categories, or turn the column into text.",
    )
    (order,) = levels.orders
    if order is not None:
        return tuple(level for level in order if level in levels.values)
    if len(levels.types) > 1 or not levels.types <= PLAIN_TYPES:
        raise wrong_values(name, levels.types)
    return tuple(sorted(levels.values))


def check_count(name: str, count: int, num_rows: int, levels: Levels) -> None:
    """Factors have far fewer levels than there are rows."""
    if count == num_rows and count > 2:
        raise InputError(
            f"column {name!r}",
            got=f"{count} different values in {num_rows} rows",
            expected="fewer levels than rows",
            fix="A name or number of each row explains nothing: leave it out. Numbers that were read as text "
            "(a decimal comma, a unit) have to be converted first.",
        )
    require(
        count <= MOST_LEVELS,
        f"column {name!r}",
        got=f"more than {MOST_COUNTED} levels" if levels.are_more else f"{count} levels",
        expected=f"at most {MOST_LEVELS}",
        fix="Lump rare levels together with lump_rare=50.",
    )


def lumped(column: Column, counts: Mapping[Any, int], fewest: int) -> tuple[Column, list[str]]:
    """The column with one level, the last, for all that have fewer rows."""
    levels = column.levels or ()
    kept = tuple(level for level in levels if counts.get(level, 0) >= fewest)
    rare = [level for level in levels if level not in kept]
    if len(rare) < 2:
        return column, [f"{column.name}: only {level!r} has fewer than {fewest} rows, and keeps them" for level in rare]
    require(
        bool(kept),
        f"lump_rare={fewest}",
        got=f"no level of column {column.name!r} with {fewest} rows; the largest has {max(counts.values())}",
        expected="some levels that are not rare",
        fix="Choose a smaller number, or leave the column out.",
    )
    other = OTHER
    while other in kept:
        other = f"({other})"
    rows = sum(counts.get(level, 0) for level in rare)
    listed = ", ".join(map(str, rare[:5])) + (", ..." if len(rare) > 5 else "")
    note = f"{len(rare)} levels of {column.name} with fewer than {fewest} rows are {other!r} ({rows} rows): {listed}"
    return Column(column.name, LEVELS, (*kept, other), other), [note]


def _some(levels: tuple[Any, ...] | None) -> str:
    return "no order" if levels is None else f"[{', '.join(map(str, levels[:6]))}{', ...' if len(levels) > 6 else ''}]"
