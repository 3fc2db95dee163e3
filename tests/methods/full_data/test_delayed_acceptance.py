"""Draws with a coreset as first stage have the law of the full posterior, however poor the coreset."""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.core.types import pytree
from coreset_mcmc.data import ArrayData
from coreset_mcmc.diagnostics.metrics import min_bulk_ess, two_moment_kl, two_moment_kl_floor
from coreset_mcmc.driver.run import run
from coreset_mcmc.kernels import GaussianAutoregression, HitAndRunSlice
from coreset_mcmc.methods.full_data.delayed_acceptance import DelayedAcceptance, ExactProblem, full_minus_coreset
from coreset_mcmc.models import gaussian_location
from coreset_mcmc.models.gaussian_location import coreset_posterior
from coreset_mcmc.posterior.target import CoresetTarget

DIM, SIZE, NUM_CHAINS, NUM_DRAWS = 2, 60, 4, 4_000


def poor_coreset(seed: int) -> ExactProblem:
    """Five rows with weights that put the coreset posterior a standard deviation away, and too wide by a third."""
    rng = np.random.default_rng(seed)
    rows = jnp.asarray(rng.normal(size=(SIZE, DIM)))
    weights = jnp.asarray([6.0, 9.0, 3.0, 8.0, 8.0])
    target = CoresetTarget(rows[:5], weights, gaussian_location(DIM))
    return ExactProblem(ArrayData(rows), target, {"theta": jnp.zeros((NUM_CHAINS, DIM))})


def draws_of(sampler, problem, seed):
    history = run(sampler, problem, jax.random.key(seed), num_steps=NUM_DRAWS + 100).history
    return np.swapaxes(history.position["theta"][100:], 0, 1), history


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize("kernel", [GaussianAutoregression(0.2), HitAndRunSlice()], ids=["gaussian", "slice"])
def test_draws_have_the_moments_of_the_full_posterior(kernel, seed):
    """The two-moment KL of n effective draws is about d (d + 3) / (4 n); 8 times that has a false alarm below 1e-4."""
    problem = poor_coreset(seed)
    mean, variance = coreset_posterior(problem.data.arrays, jnp.ones(SIZE))
    draws, history = draws_of(DelayedAcceptance(kernel, num_inner=3), problem, seed)
    floor = two_moment_kl_floor(DIM, min_bulk_ess(draws))
    assert two_moment_kl(draws, mean, variance * np.eye(DIM)) < 8 * floor
    coreset_mean, coreset_variance = coreset_posterior(problem.target.rows, problem.target.weights)
    assert two_moment_kl(draws, coreset_mean, coreset_variance * np.eye(DIM)) > 20 * floor
    assert 0.05 < history.acceptance_rate.mean() < 0.95


@pytree
@dataclass(frozen=True)
class WithoutSecondStage(DelayedAcceptance):
    """The broken twin: it accepts everything."""

    def step(self, key, state, problem):
        return super().step(key, state, ExactProblem(_OnlyCoreset(problem.target), problem.target, None))


@pytree
@dataclass(frozen=True)
class _OnlyCoreset:
    """Data whose sum is that of the weighted coreset, so that the second stage sees no difference."""

    target: CoresetTarget

    size = 0

    def sum_over_rows(self, function):
        one_by_one = [function(self.target.rows[m : m + 1]) for m in range(self.target.rows.shape[0])]
        return sum(weight * value for weight, value in zip(self.target.weights, one_by_one, strict=True))


@pytest.mark.statistical
def test_without_the_second_stage_the_law_is_another(seed):
    problem = poor_coreset(seed)
    mean, variance = coreset_posterior(problem.data.arrays, jnp.ones(SIZE))
    draws, _ = draws_of(WithoutSecondStage(GaussianAutoregression(0.2), num_inner=3), problem, seed)
    assert two_moment_kl(draws, mean, variance * np.eye(DIM)) > 20 * two_moment_kl_floor(DIM, min_bulk_ess(draws))


def test_an_exact_coreset_is_always_accepted():
    problem = poor_coreset(0)
    same = CoresetTarget(problem.data.arrays, jnp.ones(SIZE), problem.target.model)
    exact = ExactProblem(problem.data, same, problem.initial_positions)
    history = run(DelayedAcceptance(HitAndRunSlice()), exact, jax.random.key(0), num_steps=50).history
    np.testing.assert_allclose(history.acceptance_rate, 1.0, atol=1e-9)


def test_gain_is_the_difference_of_log_likelihoods(rng):
    problem = poor_coreset(1)
    new, old = ({"theta": jnp.asarray(rng.normal(size=(3, DIM)))} for _ in range(2))
    model, target = problem.target.model, problem.target

    def gap(position):
        values = model.log_likelihood(position, problem.data.arrays).sum()
        return values - target.weights @ model.log_likelihood(position, target.rows)

    expected = [
        gap({"theta": one}) - gap({"theta": other}) for one, other in zip(new["theta"], old["theta"], strict=True)
    ]
    np.testing.assert_allclose(full_minus_coreset(model, problem.data, target, new, old), expected, rtol=1e-9)
