"""Counts with mean mu = exp(eta): y ~ Poisson(mu), and y ~ NB with variance mu + mu^2 / alpha.

Where exp(eta) would overflow it goes on as a straight line, which keeps the log-density concave and every gradient
finite.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.types import Batch, Key
from coreset_mcmc.models.special import bounded_exponential, log_gamma, softplus
from coreset_mcmc.tables.families.family import Family, Parameter, Unconstrained

LARGEST_LOG_ALPHA = 50.0
"""From far below this on, the negative binomial is a Poisson distribution to the last bit."""
LARGE_ALPHA = 100.0
"""From here on, Stirling's series to three terms is exact to rounding."""
LARGEST_COUNT_EXPONENT = 40.0
"""Counts of exp(40) and more are no data of anyone; JAX draws them from 64-bit integers."""


def log_poisson(predictor: jax.Array, y: jax.Array) -> jax.Array:
    """log Poisson(y | exp(eta))."""
    return y * predictor - bounded_exponential(predictor) - log_gamma(y + 1.0)


def log_negative_binomial(log_alpha: jax.Array, predictor: jax.Array, y: jax.Array) -> jax.Array:
    """log NB(y | mu, alpha) = D + y eta - (y + alpha) log(1 + mu / alpha) - log y!.

    D = log Gamma(y + alpha) - log Gamma(alpha) - y log alpha.
    """
    alpha = jnp.exp(log_alpha)
    excess = softplus(predictor - log_alpha)
    return rising_factorial_excess(y, alpha, log_alpha) + y * predictor - (y + alpha) * excess - log_gamma(y + 1.0)


def held_log_alpha(parameters: Unconstrained) -> jax.Array:
    """log alpha, held where nothing changes any more."""
    return jnp.clip(parameters["alpha"], -LARGEST_LOG_ALPHA, LARGEST_LOG_ALPHA)


def rising_factorial_excess(y: jax.Array, alpha: jax.Array, log_alpha: jax.Array) -> jax.Array:
    """log Gamma(y + alpha) - log Gamma(alpha) - y log alpha, by Stirling's series for large alpha."""
    is_large = alpha > LARGE_ALPHA
    small, large = jnp.where(is_large, 1.0, alpha), jnp.where(is_large, alpha, LARGE_ALPHA)

    def correction(z: jax.Array) -> jax.Array:
        return 1.0 / (12.0 * z) - 1.0 / (360.0 * z**3) + 1.0 / (1260.0 * z**5)

    series = (y + large - 0.5) * jnp.log1p(y / large) - y + correction(y + large) - correction(large)
    direct = log_gamma(y + small) - log_gamma(small) - y * jnp.where(is_large, 0.0, log_alpha)
    return jnp.where(is_large, series, direct)


def draw_counts(key: Key, log_mean: jax.Array) -> jax.Array:
    """Poisson counts; as floats, which hold counts beyond the largest 32-bit integer."""
    mean = jnp.exp(jnp.minimum(log_mean, LARGEST_COUNT_EXPONENT))
    return jax.random.poisson(key, mean, dtype=jnp.int64).astype(log_mean.dtype)


def draw_mixed_counts(key: Key, log_alpha: jax.Array, log_mean: jax.Array) -> jax.Array:
    """Counts whose Poisson mean varies as a Gamma variable with shape alpha."""
    gamma_key, poisson_key = jax.random.split(key)
    log_gamma = jax.random.loggamma(gamma_key, jnp.broadcast_to(jnp.exp(log_alpha), log_mean.shape))
    return draw_counts(poisson_key, log_mean + log_gamma - log_alpha)


@dataclass(frozen=True)
class Counts(Family):
    """What all families of counts share."""

    links: ClassVar = ("log",)
    expects: ClassVar = "counts: whole numbers of at least 0"
    instead: ClassVar = "Use the family gaussian or t for other numbers, gamma for positive ones."

    def expected(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        return bounded_exponential(predictor)

    def outside(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> np.ndarray | None:
        result: np.ndarray = ~((y >= 0) & (y == np.floor(y)))
        return result

    def outcomes(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
        return y > 0, ~(y > 0)


@dataclass(frozen=True)
class Poisson(Counts):
    """y ~ Poisson(exp(eta))."""

    log_concave: ClassVar = True

    def log_density(self, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        return log_poisson(predictor, batch["y"])

    def draw(self, key: Key, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        return draw_counts(key, predictor)

    def start(self, means: np.ndarray) -> tuple[Any, dict[str, Any]]:
        return math.log(means[0]), {}


@dataclass(frozen=True)
class NegativeBinomial(Counts):
    """Counts with mean mu and variance mu + mu^2 / alpha."""

    parameters: ClassVar = (Parameter("alpha"),)

    def log_density(self, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        return log_negative_binomial(held_log_alpha(parameters), predictor, batch["y"])

    def draw(self, key: Key, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        return draw_mixed_counts(key, held_log_alpha(parameters), predictor)

    def start(self, means: np.ndarray) -> tuple[Any, dict[str, Any]]:
        return math.log(means[0]), {"alpha": 0.0}
