"""Full-data NUTS on the Gaussian location model, whose posterior is N(X1 / (1 + N), I / (1 + N))."""

from __future__ import annotations

import arviz_stats
import jax
import numpy as np
import pytest
from scipy import stats

from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import Given
from coreset_mcmc.driver.run import run
from coreset_mcmc.methods.full_data import NUTS
from coreset_mcmc.models import gaussian_location
from coreset_mcmc.posterior.problem import make_problem, starting_positions

pytestmark = pytest.mark.full

SIZE, DIM, NUM_CHAINS, NUM_DRAWS, NUM_WARMUP = 300, 3, 2, 1_500, 150
FALSE_ALARM = 1e-5


def location_data():
    return np.random.default_rng(2).normal(size=(SIZE, DIM)) + np.array([5.0, 0.0, -20.0])


@pytest.fixture(scope="module")
def problem():
    with jax.enable_x64(True):
        model, data = gaussian_location(DIM), location_data()
        selected = Given([0]).select(np.random.default_rng(0), data, SIZE, None)
        return make_problem(
            model, to_array_data(data), selected, starting_positions(model, jax.random.key(0), NUM_CHAINS)
        )


def sample(problem, seed, num_draws=NUM_DRAWS, **options):
    method = NUTS(num_warmup=NUM_WARMUP, num_chains=NUM_CHAINS, **options)
    method.check(problem)
    training = run(method, problem, jax.random.key(seed), num_steps=method.max_steps)
    trained = method.finish(training.state, problem, kernel=None, num_chains=NUM_CHAINS)
    return training, run(trained.sampler, trained.problem, jax.random.key(seed + 100), num_steps=num_draws)


@pytest.fixture(scope="module")
def from_mode(problem):
    with jax.enable_x64(True):
        return sample(problem, 0)


def p_values(draws, mean, variance):
    """For each coordinate, of its mean and of its mean square around the exact mean, by their effective sizes."""
    standardised = (draws - mean) / np.sqrt(variance)
    p = []
    for coordinate in range(DIM):
        for values, expected, deviation in (
            (standardised[..., coordinate], 0.0, 1.0),
            (standardised[..., coordinate] ** 2, 1.0, np.sqrt(2.0)),
        ):
            ess = float(arviz_stats.ess(values.T, method="mean"))
            p.append(2 * stats.norm.sf(abs(values.mean() - expected) * np.sqrt(ess) / deviation))
    return np.array(p)


def assert_posterior_of_all_rows(draws):
    """Six tests by Bonferroni: one false alarm in a hundred thousand. Without the last five rows they fail."""
    data = location_data()
    assert p_values(draws, data.sum(axis=0) / (1 + SIZE), 1 / (1 + SIZE)).min() > FALSE_ALARM / 6
    assert p_values(draws, data[:-5].sum(axis=0) / (1 + SIZE), 1 / (1 + SIZE)).min() < FALSE_ALARM / 6


@pytest.mark.statistical
def test_draws_from_the_mode_have_the_exact_mean_and_variance(from_mode):
    history = from_mode[1].history
    assert_posterior_of_all_rows(history.position["theta"])
    assert not history.diverging.any()


@pytest.mark.statistical
@pytest.mark.parametrize("max_mode_iterations", [0, 1], ids=["no search", "mode not found"])
def test_draws_from_the_given_starts_do_too(problem, seed, max_mode_iterations):
    training, sampling = sample(problem, seed, max_mode_iterations=max_mode_iterations)
    assert training.num_steps == max_mode_iterations + NUM_WARMUP
    assert_posterior_of_all_rows(sampling.history.position["theta"])


def test_training_finds_the_mode_then_warms_up(from_mode):
    training = from_mode[0]
    history = training.history
    num_searched = int(np.isfinite(history.newton_decrement).sum())
    assert training.num_steps == num_searched + NUM_WARMUP
    assert np.isfinite(history.step_size[num_searched:]).all()
    assert np.isnan(history.step_size[:num_searched]).all()
    assert history.newton_decrement[num_searched - 1] < 1e-5


def test_metric_is_the_posterior_covariance(from_mode):
    """The one slow window pools 25 draws of each of two chains: five relative errors of sqrt(2 / 50)."""
    metric = np.asarray(from_mode[0].state.adaptation.metric.inverse_mass_matrix)
    np.testing.assert_allclose(metric * (1 + SIZE), np.eye(DIM), atol=5 * np.sqrt(2 / 50))


def test_counts_gradients_times_rows(problem, from_mode):
    training, sampling = from_mode
    history = sampling.history
    np.testing.assert_array_equal(history.num_evaluations, SIZE * history.num_steps.sum(axis=1))
    assert sampling.num_evaluations == SIZE * (NUM_CHAINS + history.num_steps.sum())
    assert history.num_steps.min() >= 1
    assert NUTS(num_chains=NUM_CHAINS).init_evaluations(problem) == SIZE * NUM_CHAINS
    last_search = np.flatnonzero(np.isnan(training.history.step_size))[-1]
    assert training.history.num_evaluations[last_search] == SIZE * ((1 + DIM) + NUM_CHAINS)


def test_same_seed_same_draws_and_steps_as_careful_as_asked(problem, from_mode):
    draws = from_mode[1].history
    again = sample(problem, 0, num_draws=20)[1].history
    np.testing.assert_array_equal(draws.position["theta"][:20], again.position["theta"])
    assert not np.array_equal(draws.position["theta"][:, 0], draws.position["theta"][:, 1])
    careful = sample(problem, 0, num_draws=200, target_acceptance=0.98)[1].history
    assert careful.acceptance_rate.mean() > draws.acceptance_rate.mean() > 0.6


def test_sampling_chains_may_outnumber_those_that_warmed_up(problem, from_mode):
    method = NUTS(num_warmup=NUM_WARMUP, num_chains=NUM_CHAINS)
    starts = method.finish(from_mode[0].state, problem, kernel=None, num_chains=5).problem.initial_positions["theta"]
    np.testing.assert_array_equal(starts[2], starts[0])
    assert starts.shape == (5, DIM)


@pytest.mark.parametrize("dense_mass", [True, False])
def test_a_step_keeps_types_and_shapes(problem, dense_mass):
    method = NUTS(num_warmup=NUM_WARMUP, num_chains=NUM_CHAINS, dense_mass=dense_mass)
    state = jax.eval_shape(method.init, jax.random.key(0), problem)
    after, info = jax.eval_shape(method.step, jax.random.key(0), state, problem)
    assert after == state
    assert state.adaptation.metric.inverse_mass_matrix.shape == ((DIM, DIM) if dense_mass else (DIM,))
    assert (info.num_evaluations.dtype, info.status.dtype) == ("int64", "int32")


@pytest.mark.parametrize(
    "options",
    [{"num_warmup": 5}, {"num_chains": 0}, {"target_acceptance": 1.0}, {"max_mode_iterations": -1}],
    ids=lambda options: next(iter(options)),
)
def test_refuses_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        NUTS(**options)
