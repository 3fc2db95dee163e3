"""Infinite numbers among the data, such as the bounds of rows that are not censored, and the slopes of their rows.

A distribution function of (bound - mean) / scale has a slope of zero in the scale where the bound is infinite; computed
by the chain rule it is zero times infinity. A bound of 10^100 gives the same value and slopes that are numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.compilation import quick_compilation
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.models.independence import agree
from coreset_mcmc.models.rows import NUM_ROWS, rows_at

LARGE = 1e100
"""Far outside of any data; its square is still a number."""

LogLikelihood = Callable[[Position, Batch], jax.Array]


def with_finite_slopes(log_likelihood: LogLikelihood, position: Position, data: Mapping[str, Any]) -> LogLikelihood:
    """The log-likelihood, held away from infinite data if that changes no value and mends the slopes."""
    rows = _infinite_rows(data)
    if rows is None:
        return log_likelihood

    def away_from_infinity(position: Position, batch: Batch) -> jax.Array:
        return log_likelihood(position, jax.tree.map(_bounded, batch))

    as_it_is, as_it_is_slopes = _tried(log_likelihood, position, rows)
    if _are_finite(as_it_is_slopes):
        return log_likelihood
    values, slopes = _tried(away_from_infinity, position, rows)
    return away_from_infinity if agree(values, as_it_is) and _are_finite(slopes) else log_likelihood


def _infinite_rows(data: Mapping[str, Any]) -> Batch | None:
    """Some of the rows with infinite numbers, with both signs of each array."""
    places: list[int] = []
    for leaf in jax.tree.leaves(dict(data)):
        array = np.asarray(leaf)
        if array.dtype.kind == "f":
            rows = array.reshape(len(array), -1)
            for sign in (-np.inf, np.inf):
                places += np.flatnonzero((rows == sign).any(axis=1))[:NUM_ROWS].tolist()
    return rows_at(dict(data), np.unique(places)) if places else None


def _bounded(leaf: Any) -> Any:
    return jnp.clip(leaf, -LARGE, LARGE) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else leaf


def _tried(log_likelihood: LogLikelihood, position: Position, rows: Batch) -> tuple[Any, Any]:
    """Values of the rows, and the slopes of their sum."""

    def total(at: Position) -> tuple[jax.Array, jax.Array]:
        values = log_likelihood(at, rows)
        return jnp.sum(values), values

    try:
        slopes, values = jax.jit(jax.grad(total, has_aux=True), compiler_options=quick_compilation(0))(position)
    except (ValueError, NotImplementedError, TypeError):  # it has no slopes
        return log_likelihood(position, rows), ()
    return values, slopes


def _are_finite(tree: Any) -> bool:
    return all(bool(np.all(np.isfinite(leaf))) for leaf in jax.tree.leaves(tree))
