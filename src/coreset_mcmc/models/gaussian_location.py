"""Gaussian location model, with its closed forms (section 3.4 and appendix B of the paper).

theta ~ N(0, I_d), X_n ~ N(theta, I). Everything about it is known exactly, so it anchors the tests.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import require, require_count
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.models.model import Model


def _log_prior(position: Position) -> jax.Array:
    return -0.5 * jnp.sum(position["theta"] ** 2)


def _log_likelihood(position: Position, batch: Batch) -> jax.Array:
    """-|x - theta|^2 / 2 without the term that is free of theta: one matrix product for all rows and chains."""
    theta = position["theta"]
    result: jax.Array = batch @ theta - 0.5 * jnp.sum(theta**2)
    return result


@lru_cache
def gaussian_location(dim: int) -> Model:
    """theta ~ N(0, I), rows ~ N(theta, I). Data: an array of shape (N, dim)."""
    require_count("dim", dim, at_least=1, fix="Pass the number of columns of the data.")

    def check_data(data: Any) -> None:
        shape = getattr(data, "shape", None)
        require(
            shape is not None and len(shape) == 2 and shape[1] == dim,
            "gaussian_location data",
            got=f"shape {shape}" if shape is not None else type(data).__name__,
            expected=f"an array of shape (N, {dim})",
            fix="Pass one array with a column per dimension.",
        )

    return Model(
        _log_prior,
        _log_likelihood,
        initial_position={"theta": np.zeros(dim)},
        check_data=check_data,
        dims={"theta": ("dimension",)},
        log_concave=True,
        name="gaussian_location",
    )


def coreset_posterior(rows: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean (d,) and variance () of pi_w = N(Yw / (1 + 1'w), I / (1 + 1'w))."""
    variance = 1.0 / (1.0 + jnp.sum(weights))
    return variance * (weights @ rows), variance


def coreset_kl(rows: jax.Array, weights: jax.Array, data: jax.Array) -> jax.Array:
    """KL(pi_w || pi) in closed form, stable near zero.

    With W = 1'w it is ``d/2 (r - 1 - log r) + (1 + N)/2 |mu_w - mu|^2`` where r = (1 + N)/(1 + W); the first part is
    computed from ``log1p`` so that it does not cancel when W is close to N.
    """
    size, dim = data.shape
    mean, variance = coreset_posterior(rows, weights)
    full_mean = jnp.sum(data, axis=0) / (1.0 + size)
    excess = (size - jnp.sum(weights)) * variance
    return 0.5 * dim * (excess - jnp.log1p(excess)) + 0.5 * (1.0 + size) * jnp.sum((mean - full_mean) ** 2)


def coreset_kl_gradient(rows: jax.Array, weights: jax.Array, data: jax.Array) -> jax.Array:
    """The gradient of :func:`coreset_kl` with respect to the weights, written out (spec of the paper's appendix B)."""
    size, dim = data.shape
    total = jnp.sum(weights)
    mean, _ = coreset_posterior(rows, weights)
    full_mean = jnp.sum(data, axis=0) / (1.0 + size)
    offset = dim / (1.0 + size) - dim / (1.0 + total)
    return (1.0 + size) / (2.0 * (1.0 + total)) * (offset + 2.0 * (rows - mean) @ (mean - full_mean))
