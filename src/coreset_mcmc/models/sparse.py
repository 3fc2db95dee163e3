"""Sparse regression by stochastic search variable selection (George and McCulloch 1993; appendix C.1 of the paper).

sigma^2 ~ InvGamma(nu / 2, nu lambda / 2), gamma_i ~ Bernoulli(q), beta_i | gamma_i ~ N(0, tau^2) if gamma_i = 0 (the
spike) and N(0, (c tau)^2) if gamma_i = 1 (the slab); l_n = -(log sigma^2 + (y_n - x_n'beta)^2 / sigma^2) / 2. There is
no intercept. A position has a discrete part, so only kernels made for it can move it.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import require, require_count, require_positive
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.models.checks import regression_columns
from coreset_mcmc.models.model import ChangeBound, Model, SpikeAndSlab

TRUE_COEFFICIENTS = (0.0, 0.0, 0.0, 0.0, 0.0, 5.0, 5.0, 5.0, 5.0, 5.0)
"""beta of the paper's synthetic data."""

NOISE_DEVIATION = 25.0
"""Standard deviation of the noise in the paper's synthetic data."""


def coefficient_scales(gamma: jax.Array, prior: SpikeAndSlab) -> jax.Array:
    """Prior standard deviation of each coefficient: tau in the spike, c tau in the slab."""
    return jnp.where(gamma == 1, prior.slab_ratio * prior.spike_scale, prior.spike_scale)


def _log_prior(position: Position, prior: SpikeAndSlab) -> jax.Array:
    beta, gamma, variance = position["beta"], position["gamma"], position["variance"]
    scales = coefficient_scales(gamma, prior)
    log_odds = math.log(prior.inclusion_probability) - math.log1p(-prior.inclusion_probability)
    coefficients = jnp.sum(log_odds * gamma - jnp.log(scales) - 0.5 * (beta / scales) ** 2)
    half_shape = 0.5 * prior.variance_shape
    safe = jnp.where(variance > 0, variance, 1.0)
    noise = -(half_shape + 1.0) * jnp.log(safe) - half_shape * prior.variance_scale / safe
    is_possible = (variance > 0) & jnp.all((gamma == 0) | (gamma == 1))
    return jnp.where(is_possible, coefficients + noise, -jnp.inf)


def _log_likelihood(position: Position, batch: Batch) -> jax.Array:
    variance = position["variance"]
    safe = jnp.where(variance > 0, variance, 1.0)
    residuals = batch["y"] - batch["x"] @ position["beta"]
    return jnp.where(variance > 0, -0.5 * (jnp.log(safe) + residuals**2 / safe), -jnp.inf)


def _row_length(batch: Batch) -> jax.Array:
    return jnp.sqrt(batch["y"] ** 2 + jnp.sum(batch["x"] ** 2, axis=1))


def _bound_of_change(longest: jax.Array, position: Position, proposal: Position) -> jax.Array:
    """With z = (y, x) and v = (1, -beta) / sigma a row is -(log sigma^2 + (v'z)^2) / 2.

    (v'z)^2 - (u'z)^2 = (v - u)'z (v + u)'z, which is at most |v - u| |v + u| |z|^2.
    """

    def scaled(at: Position) -> jax.Array:
        return jnp.append(-at["beta"], 1.0) / jnp.sqrt(at["variance"])

    here, there = scaled(position), scaled(proposal)
    squares = jnp.linalg.norm(there - here) * jnp.linalg.norm(there + here) * longest**2
    result: jax.Array = 0.5 * (jnp.abs(jnp.log(proposal["variance"] / position["variance"])) + squares)
    return result


@lru_cache
def sparse_regression(
    num_features: int,
    *,
    inclusion_probability: float = 0.1,
    slab_ratio: float = 10.0,
    spike_scale: float = 0.1,
    variance_shape: float = 0.1,
    variance_scale: float = 1.0,
) -> Model:
    """y ~ N(x'beta, variance), each beta_i from a spike (gamma_i = 0) or a slab (gamma_i = 1).

    Args:
        num_features: p, the number of columns of x.
        inclusion_probability: q, the prior probability of gamma_i = 1.
        slab_ratio: c, how many times wider the slab is than the spike.
        spike_scale: tau, the standard deviation of the spike.
        variance_shape: nu; the prior of the variance is worth nu rows.
        variance_scale: lambda, the variance that those rows would have.
    """
    require_count("num_features", num_features, at_least=1, fix="Pass the number of columns of x.")
    require(
        0 < inclusion_probability < 1,
        "inclusion_probability",
        got=inclusion_probability,
        expected="a number between 0 and 1, both excluded",
        fix="Leave it out for the paper's 0.1.",
    )
    require(
        slab_ratio > 1,
        "slab_ratio",
        got=slab_ratio,
        expected="a number above 1",
        fix="The slab must be wider than the spike; leave it out for the paper's 10.",
    )
    for subject, value in (
        ("spike_scale", spike_scale),
        ("variance_shape", variance_shape),
        ("variance_scale", variance_scale),
    ):
        require_positive(subject, value)
    prior = SpikeAndSlab(inclusion_probability, slab_ratio, spike_scale, variance_shape, variance_scale)

    def check_data(data: Any) -> None:
        regression_columns(data, num_features)

    return Model(
        lambda position: _log_prior(position, prior),
        _log_likelihood,
        initial_position={
            "beta": np.zeros(num_features),
            "gamma": np.ones(num_features, np.int32),
            "variance": np.array(1.0),
        },
        differentiable=False,
        change_bound=ChangeBound(_row_length, _bound_of_change),
        structure=prior,
        check_data=check_data,
        dims={"beta": ("coefficient",), "gamma": ("coefficient",)},
        name="sparse_regression",
    )


def least_squares_start(data: Any) -> Position:
    """The paper's start: least squares on all rows, every feature included, the residual variance.

    Data that least squares fits exactly leave no residual variance; it is then 1.
    """
    x, y = regression_columns(data, np.shape(data["x"])[-1])
    beta, _, rank, _ = np.linalg.lstsq(x, y)
    freedom = len(y) - int(rank)
    variance = float(np.sum((y - x @ beta) ** 2)) / freedom if freedom > 0 else 0.0
    return {
        "beta": beta,
        "gamma": np.ones(x.shape[1], np.int32),
        "variance": np.array(variance if variance > 0 else 1.0),
    }


def sparse_regression_data(rng: np.random.Generator, num_rows: int = 50_000) -> dict[str, np.ndarray]:
    """The paper's synthetic data: ten standard normal features, of which the last five matter, and much noise."""
    x = rng.normal(size=(num_rows, len(TRUE_COEFFICIENTS)))
    return {"x": x, "y": x @ np.array(TRUE_COEFFICIENTS) + NOISE_DEVIATION * rng.normal(size=num_rows)}
