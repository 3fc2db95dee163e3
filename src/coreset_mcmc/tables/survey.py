"""One look at all rows before a design can be built: which levels there are, of which types, and what is missing.

Needed only where types do not say it: for text, categories, objects, and numbers that serve as levels.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

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
from coreset_mcmc.tables.levels import Levels, check_count, in_order, no_levels
from coreset_mcmc.tables.trouble import Found, both


@dataclass(frozen=True)
class Facts:
    """About one column."""

    num_missing: int = 0
    kinds: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    is_whole: bool = True
    levels: Levels = field(default_factory=no_levels)

    def joined(self, later: Facts) -> Facts:
        return Facts(
            self.num_missing + later.num_missing,
            self.kinds | later.kinds,
            self.types | later.types,
            self.is_whole and later.is_whole,
            self.levels.joined(later.levels),
        )


@dataclass(frozen=True)
class Survey(Program):
    """Facts about columns; those in ``as_levels`` are levels whatever their type."""

    names: tuple[str, ...]
    as_levels: frozenset[str]

    def on_leaf(self, leaf: Leaf, arguments: Any) -> tuple[Found | None, dict[str, Facts]]:
        frame: Any = leaf.batch
        missing = missing_by_column(frame, self.names)
        places = complete_places(missing)
        facts = {}
        for name in self.names:
            num_missing = int(missing[name].sum()) if name in missing else 0
            column = frame[name] if places is None else frame[name].iloc[places]
            facts[name] = _facts(name, column, num_missing, name in self.as_levels)
        return lacking_rows(missing, leaf.start), facts

    def merge(self, one: Any, other: Any) -> tuple[Found | None, dict[str, Facts]]:
        return both(one[0], other[0]), {name: facts.joined(other[1][name]) for name, facts in one[1].items()}


def survey(
    table: FrameSource, engine: Engine, names: Sequence[str], as_levels: Collection[str], *, drop_missing: bool
) -> tuple[Column, ...]:
    """What becomes of each column."""
    task = Task(Survey(tuple(names), frozenset(as_levels)))
    lacking, facts = scan_frames(FrameRows(table, names, len(names)), engine, task, "levels of the columns")
    counts = {name: found.num_missing for name, found in facts.items()}
    check_missing(counts, lacking, table.size, table.place_of, drop_missing=drop_missing)
    num_dropped = 0 if lacking is None else lacking.count
    columns = tuple(_settled(name, found, name in as_levels) for name, found in facts.items())
    for column in columns:
        if column.levels is not None:
            check_count(column.name, len(column.levels), table.size - num_dropped, facts[column.name].levels)
    return columns


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
        return Column(name, LEVELS, in_order(name, facts.levels))
    if not as_levels:
        return Column(name, kind)
    if kind == BOOLEAN:
        return Column(name, BOOLEAN, tuple(map(bool, sorted(facts.levels.values))))
    is_whole = facts.is_whole
    values = sorted(facts.levels.values)
    return Column(name, WHOLE if is_whole else NUMBER, tuple(map(int, values)) if is_whole else tuple(values))
