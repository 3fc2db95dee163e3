"""Importance ratios from the coreset posterior to the full one, Pareto-smoothed (Vehtari et al. 2024).

The log-ratio of a draw is sum_n l_n - sum_m w_m l_m up to a constant: the prior cancels. It takes one pass over the
rows for each draw; rows are centred over draws before they are summed. A draw that is impossible under some row has
the log-ratio minus infinity: the full posterior is zero there, and so is its weight.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.trees import num_positions
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.data import ArrayData
from coreset_mcmc.data.blocks import by_blocks
from coreset_mcmc.models.model import Model

FLAT = 1e-6
"""Log-ratios that differ by less have no tail to fit."""


class Ratios(NamedTuple):
    """Smoothed and normalised log-weights (S,), and the shape of their tail."""

    log_weights: np.ndarray
    pareto_k: float

    @property
    def effective_size(self) -> float:
        """Of the weights alone: one over the sum of their squares; zero if no draw has any weight."""
        squares = float(np.sum(np.exp(2.0 * self.log_weights)))
        return 1.0 / squares if squares > 0.0 else 0.0


def good_shape(count: int) -> float:
    """The largest k-hat at which ``count`` weighted draws can be trusted."""
    return float(min(1.0 - 1.0 / np.log10(count), 0.7))


def ratios_to_full(
    model: Model, positions: Position, rows: ArrayData, indices: np.ndarray, weights: np.ndarray
) -> Ratios:
    """Of draws (S, ...) of a coreset posterior."""
    return smoothed(log_ratios_to_full(model, positions, rows, indices, weights))


def log_ratios_to_full(
    model: Model, positions: Position, rows: ArrayData, indices: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Before smoothing, (S,), up to a constant; S passes over the rows, in blocks of bounded size."""
    count = num_positions(positions)
    total = np.zeros(count)
    for _, values in by_blocks(partial(log_likelihoods, model, positions), rows, count):
        total += _centred(values).sum(axis=0)
    chosen = np.asarray(log_likelihoods(model, positions, rows.take(jnp.asarray(indices)), 0))
    with np.errstate(invalid="ignore"):
        coreset = np.where(weights[:, None] != 0, weights[:, None] * _centred(chosen), 0.0)
        log_ratios = total - coreset.sum(axis=0)
    return np.where(log_ratios < np.inf, log_ratios, -np.inf)


def _centred(values: np.ndarray) -> np.ndarray:
    """Rows (B, S) less their mean over the draws that are possible under them."""
    is_finite = np.isfinite(values)
    if is_finite.all():
        result: np.ndarray = values - values.mean(axis=1, keepdims=True)
        return result
    totals = np.where(is_finite, values, 0.0).sum(axis=1, keepdims=True)
    centred: np.ndarray = values - totals / np.maximum(is_finite.sum(axis=1, keepdims=True), 1)
    return centred


def smoothed(log_ratios: np.ndarray) -> Ratios:
    """Pareto-smoothed importance weights; k-hat is infinite if there is no tail to fit."""
    if not np.isfinite(log_ratios).any():
        return Ratios(np.full(len(log_ratios), -np.inf), math.inf)
    from blackjax.diagnostics import psis_weights  # noqa: PLC0415 - BlackJAX takes a second to import

    log_weights, shape = psis_weights(jnp.asarray(log_ratios))
    normalised = np.asarray(log_weights - jax.nn.logsumexp(log_weights))
    if np.isfinite(log_ratios).all() and np.ptp(log_ratios) < FLAT:
        return Ratios(normalised, 0.0)
    return Ratios(normalised, math.inf if np.isnan(shape) else float(shape))


@partial(jax.jit, static_argnums=0)
def log_likelihoods(model: Model, positions: Position, batch: Batch, start: int) -> jax.Array:
    """Log-likelihoods (B, S) of each row under each draw."""
    del start
    return jax.vmap(lambda position: model.log_likelihood(position, batch), out_axes=1)(positions)
