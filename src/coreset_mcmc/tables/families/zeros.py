"""Counts with more zeros, or fewer, than their distribution has. psi is the probability of what is not such a zero.

    zero-inflated    P(0) = 1 - psi + psi f(0),   P(y) = psi f(y)
    hurdle           P(0) = 1 - psi,              P(y) = psi f(y) / (1 - f(0))

with f a Poisson or negative binomial distribution of mean mu = exp(eta).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.types import Batch, Key
from coreset_mcmc.models.special import bounded_exponential, log_softplus, softplus
from coreset_mcmc.tables.families.counts import (
    Counts,
    draw_counts,
    draw_mixed_counts,
    held_log_alpha,
    log_negative_binomial,
    log_poisson,
)
from coreset_mcmc.tables.families.family import UNIT, Parameter, Unconstrained
from coreset_mcmc.tables.families.links import inside, link_of, log_one_minus_exp

PSI = Parameter("psi", UNIT)
ALPHA = Parameter("alpha")
SMALLEST_UNIFORM = 1e-12


@dataclass(frozen=True)
class WithZeros(Counts):
    """A distribution of counts and psi; which distribution is for subclasses to say."""

    @abstractmethod
    def log_of_count(self, parameters: Unconstrained, predictor: jax.Array, y: jax.Array) -> jax.Array:
        """log f(y)."""

    @abstractmethod
    def log_minus_log_zero(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        """log(-log f(0)), which is log mu where mu is small."""

    @abstractmethod
    def draw_count(self, key: Key, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        """Of f."""

    def statistics(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        return [y, (y > 0).astype(float)]

    def start(self, means: np.ndarray) -> tuple[Any, dict[str, Any]]:
        share = inside(self.start_share(float(means[1])), 100.0)
        others = {parameter.name: 0.0 for parameter in self.parameters}
        return math.log(means[0] / share), {**others, "psi": link_of("logit", share)}

    def start_share(self, positive: float) -> float:
        """psi to begin with, from the share of counts above zero."""
        return positive


@dataclass(frozen=True)
class ZeroInflated(WithZeros):
    """Some zeros have nothing to do with the counts."""

    def log_density(self, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        y = batch["y"]
        log_psi, log_rest = -softplus(-parameters["psi"]), -softplus(parameters["psi"])
        of_count = log_psi + self.log_of_count(parameters, predictor, y)
        return jnp.where(y > 0, of_count, jnp.logaddexp(log_rest, jnp.where(y > 0, 0.0, of_count)))

    def expected(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        return jax.nn.sigmoid(parameters["psi"]) * bounded_exponential(predictor)

    def draw(self, key: Key, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        of_count, of_zero = jax.random.split(key)
        is_count = jax.random.bernoulli(of_zero, jax.nn.sigmoid(parameters["psi"]), predictor.shape)
        return jnp.where(is_count, self.draw_count(of_count, parameters, predictor), 0.0)

    def start_share(self, positive: float) -> float:
        return 0.5 * (1.0 + positive)


@dataclass(frozen=True)
class Hurdle(WithZeros):
    """All zeros are of one kind, and counts begin at one."""

    def log_density(self, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        y = batch["y"]
        log_psi, log_rest = -softplus(-parameters["psi"]), -softplus(parameters["psi"])
        at_least_one = jnp.maximum(y, 1.0)
        of_count = self.log_of_count(parameters, predictor, at_least_one)
        above_zero = log_one_minus_exp(self.log_minus_log_zero(parameters, predictor))
        return jnp.where(y > 0, log_psi + of_count - above_zero, log_rest)

    def expected(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        held = jnp.minimum(predictor, 300.0)
        above_zero = log_one_minus_exp(self.log_minus_log_zero(parameters, held))
        return jax.nn.sigmoid(parameters["psi"]) * jnp.exp(held - above_zero)

    def draw(self, key: Key, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        of_count, of_zero = jax.random.split(key)
        is_count = jax.random.bernoulli(of_zero, jax.nn.sigmoid(parameters["psi"]), predictor.shape)
        return jnp.where(is_count, self.draw_above_zero(of_count, parameters, predictor), 0.0)

    @abstractmethod
    def draw_above_zero(self, key: Key, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        """Of f, given that it is above zero: when the first event of a process came, and how many followed it."""

    def outcomes(self, y: np.ndarray, batch: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
        """Zeros say nothing about the predictor."""
        return y > 1, y == 1


class OfPoisson:
    """f = Poisson(mu)."""

    parameters: ClassVar[tuple[Parameter, ...]] = (PSI,)

    def log_of_count(self, parameters: Unconstrained, predictor: jax.Array, y: jax.Array) -> jax.Array:
        return log_poisson(predictor, y)

    def log_minus_log_zero(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        return predictor

    def draw_count(self, key: Key, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        return draw_counts(key, predictor)

    def draw_above_zero(self, key: Key, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        """The time of the first event, in units of the mean, is exponential and not later than one."""
        of_time, of_rest = jax.random.split(key)
        mean = bounded_exponential(predictor)
        uniform = jax.random.uniform(of_time, predictor.shape, predictor.dtype, SMALLEST_UNIFORM)
        before = -jnp.log1p(uniform * jnp.expm1(-mean))
        return 1.0 + draw_counts(of_rest, jnp.log(jnp.maximum(mean - before, 0.0)))


class OfNegativeBinomial:
    """f = NB(mu, alpha)."""

    parameters: ClassVar[tuple[Parameter, ...]] = (ALPHA, PSI)

    def log_of_count(self, parameters: Unconstrained, predictor: jax.Array, y: jax.Array) -> jax.Array:
        return log_negative_binomial(held_log_alpha(parameters), predictor, y)

    def log_minus_log_zero(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        log_alpha = held_log_alpha(parameters)
        return log_alpha + log_softplus(predictor - log_alpha)

    def draw_count(self, key: Key, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        return draw_mixed_counts(key, held_log_alpha(parameters), predictor)

    def draw_above_zero(self, key: Key, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        """A first event at time t makes the rate a Gamma variable of shape alpha + 1 and rate alpha / mu + t."""
        of_time, of_rest = jax.random.split(key)
        log_alpha = held_log_alpha(parameters)
        alpha = jnp.exp(log_alpha)
        uniform = jax.random.uniform(of_time, predictor.shape, predictor.dtype, SMALLEST_UNIFORM)
        log_none = -alpha * softplus(predictor - log_alpha)
        log_later = jnp.log1p(uniform * jnp.expm1(log_none))
        time = jnp.expm1(-log_later / alpha) * jnp.exp(log_alpha - predictor)
        rate = jnp.exp(log_alpha - predictor) + time
        rest = jnp.log1p(alpha) + jnp.log(jnp.maximum(1.0 - time, 0.0)) - jnp.log(rate)
        return 1.0 + draw_mixed_counts(of_rest, jnp.log1p(alpha), rest)


@dataclass(frozen=True)
class ZeroInflatedPoisson(OfPoisson, ZeroInflated):
    """Poisson counts and other zeros."""


@dataclass(frozen=True)
class ZeroInflatedNegativeBinomial(OfNegativeBinomial, ZeroInflated):
    """Negative binomial counts and other zeros."""


@dataclass(frozen=True)
class HurdlePoisson(OfPoisson, Hurdle):
    """Zeros, or Poisson counts above zero."""


@dataclass(frozen=True)
class HurdleNegativeBinomial(OfNegativeBinomial, Hurdle):
    """Zeros, or negative binomial counts above zero."""
