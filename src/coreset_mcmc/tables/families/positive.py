"""Positive responses with mean mu: Gamma, exponential and Weibull; and shares between zero and one: Beta.

    gamma         shape alpha, mean mu = exp(eta) or 1 / eta
    exponential   mean mu = exp(eta)
    weibull       shape alpha, scale mu / Gamma(1 + 1/alpha), mean mu = exp(eta)
    beta          mean mu = logistic(eta), Beta(mu kappa, (1 - mu) kappa)

Times of exponential and Weibull variables may be right-censored: of such a row it is known that the event came later,
and its log-density is the logarithm of the probability of that.
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
from coreset_mcmc.models.special import bounded_exponential, log_gamma
from coreset_mcmc.tables.families.family import CENSORED, Family, Parameter, Unconstrained
from coreset_mcmc.tables.families.links import inside, link_of, log_mean, log_probabilities

LARGEST_LOG_SHAPE = 50.0
LARGE_SHAPE = 100.0
LARGEST_LOG_POWER = 20.0
"""Of the shape of a Weibull distribution, either way."""


@dataclass(frozen=True)
class Positive(Family):
    """What positive responses share."""

    expects: ClassVar = "numbers above 0"
    instead: ClassVar = "Use the family gaussian or t for other numbers; rows at 0 need a model of their own."
    is_continuous: ClassVar = True

    def expected(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        return bounded_exponential(log_mean(self.link, predictor))

    def outside(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> np.ndarray | None:
        result: np.ndarray = ~(y > 0)
        return result


def _log_height(log_shape: jax.Array) -> jax.Array:
    """alpha log alpha - alpha - log Gamma(alpha), by Stirling's series for large alpha."""
    shape = jnp.exp(log_shape)
    is_large = shape > LARGE_SHAPE
    small, large = jnp.where(is_large, 1.0, shape), jnp.where(is_large, shape, LARGE_SHAPE)
    correction = 1.0 / (12.0 * large) - 1.0 / (360.0 * large**3) + 1.0 / (1260.0 * large**5)
    series = 0.5 * (log_shape - math.log(2.0 * math.pi)) - correction
    return jnp.where(is_large, series, small * jnp.log(small) - small - log_gamma(small))


@dataclass(frozen=True)
class Gamma(Positive):
    """Of shape alpha: the standard deviation is mu / sqrt(alpha)."""

    parameters: ClassVar = (Parameter("alpha"),)
    links: ClassVar = ("log", "inverse")

    def log_density(self, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        log_y = jnp.log(batch["y"])
        log_shape = jnp.clip(parameters["alpha"], -LARGEST_LOG_SHAPE, LARGEST_LOG_SHAPE)
        relative = log_y - log_mean(self.link, predictor)
        return _log_height(log_shape) - log_y + jnp.exp(log_shape) * (relative + 1.0 - bounded_exponential(relative))

    def draw(self, key: Key, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        log_shape = jnp.clip(parameters["alpha"], -LARGEST_LOG_SHAPE, LARGEST_LOG_SHAPE)
        drawn = jax.random.loggamma(key, jnp.broadcast_to(jnp.exp(log_shape), predictor.shape))
        return jnp.exp(log_mean(self.link, predictor) + drawn - log_shape)

    def start(self, means: np.ndarray) -> tuple[Any, dict[str, Any]]:
        return (1.0 if self.divides_by_mean else math.log(means[0])), {"alpha": 0.0}


@dataclass(frozen=True)
class Lifetime(Positive):
    """Times until an event, some of which are lower bounds only."""

    links: ClassVar = ("log",)
    takes_censored: ClassVar = True

    def statistics(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        events = 1.0 - batch[CENSORED] if CENSORED in batch else np.ones_like(y)
        return [y, events]

    def start(self, means: np.ndarray) -> tuple[Any, dict[str, Any]]:
        return math.log(means[0] / means[1]), {parameter.name: 0.0 for parameter in self.parameters}


def _of_events(batch: Batch, log_density: jax.Array, log_later: jax.Array) -> jax.Array:
    return jnp.where(batch[CENSORED] > 0, log_later, log_density) if CENSORED in batch else log_density


@dataclass(frozen=True)
class Exponential(Lifetime):
    """Events at a rate of 1 / mu."""

    def log_density(self, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        log_later = -bounded_exponential(jnp.log(batch["y"]) - predictor)
        return _of_events(batch, log_later - predictor, log_later)

    def draw(self, key: Key, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        return bounded_exponential(predictor) * jax.random.exponential(key, predictor.shape, predictor.dtype)


@dataclass(frozen=True)
class Weibull(Lifetime):
    """Events at a rate that rises with time (alpha above 1) or falls."""

    parameters: ClassVar = (Parameter("alpha"),)

    def log_density(self, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        log_y, log_shape = jnp.log(batch["y"]), self._log_shape(parameters)
        power = jnp.exp(log_shape) * (log_y - self._log_scale(log_shape, predictor))
        log_later = -bounded_exponential(power)
        return _of_events(batch, log_shape - log_y + power + log_later, log_later)

    def draw(self, key: Key, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        log_shape = self._log_shape(parameters)
        drawn = jnp.log(jax.random.exponential(key, predictor.shape, predictor.dtype))
        return jnp.exp(self._log_scale(log_shape, predictor) + drawn * jnp.exp(-log_shape))

    @staticmethod
    def _log_shape(parameters: Unconstrained) -> jax.Array:
        return jnp.clip(parameters["alpha"], -LARGEST_LOG_POWER, LARGEST_LOG_POWER)

    @staticmethod
    def _log_scale(log_shape: jax.Array, predictor: jax.Array) -> jax.Array:
        return predictor - log_gamma(1.0 + jnp.exp(-log_shape))


@dataclass(frozen=True)
class Beta(Family):
    """Shares with mean mu and variance mu (1 - mu) / (1 + kappa)."""

    parameters: ClassVar = (Parameter("kappa"),)
    links: ClassVar = ("logit", "probit", "cloglog")
    expects: ClassVar = "numbers between 0 and 1, both excluded"
    instead: ClassVar = "Shares of counts are binomial: p(successes, trials) ~ ... with family='binomial'."
    is_continuous: ClassVar = True

    def log_density(self, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        """log Gamma(a) = log Gamma(1 + a) - log a stays finite where a underflows."""
        y = batch["y"]
        log_kappa = jnp.clip(parameters["kappa"], -LARGEST_LOG_SHAPE, LARGEST_LOG_SHAPE)
        log_one, log_other = (part + log_kappa for part in log_probabilities(self.link, predictor))
        one, other = jnp.exp(log_one), jnp.exp(log_other)
        height = log_gamma(jnp.exp(log_kappa)) - log_gamma(1.0 + one) + log_one - log_gamma(1.0 + other) + log_other
        return height + (one - 1.0) * jnp.log(y) + (other - 1.0) * jnp.log1p(-y)

    def expected(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        return jnp.exp(log_probabilities(self.link, predictor)[0])

    def draw(self, key: Key, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        log_kappa = jnp.clip(parameters["kappa"], -LARGEST_LOG_SHAPE, LARGEST_LOG_SHAPE)
        log_one, log_other = (part + log_kappa for part in log_probabilities(self.link, predictor))
        of_one, of_other = jax.random.split(key)
        one = jax.random.loggamma(of_one, jnp.exp(log_one), predictor.shape)
        other = jax.random.loggamma(of_other, jnp.exp(log_other), predictor.shape)
        return jax.nn.sigmoid(one - other)

    def outside(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> np.ndarray | None:
        result: np.ndarray = ~((y > 0) & (y < 1))
        return result

    def start(self, means: np.ndarray) -> tuple[Any, dict[str, Any]]:
        return link_of(self.link, inside(means[0])), {"kappa": 1.0}
