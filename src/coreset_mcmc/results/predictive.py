"""New responses for given rows, block by block: summaries of all rows, never rows times draws."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray

from coreset_mcmc.core.entry_point import entry_point
from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.trees import first_position, num_positions, thinned
from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.data.blocks import by_blocks, rows_of
from coreset_mcmc.models.model import Model

QUANTILES = (0.055, 0.5, 0.945)
"""The median and an interval of 89 %, as in ArviZ."""


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
) -> xarray.DataTree:
    """See :meth:`coreset_mcmc.Fit.predict`."""
    if model.predictive is None:
        raise InputError(
            f"model {model.name!r}",
            got="no predictive function",
            expected="one that draws responses for given rows",
            fix="Pass Model(..., predictive=function) with function(key, position, batch) -> {name: (B, ...)}.",
        )
    rows = rows_of(data, "predict")
    kept = thinned(positions, draws)
    count = num_positions(kept)
    key = jax.random.key(random_seed)
    names = _names(model, kept, rows.take(jnp.zeros(1, int)), var_names)

    def block(batch: Batch, start: int) -> dict[str, Any]:
        drawn = _draw(model, names, jax.random.fold_in(key, start), kept, batch)
        if quantiles is None:
            return {name: jnp.swapaxes(values, 0, 1) for name, values in drawn.items()}
        return {name: _summary(values, tuple(quantiles)) for name, values in drawn.items()}

    shapes = jax.eval_shape(partial(_draw, model, names), key, kept, rows.take(jnp.zeros(1, int)))
    blocks = [values for _, values in by_blocks(block, rows, sum(leaf.size for leaf in shapes.values()))]
    joined = {name: np.concatenate([values[name] for values in blocks]) for name in names}
    dataset = _draws_dataset(joined, count) if quantiles is None else _summary_dataset(joined, list(quantiles))
    return xarray.DataTree.from_dict({"posterior_predictive": dataset})


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


@partial(jax.jit, static_argnums=(0, 1))
def _draw(model: Model, names: tuple[str, ...], key: Key, positions: Position, batch: Batch) -> dict[str, jax.Array]:
    """New responses (S, B, ...) of each draw and row."""
    assert model.predictive is not None
    count = num_positions(positions)
    drawn = jax.vmap(model.predictive, in_axes=(0, 0, None))(jax.random.split(key, count), positions, batch)
    return {name: drawn[name] for name in names}


@partial(jax.jit, static_argnums=1)
def _summary(values: jax.Array, quantiles: tuple[float, ...]) -> jax.Array:
    """Mean, standard deviation and quantiles (B, ..., statistics) over draws."""
    values = values.astype(float)
    chosen = jnp.quantile(values, jnp.asarray(quantiles), axis=0)
    return jnp.moveaxis(jnp.concatenate([values.mean(0)[None], values.std(0)[None], chosen]), 0, -1)


def _summary_dataset(values: dict[str, np.ndarray], quantiles: list[float]) -> xarray.Dataset:
    labels = ["mean", "sd", *(f"q{quantile:g}" for quantile in quantiles)]
    return xarray.Dataset(
        {name: (["row", *_inner(name, array, 2), "statistic"], array) for name, array in values.items()},
        coords={"statistic": labels},
    )


def _draws_dataset(values: dict[str, np.ndarray], count: int) -> xarray.Dataset:
    return xarray.Dataset(
        {
            name: (["chain", "draw", "row", *_inner(name, array, 2)], np.moveaxis(array, 1, 0)[None])
            for name, array in values.items()
        },
        coords={"chain": [0], "draw": np.arange(count)},
    )


def _inner(name: str, array: np.ndarray, num_known: int) -> list[str]:
    return [f"{name}_dim_{axis}" for axis in range(array.ndim - num_known)]
