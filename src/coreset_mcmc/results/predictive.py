"""Responses of given rows, block by block: what they are on average, and new ones. Never rows times draws.

The expected response of a row has a value for each draw of the posterior: its spread is what is not known about the
parameters. New responses scatter around it, so their intervals are wider. The random numbers of a block follow from the
seed and the place of the block among all rows, so predictions are the same wherever the rows are and whoever passes
over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.entry_point import entry_point
from coreset_mcmc.core.errors import InputError, require, require_count
from coreset_mcmc.core.trees import first_position, num_positions, thinned
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.data.blocks import InBlocks, rows_of
from coreset_mcmc.data.engine import Engine
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.task import Task
from coreset_mcmc.driver.progress import show_passes
from coreset_mcmc.models.model import Model
from coreset_mcmc.results.predictions import EXPECTED, RESPONSES, Predictions, in_columns, in_memory
from coreset_mcmc.results.row_file import check_place, write_rows

if TYPE_CHECKING:
    import xarray

QUANTILES = (0.055, 0.5, 0.945)
"""The median and an interval of 89 %, as in ArviZ."""
KEYS = "threefry2x32"


@entry_point
def predict(
    model: Model,
    positions: Position,
    data: Any,
    *,
    draws: int,
    quantiles: Sequence[float] | None,
    var_names: Sequence[str] | str | None,
    random_seed: int,
    to: Path | str | None = None,
    progressbar: bool = False,
    engine: Engine | None = None,
) -> xarray.DataTree | Path:
    """See :meth:`coreset_mcmc.Fit.predict`."""
    if model.predictive is None:
        raise InputError(
            f"model {model.name!r}",
            got="no predictive function",
            expected="one that draws responses for given rows",
            fix="Pass Model(..., predictive=function) with function(key, position, batch) -> {name: (B, ...)}.",
        )
    require(
        to is None or quantiles is not None,
        "predict",
        got="quantiles=None and to=...",
        expected="summaries of each row in the file",
        fix="Leave quantiles out; fewer rows at a time can be kept in memory with all their draws.",
    )
    place = None if to is None else check_place(to)
    _check_quantiles(quantiles)
    require_count("draws", draws, at_least=1, fix="A few hundred are a good choice.")
    new = data if model.new_rows is None else model.new_rows(data)
    rows = rows_of(new, "predict", engine, infinite=model.infinite)
    kept = thinned(positions, draws)
    names = _names(model, kept, rows.types(1), var_names)
    drawn = jax.eval_shape(_Draws(model, names), rows.types(1), _place_types(), _key_of(random_seed), kept)
    chosen = None if quantiles is None else tuple(quantiles)
    asked = _Draws(model, names) if chosen is None else _Summaries(model, names, chosen)
    values_per_row = sum(int(np.prod(leaf.shape)) for leaf in jax.tree.leaves(drawn))
    task = Task(InBlocks(_Checked(asked, model.infinite), values_per_row), (_key_of(random_seed), kept))
    with show_passes(progressbar):
        parts = _each_part(rows, task, names)
        if place is not None:
            assert chosen is not None
            return write_rows(place, (in_columns(part, chosen) for part in parts))
        return in_memory(parts, rows.size, in_order(drawn, names), chosen)


@dataclass(frozen=True)
class _Draws:
    """Expected and new responses (B, S, ...) of each row and draw, by group and name."""

    model: Model
    names: tuple[str, ...]

    def __call__(self, batch: Batch, place: Any, key_data: jax.Array, positions: Position) -> Predictions:
        assert self.model.predictive is not None
        leaf, first_row = place
        key = jax.random.wrap_key_data(key_data, impl=KEYS)
        keys = jax.random.split(jax.random.fold_in(jax.random.fold_in(key, leaf), first_row), num_positions(positions))
        drawn = {RESPONSES: jax.vmap(self.model.predictive, in_axes=(0, 0, None), out_axes=1)(keys, positions, batch)}
        if self.model.expected is not None:
            drawn[EXPECTED] = jax.vmap(self.model.expected, in_axes=(0, None), out_axes=1)(positions, batch)
        return in_order(drawn, self.names)


def in_order(drawn: Predictions, names: tuple[str, ...]) -> Predictions:
    """What is expected comes first; within a group those of these names that it has."""
    groups = [group for group in (EXPECTED, RESPONSES) if group in drawn]
    kept = {group: {name: drawn[group][name] for name in names if name in drawn[group]} for group in groups}
    return {group: values for group, values in kept.items() if values}


@dataclass(frozen=True)
class _Summaries:
    """Mean, standard deviation and quantiles (B, ..., statistics) over draws."""

    model: Model
    names: tuple[str, ...]
    quantiles: tuple[float, ...]

    def __call__(self, *arguments: Any) -> Predictions:
        drawn: Predictions = _Draws(self.model, self.names)(*arguments)
        result: Predictions = jax.tree.map(lambda values: self._summary(values.astype(float)), drawn)
        return result

    def _summary(self, values: jax.Array) -> jax.Array:
        chosen = jnp.quantile(values, jnp.asarray(self.quantiles), axis=1)
        return jnp.moveaxis(jnp.concatenate([values.mean(1)[None], values.std(1)[None], chosen]), 0, -1)


@dataclass(frozen=True)
class _Checked:
    """Besides, whether all numbers of a row may be there: rows on disk are looked at when they are used."""

    function: _Draws | _Summaries
    infinite: bool
    """Whether infinite ones may, such as bounds of rows that are not censored."""

    def __call__(self, batch: Batch, *arguments: Any) -> tuple[Predictions, jax.Array]:
        leaves = jax.tree.leaves(batch)
        allowed = [~jnp.isnan(leaf) if self.infinite else jnp.isfinite(leaf) for leaf in leaves]
        good = [leaf.all(axis=tuple(range(1, leaf.ndim))) for leaf in allowed]
        return self.function(batch, *arguments), jnp.stack(good).all(axis=0)


def _each_part(rows: Rows, task: Task, names: tuple[str, ...]) -> Iterator[Predictions]:
    """Predictions of consecutive rows, in the order of the names."""
    num_done = 0
    for ((values, is_finite),) in rows.each_part([task], "predicting"):
        if not is_finite.all():
            row = num_done + int(np.argmin(is_finite))
            raise InputError(
                "data",
                got=f"NaN or an infinite value in {rows.source.place_of(row)}",
                expected="finite values",
                fix="Drop or impute such rows.",
            )
        num_done += len(is_finite)
        yield in_order(values, names)


def _check_quantiles(quantiles: Sequence[float] | None) -> None:
    is_right = quantiles is None or all(0 <= quantile <= 1 for quantile in quantiles)
    require(
        is_right,
        "quantiles",
        got=repr(quantiles),
        expected="probabilities between 0 and 1",
        fix="For example quantiles=(0.05, 0.5, 0.95).",
    )


def _names(model: Model, positions: Position, row: Batch, var_names: Sequence[str] | str | None) -> tuple[str, ...]:
    assert model.predictive is not None
    position = first_position(positions)
    known = list(jax.eval_shape(model.predictive, jax.random.key(0), position, row))
    if var_names is None:
        return tuple(known)
    asked = [var_names] if isinstance(var_names, str) else list(var_names)
    unknown = [name for name in asked if name not in known]
    require(
        bool(asked) and not unknown,
        "var_names",
        got=repr(unknown or asked),
        expected=f"names among {known}",
        fix="Leave it out for all of them.",
    )
    return tuple(asked)


def _key_of(seed: int) -> np.ndarray:
    return np.asarray(jax.random.key_data(jax.random.key(seed, impl=KEYS)))


def _place_types() -> tuple[Any, Any]:
    return (jax.ShapeDtypeStruct((), jnp.int64), jax.ShapeDtypeStruct((), jnp.int64))
