"""Trajectories that find their own step size: the right law, and a step size that suits."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.mcmc.hmc import HMCState

import coreset_mcmc as cm
from coreset_mcmc.diagnostics.metrics import min_bulk_ess, two_moment_kl, two_moment_kl_floor
from coreset_mcmc.driver.run import run
from coreset_mcmc.kernels.blackjax_state import BlackJAXState
from coreset_mcmc.methods.sampling import SamplingProblem
from coreset_mcmc.methods.tuned_sampling import NUM_TUNING, TunedSampling, without_strays
from coreset_mcmc.models.gaussian_location import coreset_posterior
from coreset_mcmc.posterior.target import CoresetTarget

DIM = 3


@pytest.fixture(scope="module")
def problem():
    with jax.enable_x64(True):
        rows = jnp.asarray(np.random.default_rng(0).normal(2.0, 1.0, size=(30, DIM)))
        target = CoresetTarget(rows, jnp.full(30, 5.0), cm.models.gaussian_location(DIM))
        return SamplingProblem(target, {"theta": jnp.full((4, DIM), 2.0)})


@pytest.mark.full
@pytest.mark.parametrize("misfit", [0.2, 1.0, 5.0], ids=["too narrow", "right", "too wide"])
def test_the_law_is_right_however_well_the_shape_fits(problem, misfit, seed):
    """Two moments against the closed form, within five times what independent draws would show (rate below 1e-4)."""
    with jax.enable_x64(True):
        mean, variance = coreset_posterior(problem.target.rows, problem.target.weights)
        sampler = TunedSampling(jnp.eye(DIM) * misfit * jnp.sqrt(variance))
        sampled = run(sampler, problem, jax.random.key(seed), num_steps=NUM_TUNING + 1_500)
    kept = np.swapaxes(sampled.history.position["theta"][NUM_TUNING:], 0, 1)
    floor = two_moment_kl_floor(DIM, min_bulk_ess(kept))
    assert two_moment_kl(kept, np.asarray(mean), float(variance) * np.eye(DIM)) < 5 * floor
    rate = float(np.mean(sampled.history.acceptance_rate[NUM_TUNING:]))
    assert 0.6 < rate < 0.97


def test_the_step_size_stays_after_tuning(problem):
    with jax.enable_x64(True):
        sampler = TunedSampling(jnp.eye(DIM))
        sampled = run(
            sampler, problem, jax.random.key(0), num_steps=NUM_TUNING + 20,
            record=lambda state: state.averaging.log_step_size_avg,
        )  # fmt: skip
    assert len(set(sampled.record[NUM_TUNING:])) == 1
    assert len(set(sampled.record[:NUM_TUNING])) > 50


@pytest.mark.full
def test_draws_of_tuning_are_never_kept():
    """A user who asks for no tuning gets as many draws as asked for, made after the step size was found."""
    data = np.random.default_rng(0).normal(size=(300, 2))
    options = {"coreset_size": 20, "draws": 150, "chains": 2, "random_seed": 0, "progressbar": False}
    fitted = cm.fit(cm.models.gaussian_location(2), data, tune=0, **options)
    assert dict(fitted.posterior.sizes)["draw"] == 150
    assert fitted.sampling.num_steps == 150 + NUM_TUNING


@pytest.mark.parametrize("by_trees", [False, True])
def test_a_hopeless_start_is_not_kept(problem, by_trees):
    """One of four chains 1e4 standard deviations away, where steps that serve the others get nowhere."""
    far = {"theta": problem.initial_positions["theta"].at[2].set(800.0)}
    with jax.enable_x64(True):
        mean, variance = coreset_posterior(problem.target.rows, problem.target.weights)
        sampler = TunedSampling(jnp.eye(DIM) * jnp.sqrt(variance), by_trees=by_trees)
        sampled = run(sampler, SamplingProblem(problem.target, far), jax.random.key(0), num_steps=NUM_TUNING + 100)
    distance = np.abs(sampled.history.position["theta"][NUM_TUNING:] - np.asarray(mean))
    assert distance.max() < 7.0 * np.sqrt(variance)


@pytest.mark.parametrize("height", [-np.inf, np.nan, -5_000.0])
def test_strays_are_those_that_count_for_nothing(height):
    positions = {"x": jnp.arange(3.0)}
    told = without_strays(BlackJAXState(HMCState(positions, jnp.array([-70.0, -3.0, height]), positions)))
    assert told.position["x"].tolist() == [0.0, 1.0, 1.0]
    assert told.log_density.tolist() == [-70.0, -3.0, -3.0]


def test_where_no_start_is_possible_all_stay():
    positions = {"x": jnp.arange(3.0)}
    told = without_strays(BlackJAXState(HMCState(positions, jnp.full(3, -jnp.inf), positions)))
    assert told.position["x"].tolist() == [0.0, 1.0, 2.0]
