"""Links: from a linear predictor to a probability or to the logarithm of a mean, without overflow."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr

from coreset_mcmc.models.special import bounded_exponential, softplus

LOG_PROBABILITY_IS_PREDICTOR_BELOW = -30.0
"""Below this, log(1 - exp(-exp(eta))) equals eta to the last bits of a double."""
SMALLEST_INVERSE = 1e-6
"""Of a predictor with inverse link, in units of one over the mean response; below it the logarithm goes on as its
tangent, so that means that would not be positive have a density that is tiny, and not NaN."""
LARGEST_PROBIT = 1e5
"""Beyond this the square of a predictor says nothing more."""


def log_probabilities(link: str, predictor: jax.Array) -> tuple[jax.Array, jax.Array]:
    """log p and log(1 - p)."""
    if link == "probit":
        held = jnp.clip(predictor, -LARGEST_PROBIT, LARGEST_PROBIT)
        return log_ndtr(held), log_ndtr(-held)
    if link == "cloglog":
        return log_one_minus_exp(predictor), -bounded_exponential(predictor)
    return -softplus(-predictor), -softplus(predictor)


def log_one_minus_exp(log_value: jax.Array) -> jax.Array:
    """log(1 - exp(-v)) from log v, for v above zero."""
    is_small = log_value < LOG_PROBABILITY_IS_PREDICTOR_BELOW
    safe = jnp.clip(jnp.where(is_small, 0.0, log_value), None, 6.0)
    return jnp.where(is_small, log_value, jnp.log(-jnp.expm1(-jnp.exp(safe))))


def log_mean(link: str, predictor: jax.Array) -> jax.Array:
    """Of a positive response."""
    if link == "inverse":
        above = jnp.maximum(predictor, SMALLEST_INVERSE)
        return -jnp.log(above) - (predictor - above) / SMALLEST_INVERSE
    return predictor


def link_of(link: str, mean: Any) -> float:
    """The predictor of a mean that lies inside its range."""
    value = float(mean)
    if link == "logit":
        return math.log(value) - math.log1p(-value)
    if link == "probit":
        from scipy.special import ndtri

        return float(ndtri(value))
    if link == "cloglog":
        return math.log(-math.log1p(-value))
    if link == "inverse":
        return 1.0 / value
    return math.log(value)


def inside(share: Any, count: float = 1e6) -> float:
    """A share that is neither zero nor one."""
    return float(np.clip(share, 1.0 / count, 1.0 - 1.0 / count))
