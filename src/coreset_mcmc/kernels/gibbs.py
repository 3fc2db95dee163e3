"""Gibbs for the spike-and-slab regression with weighted rows (George and McCulloch 1993).

With W = diag(w) and D the prior standard deviations of the coefficients, tau or c tau, one step draws in turn

    beta    | gamma, sigma^2 ~ N(P^-1 X'Wy / sigma^2, P^-1),  P = X'WX / sigma^2 + D^-2,
    sigma^2 | beta           ~ InvGamma((nu + sum w) / 2, (nu lambda + sum w (y - x'beta)^2) / 2),
    gamma_i | beta_i         ~ Bernoulli(logistic(log(q / (1 - q)) - log c + (1 - 1 / c^2) beta_i^2 / (2 tau^2))).

gamma depends on the data through beta alone: its odds compare the two *prior* densities of beta_i. (The experiments of
the paper compare the densities of beta given the data instead, which leaves gamma close to its prior.)

Rows and weights enter through a few sums alone. They are taken once for each weight vector, when the chains restart,
so a step costs O(p^3) and looks at no row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.core.types import Key, Position, pytree
from coreset_mcmc.kernels.base import Kernel, KernelInfo
from coreset_mcmc.models.model import SpikeAndSlab
from coreset_mcmc.models.sparse import coefficient_scales
from coreset_mcmc.posterior.target import CoresetTarget, finite_or_impossible

RIDGE = 1e-12
"""Added to the diagonal of X'WX, relative to it, so that the centre exists for any rows and weights."""


class WeightedSums(NamedTuple):
    """All that the conditionals need to know of the weighted rows.

    Residuals are taken from a centre b near the weighted least-squares fit. Any centre gives the same posterior; with
    this one the residual sum of squares is a sum of terms of its own size, whereas y'Wy - 2 beta'X'Wy + beta'X'WX beta
    has no digits left when the features explain nearly all of y.
    """

    centre: jax.Array
    """b (p,)."""
    gram: jax.Array
    """X'WX (p, p)."""
    cross: jax.Array
    """X'W(y - Xb) (p,)."""
    squares: jax.Array
    """(y - Xb)'W(y - Xb)."""
    total: jax.Array
    """sum w."""

    def residual_squares(self, beta: jax.Array) -> jax.Array:
        """sum w (y - x'beta)^2, never below zero."""
        step = beta - self.centre
        return jnp.maximum(self.squares + step @ (self.gram @ step - 2.0 * self.cross), 0.0)


class GibbsState(NamedTuple):
    """Where a chain is, the log-density there, and the sums over the rows under the current weights."""

    position: Position
    log_density: jax.Array
    sums: WeightedSums


@pytree
@dataclass(frozen=True)
class SpikeAndSlabGibbs(Kernel):
    """Draw coefficients, variance and indicators in turn from their exact conditionals.

    It reads the hyper-parameters from ``model.structure``, has nothing to tune and accepts every move.
    """

    reads_log_density = False
    caches_gradient = True
    """Not gradients but sums over the rows: a restart makes a pass of its own over them, which counts."""

    def check(self, position: Position, target: CoresetTarget) -> None:
        del position
        if not isinstance(target.model.structure, SpikeAndSlab):
            raise InputError(
                "kernel SpikeAndSlabGibbs",
                got=f"model {target.model.name!r}",
                expected="a spike-and-slab regression such as models.sparse_regression",
                fix="Use HitAndRunSlice for models without discrete parts.",
            )

    def init(self, position: Position, target: CoresetTarget) -> GibbsState:
        sums = weighted_sums(target)
        return GibbsState(position, _log_density(position, sums, target), sums)

    def step(self, key: Key, state: GibbsState, target: CoresetTarget) -> tuple[GibbsState, KernelInfo]:
        prior = _prior_of(target)
        beta_key, variance_key, gamma_key = jax.random.split(key, 3)
        old, sums = state.position, state.sums
        beta = draw_beta(beta_key, old["gamma"], old["variance"], sums, prior)
        variance = draw_variance(variance_key, beta, sums, prior)
        is_included = jax.random.bernoulli(gamma_key, jax.nn.sigmoid(inclusion_log_odds(beta, prior)))
        position = {"beta": beta, "gamma": is_included.astype(old["gamma"].dtype), "variance": variance}
        log_density = _log_density(position, sums, target)
        info = KernelInfo(
            acceptance_rate=jnp.ones((), beta.dtype),
            num_evaluations=jnp.zeros((), jnp.int32),
            diverging=log_density == -jnp.inf,
        )
        return GibbsState(position, log_density, sums), info


def weighted_sums(target: CoresetTarget) -> WeightedSums:
    """Two passes over the rows: the fit, then the residuals from it."""
    x, y, weights = target.rows["x"], target.rows["y"], target.weights
    weighted = weights[:, None] * x
    gram = weighted.T @ x
    sizes = jnp.diagonal(gram)
    factor = jnp.linalg.cholesky(gram + jnp.diag(jnp.where(sizes > 0, RIDGE * sizes, 1.0)))
    centre = cho_solve((factor, True), weighted.T @ y)
    residuals = y - x @ centre
    return WeightedSums(centre, gram, weighted.T @ residuals, weights @ residuals**2, jnp.sum(weights))


def draw_beta(key: Key, gamma: jax.Array, variance: jax.Array, sums: WeightedSums, prior: SpikeAndSlab) -> jax.Array:
    """With P = F F' and z standard normal, beta - b = F'^-1 (F^-1 (X'W(y - Xb) / sigma^2 - D^-2 b) + z)."""
    prior_precisions = coefficient_scales(gamma, prior) ** -2.0
    factor = jnp.linalg.cholesky(sums.gram / variance + jnp.diag(prior_precisions))
    pull = solve_triangular(factor, sums.cross / variance - prior_precisions * sums.centre, lower=True)
    noise = jax.random.normal(key, pull.shape, pull.dtype)
    return sums.centre + solve_triangular(factor, pull + noise, lower=True, trans="T")


def draw_variance(key: Key, beta: jax.Array, sums: WeightedSums, prior: SpikeAndSlab) -> jax.Array:
    """A scale over a gamma variate, by logarithms: with few rows its shape is near zero and it would underflow."""
    shape = 0.5 * (prior.variance_shape + sums.total)
    rate = 0.5 * (prior.variance_shape * prior.variance_scale + sums.residual_squares(beta))
    largest = 0.99 * math.log(jnp.finfo(beta.dtype).max)
    return jnp.exp(jnp.minimum(jnp.log(rate) - jax.random.loggamma(key, shape, dtype=beta.dtype), largest))


def inclusion_log_odds(beta: jax.Array, prior: SpikeAndSlab) -> jax.Array:
    """log of P(gamma_i = 1 | beta_i) / P(gamma_i = 0 | beta_i): the prior odds times the ratio of slab to spike."""
    odds = prior.inclusion_probability / (1.0 - prior.inclusion_probability)
    narrowing = 1.0 - prior.slab_ratio**-2.0
    result: jax.Array = math.log(odds / prior.slab_ratio) + 0.5 * narrowing * (beta / prior.spike_scale) ** 2
    return result


def _log_density(position: Position, sums: WeightedSums, target: CoresetTarget) -> jax.Array:
    """The target's log-density without looking at a row: sum w l = -(sum w log sigma^2 + RSS / sigma^2) / 2."""
    variance = position["variance"]
    log_likelihood = -0.5 * (sums.total * jnp.log(variance) + sums.residual_squares(position["beta"]) / variance)
    return finite_or_impossible(target.model.log_prior(position) + log_likelihood)


def _prior_of(target: CoresetTarget) -> SpikeAndSlab:
    prior = target.model.structure
    assert isinstance(prior, SpikeAndSlab), "check() has seen to it"
    return prior
