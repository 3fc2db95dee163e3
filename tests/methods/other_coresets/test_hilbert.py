"""Hilbert coresets on the Gaussian location model, where log-likelihoods span d + 1 dimensions."""

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
from coreset_mcmc.methods.other_coresets.hilbert import Hilbert, alignment, best_weights, geodesic_step, unit
from coreset_mcmc.models import gaussian_location
from coreset_mcmc.models.gaussian_location import coreset_kl
from coreset_mcmc.posterior.problem import make_problem, starting_positions

DIM, SIZE, CORESET_SIZE, NUM_PROJECTIONS = 4, 600, 10, 30
METHOD = Hilbert(kernel=GaussianAutoregression(0.0), num_projections=NUM_PROJECTIONS)


def gaussian_problem(data, coreset_size=CORESET_SIZE):
    selected = Given(np.arange(coreset_size)).select(np.random.default_rng(0), data, len(data), None)
    model = gaussian_location(DIM)
    return make_problem(model, to_array_data(data), selected, starting_positions(model, jax.random.key(0), 2))


def train(problem, method=METHOD, seed=0):
    method.check(problem)
    training = run(method, problem, jax.random.key(seed), num_steps=method.max_steps)
    return training, method.finish(training.state, problem, kernel=None, num_chains=2)


@pytest.fixture(scope="module")
def problem():
    with jax.enable_x64(True):
        return gaussian_problem(np.random.default_rng(4).normal(size=(SIZE, DIM)) + 1.0)


@pytest.fixture(scope="module")
def fitted(problem):
    with jax.enable_x64(True):
        return train(problem)


def test_error_never_grows(fitted):
    errors = fitted[0].history.relative_error
    errors = errors[np.isfinite(errors)]
    assert errors[0] == 1.0
    assert (np.diff(errors) <= 1e-12).all()
    assert errors[-1] < 0.01


def test_reported_error_is_that_of_the_chosen_rows(fitted):
    training, _ = fitted
    greedy, total = training.state.greedy, np.asarray(training.state.total)
    vectors = np.asarray(greedy.vectors)[: int(greedy.num_chosen)]
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    made = np.asarray(greedy.coefficients)[: len(units)] @ units
    np.testing.assert_allclose(made, greedy.approximation, atol=1e-10)
    gap = np.linalg.norm(total - (made @ total) / (made @ made) * made) / np.linalg.norm(total)
    np.testing.assert_allclose(training.history.relative_error[-1], gap, rtol=1e-6)
    np.testing.assert_allclose(training.history.kl_estimate[-1], 0.5 * (gap * np.linalg.norm(total)) ** 2, rtol=1e-6)
    best = best_weights(vectors, total, np.asarray(greedy.coefficients)[: len(units)])
    assert np.linalg.norm(total - best @ vectors) <= gap * np.linalg.norm(total)


def test_posterior_is_exact_with_more_rows_than_dimensions(problem, fitted):
    """The span of the log-likelihoods has d + 1 dimensions, and the projections see all of them."""
    coreset = fitted[1].coreset
    assert len(coreset.indices) == len(set(coreset.indices.tolist())) == CORESET_SIZE
    assert (coreset.weights >= 0).all()
    rows, weights = problem.data.take(jnp.asarray(coreset.indices)), jnp.asarray(coreset.weights)
    assert coreset_kl(rows, weights, problem.data.arrays) < 1e-12
    assert coreset_kl(problem.rows, problem.initial_weights, problem.data.arrays) > 10


@pytest.mark.statistical
def test_draws_follow_the_full_posterior(problem, fitted, seed):
    """The autoregression with coefficient 0 draws independently: 2 d chi-square tests, false alarm 1e-5 in all."""
    trained = fitted[1]
    draws = run(trained.sampler, trained.problem, jax.random.key(seed), num_steps=500).history.position["theta"]
    data = np.asarray(problem.data.arrays)
    standardised = (draws - data.sum(axis=0) / (1 + len(data))) * np.sqrt(1 + len(data))
    flat = standardised.reshape(-1, DIM)
    p_mean = 2 * stats.norm.sf(np.abs(flat.mean(axis=0)) * np.sqrt(len(flat)))
    upper = stats.chi2.sf((flat**2).sum(axis=0), len(flat))
    assert p_mean.min() > 1e-5 / (2 * DIM)
    assert (2 * np.minimum(upper, 1 - upper)).min() > 1e-5 / (2 * DIM)


def test_counts_projections_times_rows(problem, fitted):
    history, size = fitted[0].history, problem.data.size
    is_search = np.isfinite(history.newton_decrement)
    evaluations = history.num_evaluations[~is_search]
    assert evaluations[0] == NUM_PROJECTIONS * size
    assert (evaluations[1:] == NUM_PROJECTIONS * (size + 1)).all()
    assert METHOD.init_evaluations(problem) == 0


def test_recovers_multiplicities(rng):
    """d + 1 distinct points, repeated: their multiplicities are the only weights that reproduce the full posterior."""
    distinct = rng.normal(size=(DIM + 1, DIM))
    multiplicities = np.array([200, 32, 250, 1, 117])
    data = np.repeat(distinct, multiplicities, axis=0)[rng.permutation(multiplicities.sum())]
    method = Hilbert(kernel=METHOD.kernel, num_projections=NUM_PROJECTIONS, tolerance=1e-12)
    _, trained = train(gaussian_problem(data), method)
    found = [trained.coreset.weights[(data[trained.coreset.indices] == point).all(axis=1)].sum() for point in distinct]
    np.testing.assert_allclose(found, multiplicities, rtol=1e-6)
    assert (trained.coreset.weights > 0).sum() == DIM + 1


def test_step_along_the_geodesic_is_the_best_one(rng):
    """Against a fine search over all convex combinations."""
    target, here, there = (unit(jnp.asarray(row)) for row in rng.normal(size=(3, 6)) + 1.0)
    keep, add = geodesic_step(target, here, there)
    best = target @ (keep * here + add * there)
    shares = np.linspace(0, 1, 100_001)[:, None]
    combinations = (1 - shares) * np.asarray(here) + shares * np.asarray(there)
    cosines = combinations @ np.asarray(target) / np.linalg.norm(combinations, axis=1)
    assert best >= cosines.max() - 1e-12
    np.testing.assert_allclose(jnp.linalg.norm(keep * here + add * there), 1.0, rtol=1e-12)


def test_alignment_ignores_rows_that_cannot_help(rng):
    target, here = unit(jnp.asarray(rng.normal(size=6))), unit(jnp.asarray(rng.normal(size=6)))
    other = jnp.asarray(rng.normal(size=6))
    scores = alignment(jnp.stack([jnp.zeros(6), 3.0 * here, target, other], axis=1), target, here)
    assert (scores[:2] == -jnp.inf).all()
    np.testing.assert_allclose(scores[2], 1.0, rtol=1e-12)
    across, away = other - (other @ here) * here, target - (target @ here) * here
    np.testing.assert_allclose(scores[3], unit(across) @ unit(away), rtol=1e-10)


def test_needs_rows_to_have_been_chosen(problem):
    state = jax.jit(METHOD.init)(jax.random.key(0), problem)
    with pytest.raises(RunError, match="before any row"):
        METHOD.finish(state, problem, kernel=None, num_chains=2)


@pytest.mark.parametrize("options", [{"num_projections": 1}, {"num_iterations": 0}, {"tolerance": 0.0}])
def test_refuses_bad_options(options):
    with pytest.raises(InputError, match=next(iter(options))):
        Hilbert(**options)
