"""The Laplace approximation of the full posterior, corrected by Pareto-smoothed importance sampling.

With as many rows as coresets are made for, the posterior is nearly Gaussian, and draws of the Gaussian at its mode need
only a small correction. Each draw is weighted by posterior over Gaussian, the largest weights are smoothed by a
generalised Pareto distribution fitted to their tail, and the draws are resampled in proportion. The shape of that
distribution, k, says whether to trust the result: below 0.7 the estimates are reliable (Vehtari et al. 2024, Pareto
smoothed importance sampling, Journal of Machine Learning Research 25).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import RunError
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Key, Position, pytree, static
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.methods.contract import Method, Needs, Trained
from coreset_mcmc.methods.law import Law
from coreset_mcmc.methods.sampling import IndependentSampler, Memoryless
from coreset_mcmc.posterior.full import full_log_densities
from coreset_mcmc.posterior.newton import (
    LaplaceApproximation,
    NewtonSearch,
    NewtonSearchInfo,
    NewtonSearchState,
    approximation_at,
    newton_decrement,
)
from coreset_mcmc.posterior.problem import Problem

RESAMPLING_SEED = 0
"""Resampling is part of the result's definition: the same draws always give the same resampled draws."""

MIN_DRAWS_FOR_TAIL = 25
"""A fifth of the draws are the tail; a generalised Pareto distribution is not fitted to fewer than five."""


class LaplaceState(NamedTuple):
    """The search for the mode."""

    search: NewtonSearchState
    done: jax.Array


@pytree
@dataclass(frozen=True)
class Laplace(Method):
    """Independent draws of the Gaussian at the mode of the full posterior, resampled to follow the posterior itself.

    Args:
        psis: evaluate the posterior at each draw, one pass over the data, and resample; without it the draws are
            those of the Gaussian.
        max_iterations: most Newton steps in the search for the mode.
        tolerance: the search stops this many posterior standard deviations from the mode.
    """

    psis: bool = static(default=True)
    max_iterations: int = 200
    tolerance: float = 1e-5

    name = "laplace"
    takes_few_steps = True
    needs = Needs(gradient=True, continuous=True)
    uses_coreset_rows = False

    def __post_init__(self) -> None:
        self._search()

    @property
    def max_steps(self) -> int:
        return self.max_iterations

    def init(self, key: Key, problem: Problem) -> LaplaceState:
        del key
        search = self._search().init(problem)
        return LaplaceState(search, search.has_converged)

    def step(self, key: Key, state: LaplaceState, problem: Problem) -> tuple[LaplaceState, NewtonSearchInfo]:
        del key
        search, info = self._search().step(state.search, problem)
        return LaplaceState(search, search.has_converged), info

    def describe(self, info: NewtonSearchInfo) -> str:
        return f"{info.newton_decrement[-1]:.2g} sd from the mode"

    def finish(self, state: LaplaceState, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        del kernel
        if not np.isfinite(newton_decrement(state.search.derivatives)):
            raise RunError(f"{self.name}: {Status.HESSIAN_NOT_NEGATIVE_DEFINITE.message}")
        gaussian = GaussianProblem(problem, approximation_at(state.search))
        return Trained(GaussianSampling(self.psis, num_chains), gaussian, None, Law.APPROXIMATE)

    def _search(self) -> NewtonSearch:
        return NewtonSearch(self.max_iterations, self.tolerance)


@pytree
@dataclass(frozen=True)
class GaussianProblem:
    """A Gaussian, and the posterior that it approximates."""

    problem: Problem
    approximation: LaplaceApproximation


class GaussianSamplingInfo(NamedTuple):
    """One draw of each chain."""

    position: Position
    log_density: jax.Array
    """Of the full posterior; of the quadratic at its mode if it is not evaluated."""
    acceptance_rate: jax.Array
    diverging: jax.Array
    num_steps: jax.Array
    log_ratio: jax.Array
    """Log of posterior over Gaussian, both one at the mode; zero if the posterior is not evaluated."""
    pareto_k: jax.Array
    """NaN until all draws are there."""
    num_evaluations: jax.Array
    status: jax.Array


@pytree
@dataclass(frozen=True)
class GaussianSampling(IndependentSampler):
    """Independent draws of a Gaussian, with the full posterior beside them if importance weights are wanted."""

    psis: bool = static()
    num_chains: int = static()

    name = "sampling"

    def step(self, key: Key, state: Memoryless, problem: GaussianProblem) -> tuple[Memoryless, GaussianSamplingInfo]:
        posterior, gaussian = problem.problem, problem.approximation
        noise = jax.random.normal(key, (self.num_chains, gaussian.mean.shape[0]), gaussian.mean.dtype)
        positions = jax.vmap(ravel_pytree(posterior.position)[1])(gaussian.draws(noise))
        quadratic = gaussian.log_density_at_mode - 0.5 * jnp.sum(noise**2, axis=1)
        log_density = full_log_densities(posterior.model, posterior.data, positions) if self.psis else quadratic
        info = GaussianSamplingInfo(
            position=positions,
            log_density=log_density,
            acceptance_rate=jnp.ones_like(quadratic),
            diverging=jnp.zeros(self.num_chains, bool),
            num_steps=jnp.full(self.num_chains, int(self.psis), jnp.int32),
            log_ratio=log_density - quadratic,
            pareto_k=jnp.full_like(quadratic, jnp.nan),
            num_evaluations=jnp.asarray(self.num_chains * posterior.data.size * self.psis, jnp.int64),
            status=jnp.zeros((), jnp.int32),
        )
        return state, info

    def describe(self, info: GaussianSamplingInfo) -> str:
        return f"log density {info.log_density[-1].mean():.4g}"

    def collect(self, history: Any) -> Any:
        """Resample finished draws in proportion to their smoothed weights; the order of draws is random."""
        if not self.psis:
            return history
        shape = history.log_ratio.shape
        weights, pareto_k = smoothed_weights(history.log_ratio.reshape(-1))
        chosen = systematic_resample(np.random.default_rng(RESAMPLING_SEED), weights)

        def resampled(leaf: np.ndarray) -> np.ndarray:
            result: np.ndarray = leaf.reshape(-1, *leaf.shape[2:])[chosen].reshape(leaf.shape)
            return result

        return history._replace(
            position=jax.tree.map(resampled, history.position),
            log_density=resampled(history.log_density),
            log_ratio=resampled(history.log_ratio),
            pareto_k=np.full(shape, pareto_k),
        )


def smoothed_weights(log_ratios: np.ndarray) -> tuple[np.ndarray, float]:
    """Normalised Pareto-smoothed importance weights of n draws, and the shape k of their tail.

    k is zero if no ratio differs from another, and infinite if there are too few draws of positive density to tell.
    """
    from arviz_stats.base import array_stats  # noqa: PLC0415 - takes a second

    is_possible = np.isfinite(log_ratios)
    if not is_possible.any():
        return np.full(log_ratios.shape, 1.0 / log_ratios.size), np.inf
    log_weights = log_ratios - np.max(log_ratios)
    if is_possible.all() and np.ptp(log_weights) == 0.0:
        pareto_k = 0.0
    elif is_possible.sum() < MIN_DRAWS_FOR_TAIL:
        pareto_k = np.inf
    else:
        log_weights[is_possible], pareto_k = array_stats.psislw(-log_weights[is_possible])
    weights = np.exp(log_weights)
    return weights / np.sum(weights), float(pareto_k)


def systematic_resample(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
    """As many numbers of draws as there are weights, each about n w_i times, in random order."""
    count = len(weights)
    places = (np.arange(count) + rng.random()) / count
    chosen = np.searchsorted(np.cumsum(weights), places).clip(max=count - 1)
    return rng.permutation(chosen)
