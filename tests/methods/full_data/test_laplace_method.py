"""Laplace with Pareto-smoothed importance sampling, on posteriors that quadrature knows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.core.errors import RunError
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import Given
from coreset_mcmc.driver.run import run
from coreset_mcmc.methods.full_data import Laplace
from coreset_mcmc.methods.full_data.laplace import smoothed_weights, systematic_resample
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.problem import make_problem, starting_positions

NUM_DRAWS, NUM_CHAINS = 8_000, 2


def standard_normal(position):
    return -0.5 * position**2


def exponential(position, rows):
    """Waiting times with rate exp(theta): with few rows the posterior leans to the left."""
    return position - jnp.exp(position) * rows


def normal(position, rows):
    return -0.5 * (rows - position) ** 2


def student(position, rows):
    """Tails like |theta|^-3 if the prior is flat."""
    return -1.5 * jnp.log1p((rows - position) ** 2 / 2.0)


def make(log_likelihood, rows, log_prior=standard_normal):
    rows = np.asarray(rows, float)
    model = Model(log_prior, log_likelihood, initial_position=np.array(0.3))
    selected = Given([0]).select(np.random.default_rng(0), rows, len(rows), None)
    return make_problem(model, to_array_data(rows), selected, starting_positions(model, jax.random.key(0), 1))


def sample(problem, seed, num_draws=NUM_DRAWS, **options):
    method = Laplace(**options)
    method.check(problem)
    train_key, sample_key = jax.random.split(jax.random.key(seed))
    training = run(method, problem, train_key, num_steps=method.max_steps)
    trained = method.finish(training.state, problem, kernel=None, num_chains=NUM_CHAINS)
    sampling = run(trained.sampler, trained.problem, sample_key, num_steps=num_draws)
    return training, trained, sampling


SKEWED_ROWS = [0.2, 0.5, 1.5, 0.1, 0.9, 0.3, 2.0, 0.4]


def exact_moments():
    """Mean and standard deviation by quadrature."""
    grid = np.linspace(-6.0, 5.0, 200_001)
    rows = np.array(SKEWED_ROWS)
    log_density = -0.5 * grid**2 + len(rows) * grid - np.exp(grid) * rows.sum()
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    mean = density @ grid
    return mean, np.sqrt(density @ (grid - mean) ** 2)


@pytest.fixture(scope="module")
def skewed():
    with jax.enable_x64(True):
        return make(exponential, SKEWED_ROWS)


@pytest.fixture(scope="module")
def skewed_sample(skewed):
    with jax.enable_x64(True):
        return sample(skewed, 0)


@pytest.mark.full
@pytest.mark.statistical
def test_resampled_draws_follow_a_skewed_posterior_and_those_of_the_gaussian_do_not(skewed, seed):
    """Mean and spread within 5 standard errors: one false alarm in a million.

    Weights cost at most half the draws. The mode is 0.045 above the mean, more than 11 of these errors, so draws of the
    Gaussian fail.
    """
    _, trained, sampling = sample(skewed, seed)
    corrected = trained.sampler.collect(sampling.history)
    mean, deviation = exact_moments()
    error = deviation / np.sqrt(NUM_DRAWS * NUM_CHAINS / 2)
    weights, _ = smoothed_weights(sampling.history.log_ratio.reshape(-1))
    assert 1 / np.sum(weights**2) > NUM_DRAWS * NUM_CHAINS / 2
    assert abs(corrected.position.mean() - mean) < 5 * error
    assert abs(corrected.position.std() - deviation) < 5 * error
    assert abs(sampling.history.position.mean() - mean) > 5 * error
    assert corrected.pareto_k.min() == corrected.pareto_k.max() < 0.7


def test_history_keeps_its_shape_and_the_resampled_values_belong_together(skewed_sample):
    _, trained, sampling = skewed_sample
    before, after = sampling.history, trained.sampler.collect(sampling.history)
    assert jax.tree.map(np.shape, after) == jax.tree.map(np.shape, before)
    assert np.isnan(before.pareto_k).all()
    rows = np.array(SKEWED_ROWS)
    theta = after.position
    direct = -0.5 * theta**2 + len(rows) * theta - np.exp(theta) * rows.sum()
    np.testing.assert_allclose(after.log_density, direct, rtol=1e-10, atol=1e-10)
    again = trained.sampler.collect(sampling.history)
    np.testing.assert_array_equal(again.position, after.position)
    np.testing.assert_array_equal(after.num_evaluations, before.num_evaluations)


def test_counts_a_pass_for_each_draw(skewed, skewed_sample):
    training, trained, sampling = skewed_sample
    size = skewed.data.size
    assert training.reason == "converged"
    assert training.num_evaluations == training.history.num_evaluations.sum() >= size
    assert (sampling.history.num_evaluations == NUM_CHAINS * size).all()
    assert trained.sampler.init_evaluations(trained.problem) == 0


def test_without_importance_sampling_draws_are_gaussian_and_free(skewed):
    _, trained, sampling = sample(skewed, 0, num_draws=50, psis=False)
    assert sampling.num_evaluations == 0
    after = trained.sampler.collect(sampling.history)
    np.testing.assert_array_equal(after.position, sampling.history.position)
    assert np.isnan(after.pareto_k).all()
    assert (after.log_ratio == 0).all()


def test_gaussian_posterior_needs_no_correction():
    _, trained, sampling = sample(make(normal, [0.1, 0.7, -0.3]), 0)
    assert trained.sampler.collect(sampling.history).pareto_k[0, 0] < 0.5


def test_heavy_tails_are_noticed():
    problem = make(student, [0.0], log_prior=lambda position: 0.0 * position)
    _, trained, sampling = sample(problem, 0)
    assert trained.sampler.collect(sampling.history).pareto_k[0, 0] > 0.7


def test_smoothing_keeps_the_body_and_the_order(rng):
    """Only the tail, the largest 3 sqrt(n) ratios, is replaced, and a larger ratio never gets a smaller weight."""
    noise = rng.normal(size=2_000)
    log_ratios = 0.45 * noise**2
    weights, pareto_k = smoothed_weights(log_ratios)
    order = np.argsort(log_ratios)
    body = order[: -int(3 * np.sqrt(2_000)) - 1]
    shift = np.log(weights[body]) - log_ratios[body]
    np.testing.assert_allclose(shift, shift[0], rtol=1e-10)
    assert (np.diff(weights[order]) >= 0).all()
    assert np.abs(np.log(weights) - log_ratios - shift[0]).max() > 0.01
    assert pareto_k > 0.5


@pytest.mark.parametrize(
    ("log_ratios", "expected_k"),
    [
        (np.zeros(100), 0.0),
        (np.full(100, -np.inf), np.inf),
        (np.array([0.0, -1.0, 1.0]), np.inf),
        (np.where(np.arange(100) < 80, -np.inf, np.arange(100.0)), np.inf),
    ],
    ids=["equal", "impossible", "few", "few possible"],
)
def test_extreme_ratios_give_weights_that_add_up(log_ratios, expected_k):
    weights, pareto_k = smoothed_weights(log_ratios)
    assert pareto_k == expected_k
    assert weights.sum() == pytest.approx(1.0)
    assert (weights[np.isneginf(log_ratios)] == 0).all() or np.isneginf(log_ratios).all()


def test_impossible_draws_are_never_chosen(rng):
    log_ratios = rng.normal(size=200)
    log_ratios[::3] = -np.inf
    weights, pareto_k = smoothed_weights(log_ratios)
    assert (weights[::3] == 0).all()
    assert np.isfinite(pareto_k)
    assert not np.isin(systematic_resample(rng, weights), np.arange(0, 200, 3)).any()


def test_systematic_resampling_gives_each_draw_its_share(rng):
    """Each draw appears n w_i times, rounded down or up."""
    weights = rng.dirichlet(np.full(500, 0.3))
    counts = np.bincount(systematic_resample(rng, weights), minlength=500)
    assert counts.sum() == 500
    assert (np.abs(counts - 500 * weights) < 1 + 1e-9).all()


def test_refuses_to_sample_without_a_peak(skewed, skewed_sample):
    method, state = Laplace(), skewed_sample[0].state
    hopeless = state.search._replace(
        derivatives=state.search.derivatives._replace(hessian=-state.search.derivatives.hessian)
    )
    with pytest.raises(RunError, match="no peak"):
        method.finish(state._replace(search=hopeless), skewed, kernel=None, num_chains=2)
