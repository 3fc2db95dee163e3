"""Average effects: what the expected response would be, over all rows, if a column were otherwise.

For each draw of the posterior the expected response is averaged over the rows as they are and over the rows with the
column changed (g-computation); the difference has a posterior of its own. A pass over the rows for each value, in
bounded memory, and nothing of size rows times draws.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.digits import beside
from coreset_mcmc.core.entry_point import entry_point
from coreset_mcmc.core.errors import InputError, require, require_count
from coreset_mcmc.core.plain import number, plain
from coreset_mcmc.core.trees import first_position, num_positions, thinned
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.data.engine import Engine, merged
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.task import SumOver, Task
from coreset_mcmc.driver.progress import show_passes
from coreset_mcmc.models.model import Model
from coreset_mcmc.tables.standardised import WEIGHT
from coreset_mcmc.tables.what_if import Change, Setting, Step, WhatIf

MOST_LEVELS = 50
POINTS = 7
"""Of the curve of a number."""
LOW, HIGH = 0.05, 0.95
"""Quantiles between which the curve is drawn."""


@dataclass(frozen=True)
class Estimate:
    """A quantity with a posterior."""

    label: str
    mean: float
    sd: float
    lower: float
    upper: float

    @classmethod
    def of(cls, label: str, draws: np.ndarray, interval: float) -> Estimate:
        tail = (1.0 - interval) / 2.0
        lower, upper = np.quantile(draws, [tail, 1.0 - tail])
        return cls(label, float(draws.mean()), float(draws.std(ddof=1)), float(lower), float(upper))


@dataclass(frozen=True)
class Effect:
    """What a column does to the expected response, on average over the rows. ``print`` it, or take the numbers."""

    column: str
    response: str
    kind: str
    """"number" or "levels"."""
    changes: tuple[Estimate, ...]
    """Of the average expected response: by a step of a number, or from the first level to each other one."""
    averages: tuple[Estimate, ...]
    """The average expected response with the column at this value in all rows."""
    values: tuple[float, ...]
    """Of a number: where the averages are."""
    interval: float
    num_rows: int
    num_draws: int

    def to_dict(self) -> dict[str, Any]:
        """Values that strict JSON can hold."""
        result: dict[str, Any] = plain(self)
        return result

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Effect:
        """Back from what :meth:`to_dict` gave."""

        def estimates(rows: Sequence[Mapping[str, Any]]) -> tuple[Estimate, ...]:
            names = ("mean", "sd", "lower", "upper")
            return tuple(Estimate(str(row["label"]), *(number(row[name]) for name in names)) for row in rows)

        return cls(
            column=values["column"],
            response=values["response"],
            kind=values["kind"],
            changes=estimates(values["changes"]),
            averages=estimates(values["averages"]),
            values=tuple(number(value) for value in values["values"]),
            interval=float(values["interval"]),
            num_rows=int(values["num_rows"]),
            num_draws=int(values["num_draws"]),
        )

    def __str__(self) -> str:
        lines = [f"Average change of {self.response} over {self.num_rows:,} rows ({self.num_draws} draws)"]
        width = max(len(estimate.label) for estimate in self.changes)
        for estimate in self.changes:
            mean, low, high = (beside(value, estimate.sd) for value in (estimate.mean, estimate.lower, estimate.upper))
            lines.append(f"  {estimate.label:<{width}}  {mean}  ({low} to {high} with {self.interval:.0%})")
        return "\n".join(lines)


@entry_point
def effect(
    model: Model,
    positions: Position,
    column: str,
    *,
    step: float = 1.0,
    draws: int = 200,
    interval: float = 0.89,
    points: int = POINTS,
    engine: Engine | None = None,
    progressbar: bool = False,
) -> Effect:
    """What a column of the table does to the expected response, on average over all rows, for a model by formula.

    A number is raised by ``step`` in every row; levels are set to each level in turn and compared with the first.
    Interactions and transforms follow. Each value takes a pass over the rows, in bounded memory.

    Args:
        column: a predictor of the formula.
        step: how much a number is raised.
        draws: how many evenly spaced draws of the posterior are used.
        interval: the probability of the intervals.
        points: values of a number at which the average expected response is found, for a picture.
    """
    what_if = _what_if(model)
    _check(step, draws, interval)
    levels = what_if.levels(column)
    kept = thinned(positions, draws)
    average = _Averages(model, kept, what_if, column, engine)
    with show_passes(progressbar):
        if levels is None:
            changes, averages, values = _of_number(average, step, interval, points)
        else:
            changes, averages, values = _of_levels(average, levels, interval)
    return Effect(
        column=column,
        response=average.response,
        kind="number" if levels is None else "levels",
        changes=changes,
        averages=averages,
        values=values,
        interval=interval,
        num_rows=what_if.source.size,
        num_draws=num_positions(kept),
    )


def num_passes(what_if: WhatIf, column: str, points: int = POINTS) -> int:
    """Over the rows, for the effect of a column."""
    levels = what_if.levels(column)
    return points + 2 if levels is None else len(levels)


def _what_if(model: Model) -> WhatIf:
    if not isinstance(model.table, WhatIf) or model.expected is None:
        raise InputError(
            f"model {model.name!r}",
            got="no table with columns that could be changed",
            expected="a model by formula",
            fix="Build it with cm.from_formula; for others compare fit.predict of two data sets.",
        )
    return model.table


def _check(step: float, draws: int, interval: float) -> None:
    require_count("draws", draws, at_least=2, fix="A few hundred are a good choice.")
    is_step = isinstance(step, int | float) and np.isfinite(step) and step != 0
    require(is_step, "step", got=repr(step), expected="a number other than zero", fix="For example step=1.")
    is_interval = isinstance(interval, int | float) and 0 < interval < 1
    require(is_interval, "interval", got=repr(interval), expected="a probability", fix="For example interval=0.89.")


class _Averages:
    """The average expected response of each draw (S, K) with a column as it is or changed."""

    def __init__(self, model: Model, positions: Position, what_if: WhatIf, column: str, engine: Engine | None) -> None:
        assert model.expected is not None
        self.what_if, self.column = what_if, column
        self._positions, self._engine = positions, engine
        row = Rows(what_if.rows()).types(1)
        shapes = jax.eval_shape(model.expected, first_position(positions), row)
        self.response, shape = next(iter(shapes.items()))
        self.labels = [""] if len(shape.shape) == 1 else [f"{place}" for place in range(int(np.prod(shape.shape[1:])))]
        self._function = _SumOfExpected(model, self.response)

    def __call__(self, change: Change | None, description: str) -> np.ndarray:
        rows = Rows(self.what_if.rows(self.column, change), self._engine)
        task = Task(SumOver(self._function), (self._positions,))
        parts = rows.each_part([task], f"effect of {description}")
        total = reduce(lambda one, other: merged([task], one, other), parts)[0]
        sums, count = (np.asarray(part) for part in total)
        averages: np.ndarray = sums.reshape(num_positions(self._positions), -1) / count
        return averages

    def named(self, label: str, place: int) -> str:
        return f"{label}: {self.response}[{self.labels[place]}]" if len(self.labels) > 1 else label


@dataclass(frozen=True)
class _SumOfExpected:
    """Over the rows of a block, for each draw, and how many rows these are: a row with a case weight is as many."""

    model: Model
    response: str

    def __call__(self, batch: Batch, weights: jax.Array, positions: Position) -> tuple[jax.Array, jax.Array]:
        counts = weights * batch.get(WEIGHT, 1.0)

        def of_draw(position: Position) -> jax.Array:
            assert self.model.expected is not None
            values = self.model.expected(position, batch)[self.response]
            counted = counts.reshape(-1, *[1] * (values.ndim - 1))
            return jnp.sum(jnp.where(counted != 0, values, 0.0) * counted, axis=0)

        return jax.lax.map(of_draw, positions), jnp.sum(counts)


def _of_number(average: _Averages, step: float, interval: float, points: int) -> Any:
    name = average.column
    change = average(Step(step), f"{name} {step:+g}") - average(None, name)
    low, high = average.what_if.range(name, LOW, HIGH)
    values = np.unique(np.linspace(low, high, points))
    at = [average(Setting(float(value)), f"{name} = {value:.4g}") for value in values]
    places = range(len(average.labels))
    changes = [Estimate.of(average.named(f"{name} {step:+g}", place), change[:, place], interval) for place in places]
    averages = [
        Estimate.of(average.named(f"{value:.4g}", place), draws[:, place], interval)
        for place in places
        for value, draws in zip(values, at, strict=True)
    ]
    return tuple(changes), tuple(averages), tuple(values.tolist())


def _of_levels(average: _Averages, levels: Sequence[Any], interval: float) -> Any:
    name = average.column
    require(
        2 <= len(levels) <= MOST_LEVELS,
        f"effect of {name!r}",
        got=f"{len(levels)} levels",
        expected=f"2 to {MOST_LEVELS}: each takes a pass over the rows",
        fix="Compare fit.predict of tables with the levels that matter.",
    )
    at = [average(Setting(level), f"{name} = {level}") for level in levels]
    places = range(len(average.labels))
    changes = [
        Estimate.of(average.named(f"{level} - {levels[0]}", place), draws[:, place] - at[0][:, place], interval)
        for place in places
        for level, draws in zip(levels[1:], at[1:], strict=True)
    ]
    averages = [
        Estimate.of(average.named(str(level), place), draws[:, place], interval)
        for place in places
        for level, draws in zip(levels, at, strict=True)
    ]
    return tuple(changes), tuple(averages), ()
