"""SGLD and SGHMC against the exact law of their recursions on a Gaussian target, and the search for the mode.

For the Gaussian location model the control-variate gradient has no noise, so the recursions are linear with Gaussian
noise and their stationary variance is known, bias of the step included.
"""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import pytest
from scipy import optimize

import coreset_mcmc as cm
from coreset_mcmc import RunError
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.driver.run import run
from coreset_mcmc.methods.subsampling import SGHMC, SGLD, ModeSearch
from coreset_mcmc.models import gaussian_location
from coreset_mcmc.posterior.problem import make_problem, starting_positions
from tests.helpers.problems import SIZE, logistic_data, logistic_problem

NUM_ROWS, DIM, NUM_CHAINS, NUM_STEPS, DISCARDED = 1_200, 2, 20, 1_500, 100
PRECISION = 1.0 + NUM_ROWS
AT_THE_MODE = ModeSearch(max_iterations=0)


def gaussian_problem():
    """Chains start at the mode, which is known."""
    rows = np.random.default_rng(1).normal(size=(NUM_ROWS, DIM)) + np.array([1.0, -2.0])
    model = gaussian_location(DIM)
    mean = rows.sum(axis=0) / PRECISION
    starts = starting_positions(model, jax.random.key(0), 1, {"theta": mean})
    return make_problem(model, to_array_data(rows), SelectedRows(np.arange(2), np.ones(2)), starts), mean


def sample(method, problem, key, num_chains=NUM_CHAINS, num_steps=NUM_STEPS):
    method.check(problem)
    trained = run(method, problem, key, num_steps=method.max_steps)
    finished = method.finish(trained.state, problem, kernel=None, num_chains=num_chains)
    return run(finished.sampler, finished.problem, key, num_steps=num_steps)


def z_scores(draws, mean, variance, lag_one):
    """How many standard errors mean and variance of AR(1) draws are from what they should be, as exact as AR(1) is.

    Var(mean) = v (1 + a) / (1 - a) / n and Var(variance) = 2 v^2 (1 + a^2) / (1 - a^2) / n.
    """
    centred = draws[DISCARDED:] - mean
    count = centred[..., 0].size
    mean_error = np.sqrt(variance * (1 + lag_one) / (1 - lag_one) / count)
    variance_error = variance * np.sqrt(2 * (1 + lag_one**2) / (1 - lag_one**2) / count)
    z_mean = centred.mean(axis=(0, 1)) / mean_error
    z_variance = ((centred**2).mean(axis=(0, 1)) - variance) / variance_error
    return np.abs(np.concatenate([z_mean, z_variance])).max()


def sgld_law(step_size):
    lag_one = 1 - step_size * PRECISION / 2
    return step_size / (1 - lag_one**2), lag_one


@pytest.mark.statistical
@pytest.mark.parametrize("scaled_step", [0.1, 3.0])
def test_sgld_has_the_law_of_its_recursion(key, scaled_step):
    """Four z-scores below 4.5: false-alarm rate 3e-5. The large step quadruples the variance of the posterior."""
    problem, mean = gaussian_problem()
    method = SGLD(scaled_step / PRECISION, subsample_size=10, mode=AT_THE_MODE)
    draws = sample(method, problem, key).history.position["theta"]
    variance, lag_one = sgld_law(method.step_size)
    assert z_scores(draws, mean, variance, lag_one) < 4.5
    is_posterior = z_scores(draws, mean, 1 / PRECISION, lag_one) < 4.5
    assert is_posterior == (scaled_step == 0.1)
    np.testing.assert_allclose(variance * PRECISION, 1 / (1 - scaled_step / 4), rtol=1e-12)


def sghmc_law(method):
    """Variance and lag-one correlation of the position after L linear inner steps from a fresh momentum."""
    e, c = method.step_size, method.friction
    one = np.array([[1.0, e], [-e * PRECISION, 1 - e * c - e**2 * PRECISION]])
    noise = np.diag([0.0, 2 * e * (c - method.noise_estimate)])
    path, spread = np.eye(2), np.zeros((2, 2))
    for _ in range(method.num_leapfrog):
        path, spread = one @ path, one @ spread @ one.T + noise
    return (path[0, 1] ** 2 + spread[0, 0]) / (1 - path[0, 0] ** 2), path[0, 0]


@pytest.mark.full
@pytest.mark.statistical
def test_sghmc_has_the_law_of_its_recursion(key):
    """Four z-scores below 4.5 for each setting: false-alarm rate 6e-5.

    The small step has the posterior's variance within 2 %, the large one half as much again. Numbers are arguments, so
    both settings share a compiled program.
    """
    problem, mean = gaussian_problem()
    small = SGHMC(0.05 / np.sqrt(PRECISION), friction=1.0, num_leapfrog=28, subsample_size=10, mode=AT_THE_MODE)
    large = SGHMC(0.7 / np.sqrt(PRECISION), friction=1.0, num_leapfrog=2, subsample_size=10, mode=AT_THE_MODE)
    for method, is_close in ((small, True), (large, False)):
        variance, lag_one = sghmc_law(method)
        draws = sample(method, problem, key).history.position["theta"]
        assert z_scores(draws, mean, variance, lag_one) < 4.5
        assert (abs(variance * PRECISION - 1) < 0.02) == is_close
        assert is_close or z_scores(draws, mean, 1 / PRECISION, lag_one) > 4.5


def test_a_step_that_is_too_large_says_so(key):
    problem, _ = gaussian_problem()
    method = SGLD(1_000 / PRECISION, subsample_size=10, mode=AT_THE_MODE)
    with pytest.raises(RunError, match="smaller step_size"):
        sample(method, problem, key, num_steps=400)


def logistic_mode():
    data = logistic_data()

    def negative_log_posterior(beta):
        signed = (1 - 2 * data["y"]) * (beta[0] + data["x"] @ beta[1:])
        return np.logaddexp(0, signed).sum() + np.log1p(beta**2).sum()

    return optimize.minimize(negative_log_posterior, np.zeros(3)).x


def test_mode_search_finds_the_mode_with_all_rows(key):
    """Without noise the updates die out at the mode: a tolerance of 1e-6 is 1e-3 of the first gradients and less."""
    problem = logistic_problem()
    search = ModeSearch(learning_rate=5e-3, tolerance=1e-6, subsample_size=10**6, max_iterations=20_000)
    trained = run(SGLD(mode=search), problem, key, num_steps=search.max_iterations)
    assert trained.reason == "converged"
    assert trained.num_evaluations == SIZE * trained.num_steps
    np.testing.assert_allclose(trained.state.position["beta"], logistic_mode(), atol=1e-3)


def test_mode_search_with_few_rows_stops_near_the_mode(key):
    """The rule stops when all updates happen to be small, within two posterior deviations of 0.13 and more."""
    problem = logistic_problem()
    method = SGLD(mode=ModeSearch(learning_rate=5e-3, tolerance=5e-4, subsample_size=100, max_iterations=20_000))
    trained = run(method, problem, key, num_steps=method.max_steps)
    assert trained.reason == "converged"
    assert (trained.history.update_size[:-1] >= 5e-4).all()
    assert trained.history.update_size[-1] < 5e-4
    assert trained.num_evaluations == 100 * trained.num_steps
    np.testing.assert_allclose(trained.state.position["beta"], logistic_mode(), atol=0.26)
    np.testing.assert_allclose(trained.history.update_size[0], 5e-3, rtol=1e-6)


def test_mode_search_has_a_cap_and_sampling_starts_at_its_end(key):
    problem = logistic_problem()
    method = SGLD(1e-12, mode=ModeSearch(learning_rate=5e-3, tolerance=5e-4, max_iterations=30))
    trained = run(method, problem, key, num_steps=method.max_steps)
    assert trained.num_steps == 30
    assert trained.reason == "total reached"
    assert "max_iterations=30" in method.shortfall(trained.state)
    finished = method.finish(trained.state, problem, kernel=None, num_chains=2)
    starts = np.asarray(finished.problem.initial_positions["beta"])
    np.testing.assert_array_equal(starts, np.stack([trained.state.position["beta"]] * 2))
    assert np.abs(starts).max() > 0.1


def test_a_search_that_was_cut_short_says_so():
    mode = ModeSearch(learning_rate=5e-3, tolerance=5e-4, max_iterations=30)
    options = {"draws": 5, "tune": 0, "chains": 1, "random_seed": 0, "progressbar": False}
    model = cm.models.logistic_regression(2)
    with pytest.warns(UserWarning, match="max_iterations=30 updates"):
        fitted = cm.fit(model, logistic_data(), method=SGLD(1e-9, subsample_size=20, mode=mode), **options)
    assert "the mode may be far away" in fitted.settings["shortfall"]
    stopped = cm.fit(
        model,
        logistic_data(),
        method=SGLD(1e-9, subsample_size=20, mode=mode),
        callbacks=[lambda *seen: True],
        **options,
    )
    assert "shortfall" not in stopped.settings, "the user has ended it"
    at_start = ModeSearch(max_iterations=0)
    fitted = cm.fit(model, logistic_data(), method=SGLD(1e-9, subsample_size=20, mode=at_start), **options)
    assert "shortfall" not in fitted.settings


def test_a_relative_tolerance_ends_the_search_wherever_coordinates_are_large(key):
    """The authors' rule: 10 is far from the mode, but an update of 1e-3 is a small share of it."""
    problem, mean = gaussian_problem()
    far = dataclasses.replace(problem, initial_positions={"theta": np.full((1, DIM), 20.0)})
    search = ModeSearch(subsample_size=NUM_ROWS, tolerance=1e-4, max_iterations=100_000)
    found = run(SGLD(mode=search), far, key, num_steps=100_000)
    np.testing.assert_allclose(found.state.position["theta"], mean, atol=0.1)
    early = run(SGLD(mode=dataclasses.replace(search, is_relative=True)), far, key, num_steps=100_000)
    assert early.reason == "converged"
    assert early.num_steps == 1


@pytest.mark.statistical
@pytest.mark.parametrize("make", [SGLD, SGHMC])
def test_in_whitened_coordinates_the_law_is_that_of_a_round_target(key, make):
    """With L = I / sqrt(PRECISION) the same steps as by hand, whose units are those of the position."""
    problem, _ = gaussian_problem()
    scale = np.eye(DIM) / np.sqrt(PRECISION)
    step = {"step_size": 0.1} if make is SGLD else {"step_size": 0.3, "friction": 0.5, "num_leapfrog": 5}
    whitened = sample(make(**step, subsample_size=10, mode=AT_THE_MODE, scale=scale), problem, key)
    by_hand = {"step_size": 0.1 / PRECISION} if make is SGLD else {
        "step_size": 0.3 / np.sqrt(PRECISION), "friction": 0.5 * np.sqrt(PRECISION), "num_leapfrog": 5
    }  # fmt: skip
    plain = sample(make(**by_hand, subsample_size=10, mode=AT_THE_MODE), problem, key)
    np.testing.assert_allclose(
        whitened.history.position["theta"], plain.history.position["theta"], rtol=1e-8, atol=1e-8
    )
