"""The spike-and-slab posterior by enumeration: exact pattern probabilities and independent draws.

Given gamma and sigma^2 the coefficients are Gaussian and integrate out in closed form; sigma^2 is one-dimensional and
goes on a grid of its logarithm; gamma takes 2^p values.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import logsumexp

from coreset_mcmc.models import sparse_regression
from coreset_mcmc.models.model import Model, SpikeAndSlab
from coreset_mcmc.posterior.target import CoresetTarget


@dataclass(frozen=True, eq=False)
class ExactSparse:
    """A spike-and-slab posterior with weighted rows, few features and a variance within the grid."""

    model: Model
    rows: dict[str, np.ndarray]
    weights: np.ndarray
    log_variances: np.ndarray

    @property
    def prior(self) -> SpikeAndSlab:
        assert isinstance(self.model.structure, SpikeAndSlab)
        return self.model.structure

    @cached_property
    def patterns(self) -> np.ndarray:
        """All values of gamma, (2^p, p)."""
        return np.array(list(itertools.product([0, 1], repeat=self.rows["x"].shape[1])))

    def target(self, factor: float = 1.0) -> CoresetTarget:
        """Built when a test asks, in that test's precision; ``factor`` multiplies the weights."""
        return CoresetTarget(jax.tree.map(jnp.asarray, self.rows), jnp.asarray(factor * self.weights), self.model)

    def _conditional(self, gamma: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Precision (..., p, p) and mean (..., p) of beta given gamma (..., p) and the variance (...)."""
        x, y = self.rows["x"], self.rows["y"]
        scales = self.prior.spike_scale * np.where(gamma == 1, self.prior.slab_ratio, 1.0)
        precision = x.T @ (self.weights[:, None] * x) / variance[..., None, None] + scales[..., None] ** -2.0 * np.eye(
            x.shape[1]
        )
        pull = (x.T @ (self.weights * y)) / variance[..., None]
        return precision, np.linalg.solve(precision, pull[..., None])[..., 0]

    @cached_property
    def log_masses(self) -> np.ndarray:
        """log p(gamma, log sigma^2, y), (2^p, grid), up to a constant."""
        prior, y = self.prior, self.rows["y"]
        variance = np.exp(self.log_variances)
        gamma = np.broadcast_to(self.patterns[:, None], (len(self.patterns), len(variance), self.patterns.shape[1]))
        precision, mean = self._conditional(gamma, np.broadcast_to(variance, gamma.shape[:2]))
        scales = prior.spike_scale * np.where(gamma == 1, prior.slab_ratio, 1.0)
        inclusion = np.where(gamma == 1, prior.inclusion_probability, 1.0 - prior.inclusion_probability)
        coefficients = np.log(inclusion / scales).sum(axis=-1) - 0.5 * np.linalg.slogdet(precision)[1]
        fit = 0.5 * np.einsum("...i,...ij,...j->...", mean, precision, mean) - 0.5 * self.weights @ y**2 / variance
        shape, rate = 0.5 * prior.variance_shape, 0.5 * prior.variance_shape * prior.variance_scale
        return coefficients + fit - (shape + 0.5 * self.weights.sum()) * self.log_variances - rate / variance

    @cached_property
    def pattern_probabilities(self) -> np.ndarray:
        """P(gamma | y) of each pattern."""
        masses = logsumexp(self.log_masses, axis=1)
        edge = max(self.log_masses[:, 0].max(), self.log_masses[:, -1].max())
        assert edge < self.log_masses.max() - 25.0, "the grid cuts the posterior of the variance"
        return np.exp(masses - logsumexp(masses))

    def draw(self, rng: np.random.Generator, count: int) -> Any:
        """Independent draws, with a leading axis: gamma, then the variance by its inverse distribution, then beta."""
        numbers = rng.choice(len(self.patterns), size=count, p=self.pattern_probabilities)
        log_variance = np.empty(count)
        for number in np.unique(numbers):
            density = np.exp(self.log_masses[number] - self.log_masses[number].max())
            distribution = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))])
            chosen = numbers == number
            log_variance[chosen] = np.interp(
                rng.random(chosen.sum()), distribution / distribution[-1], self.log_variances
            )
        gamma, variance = self.patterns[numbers], np.exp(log_variance)
        precision, mean = self._conditional(gamma, variance)
        factor = np.linalg.cholesky(np.linalg.inv(precision))
        beta = mean + np.einsum("nij,nj->ni", factor, rng.normal(size=mean.shape))
        return {"beta": beta, "gamma": gamma.astype(np.int32), "variance": variance}

    def pattern_counts(self, gamma: np.ndarray) -> np.ndarray:
        """How often each pattern occurs among draws of gamma."""
        numbers = np.asarray(gamma) @ (2 ** np.arange(self.patterns.shape[1])[::-1])
        return np.bincount(numbers, minlength=len(self.patterns))


def small_posterior(num_features: int = 3) -> ExactSparse:
    """Few rows, weights that are not whole and partly zero, and indicators that the data leave undecided."""
    rng = np.random.default_rng(12)
    x = rng.normal(size=(8, num_features))
    y = x @ np.linspace(0.0, 1.0, num_features) + 0.5 * rng.normal(size=8)
    weights = np.array([0.0, 0.7, 1.3, 2.1, 0.0, 0.4, 1.8, 0.9])
    model = sparse_regression(
        num_features,
        inclusion_probability=0.3,
        slab_ratio=6.0,
        spike_scale=0.2,
        variance_shape=3.0,
        variance_scale=0.5,
    )
    return ExactSparse(model, {"x": x, "y": y}, weights, np.linspace(-6.0, 12.0, 2000))
