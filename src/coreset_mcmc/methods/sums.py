"""Log-likelihoods centred over positions, their sums over all rows, and the KL that they estimate.

Each row is centred over the positions *before* rows are summed: the sums reach 1e7 while the differences are of order
one. With centred log-likelihoods L (J, M) of the coreset rows and centred sums T (J,) over the data, at draws of pi_w,
half the variance of the residual T - L w estimates KL(pi_w || pi) near the optimum.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.data.inside import DataSource
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.problem import Problem

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


def half_variances(problem: Problem, positions: Position, weights: jax.Array) -> jax.Array:
    """KL estimates (C,) of C candidate weight vectors (C, M) from J positions; costs J passes over the data."""
    totals = full_data_sums(problem.model, positions, problem.data).total
    values = centred(log_likelihood_matrix(problem.model, positions, problem.rows))
    residuals = totals - jnp.where(weights != 0, weights, 0.0) @ values.T
    return 0.5 * jnp.var(residuals, axis=1, ddof=1)
