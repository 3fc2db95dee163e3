"""The unbiased estimate of the gradient of KL(pi_w || pi), equation (4) of the paper.

With chain states theta_1..theta_K, centred log-likelihoods L (K, M) of the coreset rows and centred sums T (K,) over
the data or a minibatch of S rows scaled by N/S,

    g = L' (L w - T) / (K - 1).

Each row is centred over the chains *before* rows are summed: the sums reach 1e7 while the differences are of order
one. The same numbers give an estimate of KL near the optimum, half the variance of the residual T - L w over draws of
pi_w, corrected for the variance that the minibatch adds.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.data.source import DataSource
from coreset_mcmc.models.model import Model

MAX_CENTRING_MATRIX = 16
"""Up to this many positions the K^2 products for each row cost less than evaluating its log-likelihoods twice."""


def log_likelihood_matrix(model: Model, positions: Position, batch: Batch) -> jax.Array:
    """Log-likelihoods (K, B) of each row under each of K positions."""
    return jax.vmap(lambda position: model.log_likelihood(position, batch))(positions)


def centred(log_likelihoods: jax.Array) -> jax.Array:
    """Subtract from each row of data its mean over the K positions.

    By a matrix product, which XLA does not fuse with what comes before it: a plain mean makes it evaluate each
    log-likelihood once for itself and once more for the mean. For few positions the whole centring is one product.
    """
    count = log_likelihoods.shape[0]
    if count > MAX_CENTRING_MATRIX:
        return log_likelihoods - jnp.full((count,), 1.0 / count, log_likelihoods.dtype) @ log_likelihoods
    centring = jnp.eye(count, dtype=log_likelihoods.dtype) - 1.0 / count
    return centring @ log_likelihoods


class DataSums(NamedTuple):
    """Centred log-likelihoods summed over all rows, exactly or as an unbiased estimate."""

    total: jax.Array
    """T (K,)."""
    variance: jax.Array
    """Unbiased estimate (K,) of the variance that subsampling adds to each total; zero for a full pass."""


def full_data_sums(model: Model, positions: Position, data: DataSource) -> DataSums:
    """T_k over all N rows, block by block."""
    total = data.sum_over_rows(lambda batch: jnp.sum(centred(log_likelihood_matrix(model, positions, batch)), axis=1))
    return DataSums(total, jnp.zeros_like(total))


def minibatch_sums(model: Model, positions: Position, batch: Batch, size: int) -> DataSums:
    """T_k estimated from S rows drawn uniformly without replacement from ``size``."""
    values = centred(log_likelihood_matrix(model, positions, batch))
    count = values.shape[1]
    total = jnp.sum(values, axis=1)
    spread = (jnp.sum(values**2, axis=1) - total**2 / count) / max(count - 1, 1)
    return DataSums(total=(size / count) * total, variance=size**2 * (1.0 / count - 1.0 / size) * spread)


class GradientEstimate(NamedTuple):
    """Equation (4) and what else the same numbers tell."""

    gradient: jax.Array
    """g (M,)."""
    half_variance: jax.Array
    """Half the variance of T - L w over the K positions: unbiased, close to KL when KL is small, and noisy."""


def estimate_gradient(coreset_values: jax.Array, sums: DataSums, weights: jax.Array) -> GradientEstimate:
    """Equation (4) from coreset log-likelihoods (K, M), centred here, and sums over the data."""
    values = centred(coreset_values)
    residual = values @ weights - sums.total
    freedom = values.shape[0] - 1
    gradient = residual @ values / freedom
    half_variance = 0.5 * jnp.sum(residual**2 - sums.variance) / freedom
    return GradientEstimate(gradient, half_variance)
