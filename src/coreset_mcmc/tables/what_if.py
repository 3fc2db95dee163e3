"""Rows of a regression as they would be if a column of its table were otherwise: the same for all rows, or a step more.

Everything that follows from the column follows: interactions, transforms, levels. The rows are those that count now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.tables.columns import BOOLEAN, CleanRows, Column
from coreset_mcmc.tables.design_source import DesignSource, StandardRows
from coreset_mcmc.tables.formula_check import close_to

SAMPLED_LEAVES = 8
"""From how many places in a table its values are looked at."""

Change = Callable[[Any], Any]
"""From the clean values of a column to others."""


@dataclass(frozen=True)
class Setting:
    """All rows have this value."""

    value: Any

    def __call__(self, column: Any) -> Any:
        if isinstance(column, pd.Categorical):
            return pd.Categorical.from_codes(np.zeros(len(column), np.int64), pd.Index([self.value]), ordered=True)
        return np.full_like(column, self.value)


@dataclass(frozen=True)
class Step:
    """Each row has so much more."""

    size: float

    def __call__(self, column: Any) -> Any:
        return np.asarray(column, np.float64) + self.size


@dataclass(frozen=True, eq=False)
class ChangedRows(StandardRows):
    """Rows of a design with a column that is not what it was; which of them count is decided before."""

    changed: str = ""
    change: Change = Step(0.0)

    @classmethod
    def of(cls, standard: StandardRows, name: str, change: Change) -> ChangedRows:
        own = {item.name: getattr(standard, item.name) for item in fields(StandardRows)}
        return cls(**own, changed=name, change=change)

    def batch(self, rows: CleanRows) -> dict[str, np.ndarray]:
        columns = {**rows.columns, self.changed: self.change(rows.columns[self.changed])}
        return super().batch(CleanRows(columns, rows.places, rows.start, rows.count, rows.place_in_table))


@dataclass(frozen=True, eq=False)
class WhatIf:
    """The table behind the rows of a model, for questions about its columns."""

    source: DesignSource
    predictors: tuple[str, ...]
    """Columns to the right of the tilde."""

    def column(self, name: str) -> Column:
        """What a predictor is."""
        if name not in self.predictors:
            close = next(close_to(name, self.predictors), None)
            raise InputError(
                f"effect of {name!r}",
                got="no such predictor",
                expected=f"a column of the formula: {', '.join(self.predictors[:20])}",
                fix=f"Did you mean {close!r}?" if close else "Transforms and interactions belong to their columns.",
            )
        return next(column for column in self.source.standard.columns if column.name == name)

    def rows(self, name: str = "", change: Change | None = None) -> DesignSource:
        """All rows, with a column changed."""
        source = self.source
        standard = source.standard if change is None else ChangedRows.of(source.standard, name, change)
        return DesignSource(source.table, standard, source.kept, is_checked=True)

    def levels(self, name: str) -> tuple[Any, ...] | None:
        """Of a column whose values are levels or booleans; None for numbers."""
        column = self.column(name)
        return (False, True) if column.kind == BOOLEAN and column.levels is None else column.levels

    def range(self, name: str, low: float, high: float) -> tuple[float, float]:
        """About these quantiles of a column of numbers."""
        layout, table = self.source.kept.layout, self.source.table
        leaves = np.unique(np.linspace(0, layout.num_leaves - 1, SAMPLED_LEAVES).astype(np.int64)).tolist()
        values = [frame[name].to_numpy(dtype=np.float64) for _, frame in table.frames(layout, leaves, [name])]
        found = np.concatenate(values)
        require(
            bool(np.isfinite(found).any()),
            f"effect of {name!r}",
            got="no numbers in it",
            expected="numbers",
            fix="Choose another column.",
        )
        lowest, highest = np.quantile(found[np.isfinite(found)], [low, high]).tolist()
        return lowest, highest
