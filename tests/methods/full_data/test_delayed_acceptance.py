"""Draws with a coreset as first stage have the law of the full posterior, however poor the coreset."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.data.rows import Rows
from coreset_mcmc.diagnostics.metrics import min_bulk_ess, two_moment_kl, two_moment_kl_floor
from coreset_mcmc.driver.run import run
from coreset_mcmc.kernels import GaussianAutoregression, HitAndRunSlice
from coreset_mcmc.methods.full_data.delayed_acceptance import DelayedAcceptance, ExactProblem, summed_over_rows
from coreset_mcmc.models import gaussian_location
from coreset_mcmc.models.gaussian_location import coreset_posterior
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.target import CoresetTarget

DIM, SIZE, NUM_CHAINS, NUM_DRAWS = 2, 60, 4, 4_000


def poor_coreset(seed: int) -> ExactProblem:
    """Five rows with weights that put the coreset posterior a standard deviation away, and too wide by a third."""
    rng = np.random.default_rng(seed)
    rows = jnp.asarray(rng.normal(size=(SIZE, DIM)))
    weights = jnp.asarray([6.0, 9.0, 3.0, 8.0, 8.0])
    target = CoresetTarget(rows[:5], weights, gaussian_location(DIM))
    return ExactProblem(Rows.of_arrays(rows), target, {"theta": jnp.zeros((NUM_CHAINS, DIM))})


def draws_of(sampler, problem, seed):
    history = run(sampler, problem, jax.random.key(seed), num_steps=NUM_DRAWS + 100).history
    return np.swapaxes(history.position["theta"][100:], 0, 1), history


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize("kernel", [GaussianAutoregression(0.2), HitAndRunSlice()], ids=["gaussian", "slice"])
def test_draws_have_the_moments_of_the_full_posterior(kernel, seed):
    """The two-moment KL of n effective draws is about d (d + 3) / (4 n); 8 times that has a false alarm below 1e-4."""
    problem = poor_coreset(seed)
    mean, variance = coreset_posterior(problem.data.source.whole(), jnp.ones(SIZE))
    draws, history = draws_of(DelayedAcceptance(kernel, num_inner=3), problem, seed)
    floor = two_moment_kl_floor(DIM, min_bulk_ess(draws))
    assert two_moment_kl(draws, mean, variance * np.eye(DIM)) < 8 * floor
    coreset_mean, coreset_variance = coreset_posterior(problem.target.rows, problem.target.weights)
    assert two_moment_kl(draws, coreset_mean, coreset_variance * np.eye(DIM)) > 20 * floor
    assert 0.05 < history.acceptance_rate.mean() < 0.95


def without_second_stage(problem: ExactProblem) -> ExactProblem:
    """The broken twin: all rows are those of the weighted coreset, so everything is accepted."""
    target = problem.target
    only_coreset = problem.data.weighted(np.asarray(target.rows), target.weights)
    return ExactProblem(only_coreset, target, problem.initial_positions)


@pytest.mark.statistical
def test_without_the_second_stage_the_law_is_another(seed):
    problem = poor_coreset(seed)
    mean, variance = coreset_posterior(problem.data.source.whole(), jnp.ones(SIZE))
    broken = without_second_stage(problem)
    draws, _ = draws_of(DelayedAcceptance(GaussianAutoregression(0.2), num_inner=3), broken, seed)
    assert two_moment_kl(draws, mean, variance * np.eye(DIM)) > 20 * two_moment_kl_floor(DIM, min_bulk_ess(draws))


def test_an_exact_coreset_is_always_accepted():
    problem = poor_coreset(0)
    same = CoresetTarget(problem.data.source.whole(), jnp.ones(SIZE), problem.target.model)
    exact = ExactProblem(problem.data, same, problem.initial_positions)
    history = run(DelayedAcceptance(HitAndRunSlice()), exact, jax.random.key(0), num_steps=50).history
    np.testing.assert_allclose(history.acceptance_rate, 1.0, atol=1e-9)


def test_sums_are_those_of_log_likelihoods(rng):
    problem = poor_coreset(1)
    positions = {"theta": rng.normal(size=(3, DIM))}

    def total(theta):
        return problem.target.model.log_likelihood({"theta": theta}, problem.data.source.whole()).sum()

    expected = [total(theta) - total(jnp.zeros(DIM)) for theta in positions["theta"]]
    np.testing.assert_allclose(summed_over_rows(problem, positions), expected, rtol=1e-9)


def test_work_is_counted():
    """A start and a step of each chain, and of the reference, on all rows; the kernel and as much on the coreset."""
    problem = poor_coreset(0)
    made = run(DelayedAcceptance(GaussianAutoregression(0.2), num_inner=3), problem, jax.random.key(0), num_steps=7)
    on_all_rows = 8 * (NUM_CHAINS + 1) * SIZE
    at_start = 5 * (2 * NUM_CHAINS + 1)
    on_coreset = 5 * (int(made.history.num_steps.sum()) + 7 * (2 * NUM_CHAINS + 1))
    assert made.num_evaluations == on_all_rows + at_start + on_coreset
    assert made.history.position["theta"].shape == (7, NUM_CHAINS, DIM)
    assert made.history.acceptance_rate.shape == (7, NUM_CHAINS)


def test_what_rows_forbid_is_never_accepted():
    """The coreset allows positions above zero; only one row outside it does not."""
    rows = np.append(np.zeros(9), 1.0)
    model = Model(
        lambda theta: -0.5 * jnp.sum(theta**2),
        lambda theta, batch: jnp.where((batch == 1.0) & (theta[0] > 0.0), -jnp.inf, -0.5 * theta[0] ** 2),
    )
    target = CoresetTarget(jnp.asarray(rows[:2]), jnp.asarray([5.0, 5.0]), model)
    problem = ExactProblem(Rows.of_arrays(rows), target, jnp.full((2, 1), -0.1))
    draws = run(DelayedAcceptance(HitAndRunSlice()), problem, jax.random.key(0), num_steps=100).history.position
    assert draws.max() <= 0.0
    assert np.unique(draws).size > 50
