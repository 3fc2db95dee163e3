"""Sums over all rows from control variates: exact where they must be, unbiased, honest about their error."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

import coreset_mcmc as cm
from coreset_mcmc.core.trees import flattened
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.sample import UniformSample
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.methods.least_squares.row_sampling import RowSample, sample_rows
from coreset_mcmc.methods.least_squares.taylor import remainder_scores, row_remainders, taylor_sums
from coreset_mcmc.methods.sums import full_data_sums
from coreset_mcmc.posterior.full import derivatives
from coreset_mcmc.posterior.newton import NewtonSearch, approximation_at, find_mode
from coreset_mcmc.posterior.problem import make_problem, starting_positions
from tests.helpers.problems import NUM_FEATURES, logistic_data

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
        scores = remainder_scores(problem, search.position, scoring)

        @jax.jit
        def make(key):
            (sample,) = sample_rows(key, [scores], [COUNT])
            return taylor_sums(problem, search.position, search.derivatives, sample)

        return problem, search, positions, exact, make


@pytest.mark.full
def test_remainder_of_a_quadratic_is_nothing(rng):
    """The Gaussian location model is its own expansion, so the sums are exact with any two rows."""
    problem = problem_of(cm.models.gaussian_location(2), rng.normal(size=(50, 2)))
    centre = jnp.asarray(rng.normal(size=2))
    sample = RowSample(jnp.asarray([3, 17]), jnp.asarray([0.02, 0.5]))
    sums = taylor_sums(problem, centre, derivatives(problem, centre), sample)
    positions = {"theta": jnp.asarray(rng.normal(size=(5, 2)))}
    found = sums.sums(problem.model, positions)
    np.testing.assert_allclose(
        found.total, full_data_sums(problem.model, positions, problem.data).total, rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(found.variance, 0.0, atol=1e-18)


@pytest.mark.full
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

    The claim is Hajek's, for samples that are random but for the sizes of their chances.
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


@pytest.mark.full
def test_a_sample_that_is_not_put_right_is_worse(logistic):
    """The broken twin: without the correction of its first two derivatives the error is several times larger."""
    problem, _, positions, exact, make = logistic
    whole = make(jax.random.key(3))
    error = np.std(np.asarray(whole.sums(problem.model, positions).total - exact))
    broken = replace(whole, gradient=0 * whole.gradient, hessian=0 * whole.hessian)
    assert np.std(np.asarray(broken.sums(problem.model, positions).total - exact)) > 10 * error


def test_rows_that_are_sure_add_no_error(logistic):
    """All rows with probability one: the sums are exact, and say so."""
    problem, search, positions, exact, _ = logistic
    every = RowSample(jnp.arange(SIZE), jnp.ones(SIZE))
    found = jax.jit(lambda: taylor_sums(problem, search.position, search.derivatives, every))().sums(
        problem.model, positions
    )
    np.testing.assert_allclose(found.total, exact, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(found.variance, 0.0, atol=1e-12)


def test_sums_of_a_sample_are_scaled(rng):
    rows = to_array_data(rng.normal(size=(10, 2)))
    sample = UniformSample(rows, full_size=1_000)
    np.testing.assert_allclose(sample.sum_over_rows(lambda batch: batch.sum(axis=0)), 100 * rows.arrays.sum(axis=0))


@pytest.mark.full
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
