"""Sums over all rows from control variates: exact where they must be, unbiased, honest about their error."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import coreset_mcmc as cm
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.sample import UniformSample
from coreset_mcmc.laplace import NewtonSearch, approximation_at, derivatives, find_mode
from coreset_mcmc.problem import make_problem, starting_positions
from coreset_mcmc.selection import SelectedRows
from coreset_mcmc.weights.gradient import full_data_sums
from coreset_mcmc.weights.taylor import flattened, row_remainders, taylor_sums
from problems import NUM_FEATURES, logistic_data

SIZE, FEATURES, COUNT, NUM_DRAWS = 4_000, NUM_FEATURES, 200, 12


def problem_of(model, data):
    rows = to_array_data(data)
    chosen = SelectedRows(np.arange(5), np.full(5, rows.size / 5))
    return make_problem(model, rows, chosen, starting_positions(model, jax.random.key(0), 2))


@pytest.fixture(scope="module")
def logistic():
    """The problem, its mode, draws of its Laplace approximation and the exact sums at them."""
    with jax.enable_x64(True):
        problem = problem_of(cm.models.logistic_regression(FEATURES), logistic_data(size=SIZE))
        search, _ = jax.jit(lambda problem: find_mode(problem, NewtonSearch()))(problem)
        gaussian = approximation_at(search)
        noise = jax.random.normal(jax.random.key(1), (NUM_DRAWS, FEATURES + 1))
        positions = jax.vmap(ravel_pytree(problem.position)[1])(gaussian.draws(noise))
        exact = full_data_sums(problem.model, positions, problem.data).total
        scoring = 1.5 * noise[:4] @ gaussian.scale_factor.T
        make = jax.jit(lambda key: taylor_sums(key, problem, search.position, search.derivatives, scoring, COUNT))
        return problem, search, positions, exact, make


def test_remainder_of_a_quadratic_is_nothing(rng):
    """The Gaussian location model is its own expansion, so the sums are exact with any two rows."""
    problem = problem_of(cm.models.gaussian_location(2), rng.normal(size=(50, 2)))
    centre = jnp.asarray(rng.normal(size=2))
    sums = taylor_sums(
        jax.random.key(0), problem, centre, derivatives(problem, centre), jnp.asarray(rng.normal(size=(3, 2))), 2
    )
    positions = {"theta": jnp.asarray(rng.normal(size=(5, 2)))}
    found = sums.sums(problem.model, positions)
    np.testing.assert_allclose(
        found.total, full_data_sums(problem.model, positions, problem.data).total, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(found.variance, 0.0, atol=1e-18)


def test_remainder_is_what_second_differences_leave(logistic):
    problem, search, positions, _, _ = logistic
    unravel = ravel_pytree(problem.position)[1]
    rows = problem.data.take(jnp.arange(7))

    def log_likelihood(flat):
        return problem.model.log_likelihood(unravel(flat), rows)

    delta = flattened(positions)[:3] - search.position
    slopes, curvatures = jax.jacfwd(log_likelihood)(search.position), jax.hessian(log_likelihood)(search.position)
    expected = [
        log_likelihood(search.position + step) - log_likelihood(search.position) - slopes @ step
        - 0.5 * step @ curvatures @ step
        for step in delta
    ]  # fmt: skip
    found = row_remainders(problem.model, unravel, search.position, rows, delta)
    np.testing.assert_allclose(found, jnp.stack(expected), rtol=1e-6, atol=1e-14)


@pytest.mark.statistical
def test_sums_are_unbiased_and_their_error_is_the_claimed_one(logistic, seed):
    """60 samples: the mean error of each draw within 5 standard errors (12 draws: 1e-5), rms within a factor of 1.6.

    Systematic sampling may do better than the claim, which is that of independent draws, but hardly worse.
    """
    problem, _, positions, exact, make = logistic
    keys = jax.random.split(jax.random.key(seed), 60)
    sums = jax.jit(jax.vmap(lambda key: make(key).sums(problem.model, positions)))(keys)
    errors = np.asarray(sums.total - exact)
    standard_error = errors.std(axis=0, ddof=1) / np.sqrt(len(keys))
    assert (np.abs(errors.mean(axis=0)) < 5 * standard_error).all()
    claimed = float(np.sqrt(np.mean(np.asarray(sums.variance))))
    assert np.sqrt(np.mean(errors**2)) < 1.6 * claimed
    assert claimed < 0.05 * np.asarray(exact).std()


def test_the_quadratic_alone_is_worse(logistic):
    """The broken twin: without the sampled remainders the error is several times larger."""
    problem, _, positions, exact, make = logistic
    whole = make(jax.random.key(3))
    delta = flattened(positions) - whole.centre
    quadratic = delta @ whole.gradient + 0.5 * jnp.sum((delta @ whole.hessian) * delta, axis=1)
    error = np.std(np.asarray(whole.sums(problem.model, positions).total - exact))
    assert np.std(np.asarray(quadratic - jnp.mean(quadratic) - exact)) > 3 * error


def test_factors_are_bounded_and_stand_for_all_rows(logistic):
    _, _, _, _, make = logistic
    factors = np.asarray(make(jax.random.key(5)).factors)
    assert factors.max() <= 2 * SIZE / COUNT * (1 + 1e-9)
    assert factors.sum() == pytest.approx(SIZE, rel=0.2)


def test_sums_of_a_sample_are_scaled(rng):
    rows = to_array_data(rng.normal(size=(10, 2)))
    sample = UniformSample(rows, full_size=1_000)
    np.testing.assert_allclose(sample.sum_over_rows(lambda batch: batch.sum(axis=0)), 100 * rows.arrays.sum(axis=0))


def test_training_with_control_variates_finds_the_same_posterior():
    """With 256 rows behind the sums of 4 000: estimated KL below the tolerance, and far fewer evaluations."""
    data = logistic_data(size=SIZE)
    common = {"coreset_size": 60, "draws": 200, "tune": 50, "chains": 2, "random_seed": 3, "progressbar": False}
    sampled = cm.fit(
        cm.models.logistic_regression(FEATURES), data, method=cm.LeastSquares(subsample_size=256), **common
    )
    full = cm.fit(cm.models.logistic_regression(FEATURES), data, method=cm.LeastSquares(subsample_size=None), **common)
    assert full.kl_estimate < 0.01
    assert sampled.kl_estimate < 0.02
    assert sampled.training.num_evaluations < 0.5 * full.training.num_evaluations
