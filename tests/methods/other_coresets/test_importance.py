"""Importance-sampled coresets: norms, unbiasedness, merging, and what they gain over uniform rows."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from coreset_mcmc.core.errors import InputError, RunError
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import Given
from coreset_mcmc.driver.run import run
from coreset_mcmc.kernels import GaussianAutoregression
from coreset_mcmc.methods.other_coresets.importance import (
    ImportanceSampling,
    draw_in_proportion,
    expected_half_variance,
    norms_of_all_rows,
)
from coreset_mcmc.methods.other_coresets.row_vectors import padded, row_vectors
from coreset_mcmc.models import gaussian_location
from coreset_mcmc.models.gaussian_location import coreset_kl
from coreset_mcmc.posterior.problem import make_problem, starting_positions

DIM, SIZE, CORESET_SIZE, NUM_PROJECTIONS = 3, 2_000, 40, 30
METHOD = ImportanceSampling(kernel=GaussianAutoregression(0.0), num_projections=NUM_PROJECTIONS)


@pytest.fixture(scope="module")
def problem():
    """One row in fifty lies far out and pulls the posterior."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(5)
        data = rng.normal(size=(SIZE, DIM))
        data[::50] += np.array([30.0, -30.0, 0.0])
        selected = Given(np.arange(CORESET_SIZE)).select(rng, data, SIZE, None)
        model = gaussian_location(DIM)
        return make_problem(model, to_array_data(data), selected, starting_positions(model, jax.random.key(0), 2))


@pytest.fixture(scope="module")
def trained(problem):
    with jax.enable_x64(True):
        METHOD.check(problem)
        return run(METHOD, problem, jax.random.key(0), num_steps=METHOD.max_steps)


@pytest.fixture(scope="module")
def norms(problem, trained):
    with jax.enable_x64(True):
        return np.asarray(jax.jit(norms_of_all_rows)(problem, trained.state.positions))


def test_norms_are_standard_deviations_over_the_draws(problem, trained, norms):
    theta = np.asarray(trained.state.positions["theta"])
    rows = np.asarray(problem.data.arrays)
    log_likelihoods = rows @ theta.T - 0.5 * (theta**2).sum(axis=1)
    np.testing.assert_allclose(norms, log_likelihoods.std(axis=1), rtol=1e-8)


@pytest.mark.statistical
def test_weighted_sums_are_unbiased_and_plain_ones_are_not(norms, rng, seed):
    """z-test of 20 000 sums of an arbitrary statistic; threshold 4.9, one false alarm in a million."""
    statistic = norms + rng.normal(size=SIZE)
    keys = jax.random.split(jax.random.key(seed), 20_000)
    indices, weights = jax.jit(jax.vmap(lambda key: draw_in_proportion(key, jnp.asarray(norms), CORESET_SIZE)))(keys)
    values = statistic[np.asarray(indices)]

    def z_score(sums):
        return abs(sums.mean() - statistic.sum()) / (sums.std() / np.sqrt(len(sums)))

    assert z_score((np.asarray(weights) * values).sum(axis=1)) < 4.9
    assert z_score(SIZE / CORESET_SIZE * values.sum(axis=1)) > 4.9


@pytest.mark.statistical
def test_rows_are_drawn_in_proportion(norms, seed):
    """A chi-square test over ten groups of rows; one false alarm in a hundred thousand."""
    indices, weights = draw_in_proportion(jax.random.key(seed), jnp.asarray(norms), 10_000)
    counts = np.bincount(np.asarray(indices) % 10, minlength=10)
    expected = 10_000 * np.bincount(np.arange(SIZE) % 10, weights=norms) / norms.sum()
    assert stats.chisquare(counts, expected).pvalue > 1e-5
    assert stats.chisquare(counts).pvalue < 1e-5
    np.testing.assert_allclose(weights, norms.sum() / (10_000 * norms[np.asarray(indices)]), rtol=1e-10)


def test_rows_without_influence_do_not_break_it():
    indices, weights = draw_in_proportion(jax.random.key(0), jnp.zeros(10), 4)
    np.testing.assert_allclose(weights, 10 / 4)
    indices, weights = draw_in_proportion(jax.random.key(0), jnp.zeros(10).at[3].set(2.0), 4)
    assert (np.asarray(indices) == 3).all()
    np.testing.assert_allclose(weights, 1 / 4)


def test_repeated_rows_are_merged_and_the_rest_padded(problem, trained):
    coreset = METHOD.finish(trained.state, problem, kernel=None, num_chains=2).coreset
    drawn, weights = np.asarray(trained.state.indices), np.asarray(trained.state.weights)
    assert len(set(drawn.tolist())) < CORESET_SIZE
    assert coreset.indices.shape == coreset.weights.shape == (CORESET_SIZE,)
    assert len(set(coreset.indices.tolist())) == CORESET_SIZE
    for index, weight in zip(coreset.indices, coreset.weights, strict=True):
        np.testing.assert_allclose(weight, weights[drawn == index].sum())


def test_padding_takes_other_rows():
    coreset = padded(np.array([0, 7, 2]), np.array([1.0, 2.0, 3.0]), 5)
    assert coreset.indices.tolist() == [0, 7, 2, 1, 3]
    assert coreset.weights.tolist() == [1.0, 2.0, 3.0, 0.0, 0.0]


def test_posterior_is_far_closer_than_with_uniform_rows(problem, norms):
    """Medians of 50 coresets. Uniform rows miss the pull of the outliers, whose number among 40 varies as a Poisson."""
    data, rows_of = problem.data.arrays, problem.data.take

    def divergence(key, scores):
        indices, weights = draw_in_proportion(key, scores, CORESET_SIZE)
        return coreset_kl(rows_of(indices), weights, data)

    keys = jax.random.split(jax.random.key(0), 50)
    divergences = jax.jit(jax.vmap(divergence, in_axes=(0, None)))
    weighted, uniform = divergences(keys, jnp.asarray(norms)), divergences(keys, jnp.ones(SIZE))
    assert np.median(weighted) < 0.3 * np.median(uniform)


def test_info_and_counts(problem, trained):
    history = trained.history
    is_search = np.isfinite(history.newton_decrement)
    assert is_search.sum() == trained.num_steps - 1
    assert history.num_evaluations[-1] == NUM_PROJECTIONS * (SIZE + CORESET_SIZE)
    assert METHOD.init_evaluations(problem) == 0
    vectors = row_vectors(problem.model, trained.state.positions, problem.data.take(trained.state.indices))
    np.testing.assert_allclose(history.kl_estimate[-1], expected_half_variance(vectors, trained.state.weights))


@pytest.mark.statistical
def test_estimated_divergence_is_unbiased(problem, trained, norms, seed):
    """Over 4 000 coresets the mean estimate is the mean of half the squared error; z-test, false alarm 1e-6."""
    vectors = row_vectors(problem.model, trained.state.positions, problem.data.arrays)
    total = jnp.sum(vectors, axis=1)

    def estimate_and_truth(key):
        indices, weights = draw_in_proportion(key, jnp.asarray(norms), CORESET_SIZE)
        chosen = vectors[:, indices]
        return expected_half_variance(chosen, weights), 0.5 * jnp.sum((chosen @ weights - total) ** 2)

    pairs = jax.jit(jax.vmap(estimate_and_truth))(jax.random.split(jax.random.key(seed), 4_000))
    gaps = np.asarray(pairs[0] - pairs[1])
    assert abs(gaps.mean()) < 4.9 * gaps.std() / np.sqrt(len(gaps))


def test_draws_come_from_the_weighted_rows(problem, trained):
    """The sampler's target is the closed form of the merged coreset."""
    finished = METHOD.finish(trained.state, problem, kernel=None, num_chains=2)
    target = finished.problem.target
    np.testing.assert_array_equal(target.rows, problem.data.arrays[finished.coreset.indices])
    np.testing.assert_array_equal(target.weights, finished.coreset.weights)


def test_needs_rows_to_have_been_drawn(problem):
    state = jax.jit(METHOD.init)(jax.random.key(0), problem)
    with pytest.raises(RunError, match="before the rows"):
        METHOD.finish(state, problem, kernel=None, num_chains=2)


def test_refuses_bad_options():
    with pytest.raises(InputError, match="num_projections"):
        ImportanceSampling(num_projections=1)
