"""The uniform coreset: the selected rows with their initial weights, untrained, and how far off that is."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import stats

from coreset_mcmc import InputError
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import Stratified
from coreset_mcmc.data.selection import Uniform as UniformRows
from coreset_mcmc.diagnostics.metrics import two_moment_kl, two_moment_kl_floor
from coreset_mcmc.driver.compiled import num_compiled_programs
from coreset_mcmc.driver.run import run
from coreset_mcmc.kernels import GaussianAutoregression, HitAndRunSlice
from coreset_mcmc.methods import Uniform
from coreset_mcmc.models import gaussian_location
from coreset_mcmc.models.gaussian_location import coreset_kl
from coreset_mcmc.posterior.problem import make_problem, starting_positions
from tests.helpers.problems import logistic_problem

SIZE, DIM, CORESET_SIZE, NUM_DRAWS, NUM_CHAINS = 2_000, 5, 20, 2_000, 4


def gaussian_problem(seed, selection=None):
    generator = np.random.default_rng(seed)
    data = generator.normal(size=(SIZE, DIM))
    selected = (selection or UniformRows()).select(generator, data, SIZE, CORESET_SIZE)
    positions = starting_positions(gaussian_location(DIM), jax.random.key(seed), 1)
    return make_problem(gaussian_location(DIM), to_array_data(data), selected, positions)


def trained(problem, key, kernel=None):
    method = Uniform(GaussianAutoregression(0.0))
    method.check(problem)
    training = run(method, problem, key, num_steps=method.max_steps)
    return training, method.finish(training.state, problem, kernel=kernel, num_chains=NUM_CHAINS)


def test_nothing_is_trained_or_evaluated(key):
    problem = gaussian_problem(0)
    training, result = trained(problem, key)
    assert training.num_steps == 0
    assert training.num_evaluations == 0
    assert training.history.status.shape == (0,)
    np.testing.assert_array_equal(result.coreset.indices, problem.indices)
    np.testing.assert_array_equal(result.coreset.weights, np.full(CORESET_SIZE, SIZE / CORESET_SIZE))
    assert isinstance(result.sampler.kernel, GaussianAutoregression)


def test_weights_of_the_strata_are_kept(key):
    labels = np.arange(SIZE) < SIZE // 10
    problem = gaussian_problem(0, Stratified(labels))
    _, result = trained(problem, key)
    assert set(result.coreset.weights) == {SIZE * 0.9 / 10, SIZE * 0.1 / 10}
    np.testing.assert_array_equal(result.problem.target.weights, problem.initial_weights)


def test_a_kernel_for_sampling_takes_precedence(key):
    _, result = trained(gaussian_problem(0), key, kernel=HitAndRunSlice())
    assert isinstance(result.sampler.kernel, HitAndRunSlice)


@pytest.mark.statistical
def test_its_distance_is_what_theory_says(key, seed):
    """KL at w = N/M is (1 - M/N) N / (2 M) times a chi-square of d degrees, 1 in 1 000 outside the bounds.

    The draws are independent, so their two-moment KL differs from the closed form by the error of their mean, of
    which the gap sqrt(2 KL) sees one standard normal over sqrt(n), and by d (d + 3) / (4 n): four deviations.
    """
    problem = gaussian_problem(seed)
    data = np.asarray(problem.data.arrays)
    exact = float(coreset_kl(problem.rows, problem.initial_weights, problem.data.arrays))
    scale = (1 - CORESET_SIZE / SIZE) * SIZE / (2 * CORESET_SIZE)
    assert stats.chi2.ppf(5e-4, DIM) < exact / scale < stats.chi2.ppf(1 - 5e-4, DIM)

    _, result = trained(problem, key)
    sampling = run(result.sampler, result.problem, key, num_steps=NUM_DRAWS // NUM_CHAINS)
    draws = sampling.history.position["theta"].reshape(-1, DIM)
    measured = two_moment_kl(draws, data.sum(axis=0) / (1 + SIZE), np.eye(DIM) / (1 + SIZE))
    tolerance = 4 * np.sqrt(2 * exact / NUM_DRAWS) + 4 * DIM * (DIM + 3) / (4 * NUM_DRAWS)
    assert abs(measured - exact) < tolerance
    assert measured > 1_000 * two_moment_kl_floor(DIM, NUM_DRAWS)


def test_other_data_do_not_compile_again(key):
    trained(gaussian_problem(0), key)
    before = num_compiled_programs()
    trained(gaussian_problem(1), jax.random.key(5))
    assert num_compiled_programs() == before


def test_a_kernel_that_cannot_sample_the_model_is_refused():
    with pytest.raises(InputError, match="gaussian_location"):
        Uniform(GaussianAutoregression()).check(logistic_problem())


def test_what_the_progress_bar_would_say(key):
    training, _ = trained(gaussian_problem(0), key)
    assert Uniform().describe(training.history) == "nothing to train"
