"""Coreset posteriors with non-uniform weights, some of them zero, that can be drawn from exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.models.gaussian_location import coreset_posterior, gaussian_location
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.target import CoresetTarget

WEIGHTS = np.array([0.0, 0.7, 0.0, 1.1, 0.2, 0.4])


@dataclass(frozen=True, eq=False)
class ExactTarget:
    """A target, and independent draws from it."""

    name: str
    model: Model
    rows: np.ndarray
    draw_one: Callable[[Key, jax.Array, jax.Array], Position]
    dim: int
    weights: np.ndarray

    def __str__(self) -> str:
        return self.name

    def target(self) -> CoresetTarget:
        """Built when a test asks, in that test's precision."""
        return CoresetTarget(jnp.asarray(self.rows), jnp.asarray(self.weights), self.model)

    def draw(self, key: Key, count: int) -> Position:
        """Independent draws, with a leading axis."""
        return _draw_many(self.draw_one, count, key, jnp.asarray(self.rows), jnp.asarray(self.weights))

    def with_weights(self, weights: np.ndarray) -> ExactTarget:
        return replace(self, weights=weights)


@partial(jax.jit, static_argnums=(0, 1))
def _draw_many(
    draw_one: Callable[[Key, jax.Array, jax.Array], Position],
    count: int,
    key: Key,
    rows: jax.Array,
    weights: jax.Array,
) -> Position:
    return jax.vmap(lambda one_key: draw_one(one_key, rows, weights))(jax.random.split(key, count))


# Gaussian location


def _draw_gaussian(key: Key, rows: jax.Array, weights: jax.Array) -> Position:
    mean, variance = coreset_posterior(rows, weights)
    return {"theta": mean + jnp.sqrt(variance) * jax.random.normal(key, mean.shape)}


GAUSSIAN = ExactTarget(
    "gaussian",
    gaussian_location(2),
    np.array([[9.0, -9.0], [1.0, -0.5], [-7.0, 3.0], [0.2, 1.4], [-1.1, 0.3], [2.5, 0.1]]),
    _draw_gaussian,
    dim=2,
    weights=WEIGHTS,
)


# Normal-gamma: skewed, dependent, a vector and a scalar leaf

SHAPE, RATE, CONFIDENCE = 1.0, 1.0, 0.3


def _normal_gamma_log_prior(position: Position) -> jax.Array:
    mean, log_precision = position["mean"], position["log_precision"]
    precision = jnp.exp(log_precision)
    return (0.5 * mean.size + SHAPE) * log_precision - precision * (RATE + 0.5 * CONFIDENCE * jnp.sum(mean**2))


def _normal_gamma_log_likelihood(position: Position, batch: Batch) -> jax.Array:
    squares = jnp.sum((batch - position["mean"]) ** 2, axis=-1)
    return 0.5 * batch.shape[1] * position["log_precision"] - 0.5 * jnp.exp(position["log_precision"]) * squares


def _draw_normal_gamma(key: Key, rows: jax.Array, weights: jax.Array) -> Position:
    precision_key, mean_key = jax.random.split(key)
    total, dim = jnp.sum(weights), rows.shape[1]
    confidence = CONFIDENCE + total
    centre = weights @ rows / confidence
    squares = weights @ jnp.sum(rows**2, axis=1) - confidence * jnp.sum(centre**2)
    precision = jax.random.gamma(precision_key, SHAPE + 0.5 * dim * total) / (RATE + 0.5 * squares)
    noise = jax.random.normal(mean_key, (dim,))
    return {"mean": centre + noise / jnp.sqrt(confidence * precision), "log_precision": jnp.log(precision)}


NORMAL_GAMMA = ExactTarget(
    "normal_gamma",
    Model(_normal_gamma_log_prior, _normal_gamma_log_likelihood, name="normal_gamma"),
    np.array([[9.0, -9.0], [1.0, -0.5], [-7.0, 3.0], [0.2, 1.4], [-1.1, 0.3], [1.5, 0.1]]),
    _draw_normal_gamma,
    dim=3,
    weights=WEIGHTS,
)


# Bimodal: a mixture prior and Gaussian rows, in one dimension

MODES = np.array([-2.0, 4.0])
SPREADS = np.array([1.2, 0.15])
SHARES = np.array([0.5, 0.5])


def _bimodal_log_prior(position: Position) -> jax.Array:
    scores = (position["theta"] - MODES) / SPREADS
    return jax.scipy.special.logsumexp(jnp.log(SHARES / SPREADS) - 0.5 * scores**2)


def _bimodal_log_likelihood(position: Position, batch: Batch) -> jax.Array:
    return -0.5 * (batch - position["theta"]) ** 2


def _draw_bimodal(key: Key, rows: jax.Array, weights: jax.Array) -> Position:
    """Each component is updated as if alone, and its share by its evidence."""
    component_key, noise_key = jax.random.split(key)
    total = jnp.sum(weights)
    centre = weights @ rows / total
    variances = 1.0 / (1.0 / SPREADS**2 + total)
    means = variances * (MODES / SPREADS**2 + weights @ rows)
    evidence = jnp.log(SHARES * jnp.sqrt(variances) / SPREADS) - 0.5 * (centre - MODES) ** 2 / (SPREADS**2 + 1 / total)
    component = jax.random.categorical(component_key, evidence)
    return {"theta": means[component] + jnp.sqrt(variances[component]) * jax.random.normal(noise_key)}


BIMODAL = ExactTarget(
    "bimodal",
    Model(_bimodal_log_prior, _bimodal_log_likelihood, name="bimodal"),
    np.array([-30.0, 1.4, 50.0, 0.6, 1.1, 0.9]),
    _draw_bimodal,
    dim=1,
    weights=WEIGHTS / 10,
)


# Pareto: rows uniform below an unknown edge, so a hard edge, a heavy tail and rows of likelihood zero

TAIL = 1.5


def _pareto_log_prior(position: Position) -> jax.Array:
    edge = position["edge"]
    return jnp.where(edge > 1.0, -(TAIL + 1.0) * jnp.log(jnp.maximum(edge, 1.0)), -jnp.inf)


def _pareto_log_likelihood(position: Position, batch: Batch) -> jax.Array:
    edge = position["edge"]
    return jnp.where(batch < edge, -jnp.log(jnp.maximum(edge, 1.0)), -jnp.inf)


def _draw_pareto(key: Key, rows: jax.Array, weights: jax.Array) -> Position:
    lowest = jnp.maximum(1.0, jnp.max(jnp.where(weights > 0, rows, 0.0)))
    return {"edge": lowest * jnp.exp(jax.random.exponential(key) / (TAIL + jnp.sum(weights)))}


PARETO = ExactTarget(
    "pareto",
    Model(_pareto_log_prior, _pareto_log_likelihood, differentiable=False, name="pareto"),
    np.array([2.3, 0.4, 9.0, 1.3, 0.7, 1.1]),
    _draw_pareto,
    dim=1,
    weights=WEIGHTS,
)
