"""One look at all rows before a design can be built: which levels there are, of which types, and what is missing.

Needed only where types do not say it: for text, categories, objects, and numbers that serve as levels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from coreset_mcmc.core.errors import require
from coreset_mcmc.data.engine import Engine
from coreset_mcmc.data.leaf import Leaf
from coreset_mcmc.data.task import Program, Task
from coreset_mcmc.tables.columns import (
    BOOLEAN,
    LEVELS,
    MIXED,
    NUMBER,
    WHOLE,
    Column,
    are_whole,
    check_missing,
    complete_places,
    kind_of,
    lacking_rows,
    missing_by_column,
    numbers_of,
    wrong_values,
)
from coreset_mcmc.tables.frames import FrameRows, FrameSource, scan_frames
from coreset_mcmc.tables.levels import Levels, check_count, in_order, lumped, no_levels
from coreset_mcmc.tables.row_filter import ALL, Choice, subject_of_filter
from coreset_mcmc.tables.trouble import Found, both


@dataclass(frozen=True)
class Facts:
    """About one column."""

    num_missing: int = 0
    kinds: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    is_whole: bool = True
    levels: Levels = field(default_factory=no_levels)
    counts: Mapping[Any, int] = field(default_factory=dict)
    """Rows of each level, where they are asked for."""

    def joined(self, later: Facts) -> Facts:
        return Facts(
            self.num_missing + later.num_missing,
            self.kinds | later.kinds,
            self.types | later.types,
            self.is_whole and later.is_whole,
            self.levels.joined(later.levels),
            dict(Counter(self.counts) + Counter(later.counts)),
        )


@dataclass(frozen=True)
class Survey(Program):
    """Facts about columns; those in ``as_levels`` are levels whatever their type."""

    names: tuple[str, ...]
    as_levels: frozenset[str]
    choice: Choice = ALL
    counted: frozenset[str] = frozenset()

    def on_leaf(self, leaf: Leaf, arguments: Any) -> tuple[Found | None, dict[str, Facts], int]:
        frame: Any = leaf.batch
        chosen = self.choice.places(frame)[0]
        whole = len(frame)
        frame = frame if chosen is None else frame.iloc[chosen]
        missing = missing_by_column(frame, self.names)
        places = complete_places(missing)
        facts = {}
        for name in self.names:
            num_missing = int(missing[name].sum()) if name in missing else 0
            column = frame[name] if places is None else frame[name].iloc[places]
            facts[name] = _facts(name, column, num_missing, name in self.as_levels)
            if name in self.counted:
                facts[name] = replace(facts[name], counts=column.value_counts().to_dict())
        return lacking_rows(missing, leaf.start, chosen), facts, whole - len(frame)

    def merge(self, one: Any, other: Any) -> tuple[Found | None, dict[str, Facts], int]:
        facts = {name: found.joined(other[1][name]) for name, found in one[1].items()}
        return both(one[0], other[0]), facts, one[2] + other[2]


@dataclass(frozen=True)
class Lumping:
    """Levels with fewer rows than ``fewest`` become one, in these columns."""

    fewest: int
    names: frozenset[str]
    numeric: frozenset[str] = frozenset()
    """Columns that are used as numbers, too, if they are numbers; such keep their values."""

    def concerns(self, column: Column) -> bool:
        """Whether levels of this column are lumped."""
        is_text = column.kind == LEVELS
        return column.name in self.names and column.levels is not None and (is_text or column.name not in self.numeric)


def survey(
    table: FrameSource,
    engine: Engine,
    names: Sequence[str],
    as_levels: Collection[str],
    *,
    drop_missing: bool,
    choice: Choice = ALL,
    lumping: Lumping | None = None,
) -> tuple[tuple[Column, ...], list[str]]:
    """What becomes of each column, and what a user should know about it."""
    counted = frozenset() if lumping is None else lumping.names
    task = Task(Survey(tuple(names), frozenset(as_levels), choice, counted))
    read = list(dict.fromkeys([*names, *choice.columns]))
    lacking, facts, left_out = scan_frames(FrameRows(table, read, len(read)), engine, task, "levels of the columns")
    num_rows = table.size - left_out
    check_some_left(num_rows, table.size, choice)
    counts = {name: found.num_missing for name, found in facts.items()}
    check_missing(counts, lacking, num_rows, table.place_of, drop_missing=drop_missing)
    num_dropped = 0 if lacking is None else lacking.count
    columns, notes = [], []
    for name, found in facts.items():
        column = _settled(name, found, name in as_levels)
        if lumping is not None and lumping.concerns(column):
            column, note = lumped(column, found.counts, lumping.fewest)
            notes += note
        if column.levels is not None:
            check_count(name, len(column.levels), num_rows - num_dropped, found.levels)
        columns.append(column)
    return tuple(columns), notes


def check_some_left(num_rows: int, size: int, choice: Choice) -> None:
    """Refuse a filter that lets nothing pass."""
    if choice.where is not None:
        require(
            num_rows > 0,
            subject_of_filter(choice.where.text),
            got=f"none of {size} rows for which it holds",
            expected="at least one",
            fix="Text is compared as it is in the table, with capitals and spaces; rows that lack a value in a column "
            "of the filter are left out.",
        )
    require(num_rows > 0, "weights", got="0 in every row", expected="some above 0", fix="Name another column.")


def _facts(name: str, column: pd.Series, num_missing: int, as_levels: bool) -> Facts:
    if not len(column):
        return Facts(num_missing)
    kind, types = kind_of(column)
    if kind == LEVELS:
        return Facts(num_missing, frozenset([kind]), frozenset(types), levels=Levels.of_column(column))
    if kind == MIXED or not as_levels:
        return Facts(num_missing, frozenset([kind]), frozenset(types))
    values = column.to_numpy(dtype=bool) if kind == BOOLEAN else numbers_of(column, name)
    return Facts(num_missing, frozenset([kind]), frozenset(types), are_whole(values), Levels.of_numbers(values))


def _settled(name: str, facts: Facts, as_levels: bool) -> Column:
    if len(facts.kinds) > 1 or MIXED in facts.kinds:
        raise wrong_values(name, facts.types - {"category"} | facts.levels.types)
    (kind,) = facts.kinds
    if kind == LEVELS:
        return Column(name, LEVELS, in_order(name, facts.levels), is_ordered=None not in facts.levels.orders)
    if not as_levels:
        return Column(name, kind)
    if kind == BOOLEAN:
        return Column(name, BOOLEAN, tuple(map(bool, sorted(facts.levels.values))))
    is_whole = facts.is_whole
    values = sorted(facts.levels.values)
    return Column(name, WHOLE if is_whole else NUMBER, tuple(map(int, values)) if is_whole else tuple(values))
