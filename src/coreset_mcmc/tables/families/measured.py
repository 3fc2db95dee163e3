"""Responses on a scale of their own: y ~ N(eta, sigma^2) and y ~ t_nu(eta, sigma)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Batch, Key
from coreset_mcmc.models.special import inverse_scale, log_gamma
from coreset_mcmc.tables.families.family import Family, Parameter, Unconstrained

LARGEST_RESIDUAL = 1e120
"""Its square, times the square of the largest inverse scale of a gradient, leaves room for a sum over all rows."""
LARGE_HALF_FREEDOM = 100.0
LARGEST_LOG_FREEDOM = 50.0


def bounded_residual(y: jax.Array, predicted: jax.Array, log_sigma: jax.Array) -> jax.Array:
    """(y - eta) / sigma, held where its square would overflow."""
    return jnp.clip((y - predicted) * inverse_scale(log_sigma), -LARGEST_RESIDUAL, LARGEST_RESIDUAL)


def log_gamma_half_step(half: jax.Array) -> jax.Array:
    """log Gamma(h + 1/2) - log Gamma(h), without cancellation for large h."""
    is_large = half > LARGE_HALF_FREEDOM
    small, large = jnp.where(is_large, 1.0, half), jnp.where(is_large, half, LARGE_HALF_FREEDOM)
    series = 0.5 * jnp.log(large) - 1.0 / (8.0 * large) + 1.0 / (192.0 * large**3) - 1.0 / (640.0 * large**5)
    return jnp.where(is_large, series, log_gamma(small + 0.5) - log_gamma(small))


@dataclass(frozen=True)
class Gaussian(Family):
    """y ~ N(eta, sigma^2)."""

    parameters: ClassVar = (Parameter("sigma"),)
    links: ClassVar = ("identity",)
    has_scale: ClassVar = True
    is_continuous: ClassVar = True

    def log_density(self, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        log_sigma = parameters["sigma"]
        residual = bounded_residual(batch["y"], predictor, log_sigma)
        return -0.5 * residual**2 - log_sigma - 0.5 * math.log(2.0 * math.pi)

    def expected(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        return predictor

    def draw(self, key: Key, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        return predictor + jnp.exp(parameters["sigma"]) * jax.random.normal(key, predictor.shape)


@dataclass(frozen=True)
class StudentT(Family):
    """y ~ t_nu(eta, sigma)."""

    parameters: ClassVar = (Parameter("sigma"), Parameter("nu"))
    links: ClassVar = ("identity",)
    has_scale: ClassVar = True
    is_continuous: ClassVar = True

    def log_density(self, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        """The difference of two log-gamma functions by its series for large nu."""
        log_sigma = parameters["sigma"]
        nu = jnp.exp(jnp.clip(parameters["nu"], -LARGEST_LOG_FREEDOM, LARGEST_LOG_FREEDOM))
        residual = bounded_residual(batch["y"], predictor, log_sigma)
        height = log_gamma_half_step(0.5 * nu) - 0.5 * jnp.log(math.pi * nu) - log_sigma
        return height - 0.5 * (nu + 1.0) * jnp.log1p(residual**2 / nu)

    def expected(self, parameters: Unconstrained, predictor: jax.Array) -> jax.Array:
        """The centre; with one degree of freedom or less there is no mean, and the centre is the median."""
        return predictor

    def draw(self, key: Key, parameters: Unconstrained, predictor: jax.Array, batch: Batch) -> jax.Array:
        noise = jax.random.t(key, jnp.exp(parameters["nu"]), predictor.shape)
        return predictor + jnp.exp(parameters["sigma"]) * noise
