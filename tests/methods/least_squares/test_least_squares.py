"""Least squares on windows of draws: exact coresets, known posteriors, hot and cold starts, and recovery."""

from __future__ import annotations

import warnings
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc import InputError, LeastSquares, Model, RunError
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.selection import Given, SelectedRows, Uniform
from coreset_mcmc.diagnostics.metrics import two_moment_kl, two_moment_kl_floor
from coreset_mcmc.driver.run import run
from coreset_mcmc.methods.least_squares import rounds
from coreset_mcmc.methods.least_squares.equations import MOST_DAMPING
from coreset_mcmc.methods.least_squares.state import Phase
from coreset_mcmc.models.gaussian_location import coreset_kl, coreset_posterior
from coreset_mcmc.posterior.problem import Problem, make_problem, starting_positions
from tests.helpers.problems import logistic_data

DIM, SIZE, CORESET_SIZE = 3, 500, 40
HOT = LeastSquares(num_draws=80, num_chains=2, tolerance=1e-6, gaussian_term=False)
COLD = replace(HOT, hot_start=False)


def gaussian_problem(seed: int = 0, coreset_size: int = CORESET_SIZE) -> Problem:
    rng = np.random.default_rng(seed)
    data = rng.normal(1.0, 1.0, size=(SIZE, DIM))
    model = cm.models.gaussian_location(DIM)
    selected = Uniform().select(rng, data, SIZE, coreset_size)
    return make_problem(model, to_rows(data), selected, starting_positions(model, jax.random.key(seed), 4))


def train(method: LeastSquares, problem: Problem, seed: int = 0):
    return run(method, problem, jax.random.key(seed), num_steps=method.max_steps)


@pytest.mark.full
@pytest.mark.parametrize("method", [HOT, COLD], ids=["hot", "cold"])
def test_gaussian_posterior_is_found(method, seed):
    """The closed-form KL ends at rounding; uniform weights are whole nats away."""
    problem = gaussian_problem(seed)
    training = train(method, problem, seed)
    data = problem.data.source.whole()
    start = float(coreset_kl(problem.rows, problem.initial_weights, data))
    end = float(coreset_kl(training.state.rows, training.state.best_weights, data))
    assert start > 0.1
    assert end < 1e-6
    assert training.reason == "converged"
    assert training.num_steps < 20


@pytest.mark.full
def test_an_exact_coreset_is_found():
    """Distinct rows with multiplicities, independent as functions: the multiplicities are the one solution."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.normal(size=(6, 2)), np.array([0, 1, 0, 1, 1, 0])])
    multiplicities = np.array([10, 20, 30, 25, 15, 40])
    table = np.repeat(rows, multiplicities, axis=0)
    first = np.concatenate([[0], np.cumsum(multiplicities)[:-1]])
    data = {"x": table[:, :2], "y": table[:, 2]}
    model = cm.models.logistic_regression(2)
    selected = Given(first).select(rng, data, len(table), None)
    problem = make_problem(model, to_rows(data), selected, starting_positions(model, jax.random.key(0), 4))
    training = train(replace(HOT, tolerance=1e-14, chooses_rows=False), problem)
    np.testing.assert_allclose(training.state.best_weights, multiplicities, rtol=1e-4)


@pytest.mark.full
def test_estimate_is_that_of_fresh_draws():
    """On the Gaussian model KL is known: the reported estimate of a poor coreset agrees with it.

    With too few rows for an exact coreset the estimate is half the variance over 400 draws of a quadratic, whose
    relative error is below 0.5 with a wide margin at this size of KL.
    """
    problem = gaussian_problem(coreset_size=3)
    training = train(LeastSquares(num_draws=400, num_chains=4, gaussian_term=False), problem)
    exact = float(coreset_kl(training.state.rows, training.state.best_weights, problem.data.source.whole()))
    reported = float(training.state.best_estimate)
    assert exact > 0.01
    assert abs(np.log(reported / exact)) < 1.0


@pytest.mark.full
def test_a_model_without_gradients_is_trained():
    """A black box: no hot start, no Newton step, and the same posterior."""
    data = logistic_data(size=2_000)
    model = cm.models.logistic_regression(2)
    black_box = Model(
        model.log_prior, model.log_likelihood, model.initial_position, differentiable=False, name="black box"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit = cm.fit(black_box, data, coreset_size=60, draws=500, tune=50, random_seed=1, progressbar=False)
        full = cm.fit(model, data, method=cm.Laplace(), draws=1_000, tune=0, random_seed=2, progressbar=False)
    assert np.isnan(fit.tree["training"]["newton_decrement"]).all()
    reference = full.posterior["beta"].to_numpy().reshape(-1, 3)
    draws = fit.posterior["beta"].to_numpy()
    floor = two_moment_kl_floor(3, float(fit.summary(round_to="none")["ess_bulk"].min()))
    assert two_moment_kl(draws, reference.mean(axis=0), np.cov(reference, rowvar=False)) < 0.05 + 4 * floor
    assert fit.kl_estimate < 0.05


@pytest.mark.full
def test_no_mode_goes_on_without():
    """A posterior that rises for ever has no Laplace approximation; the chains know what to do."""

    def log_prior(position):
        """Half a Cauchy in the log of a scale: proper, but its density in the scale has no peak."""
        return -0.5 * position["mean"] ** 2 + position["log_scale"] - jnp.log1p(jnp.exp(2 * position["log_scale"]))

    def log_likelihood(position, batch):
        return -0.5 * (batch - position["mean"]) ** 2 - 0.5 * jnp.exp(-position["log_scale"]) * 0.0

    data = np.random.default_rng(0).normal(size=300)
    model = Model(log_prior, log_likelihood, {"mean": np.array(0.0), "log_scale": np.array(-30.0)}, name="flat")
    selected = Uniform().select(np.random.default_rng(0), data, 300, 20)
    problem = make_problem(model, to_rows(data), selected, starting_positions(model, jax.random.key(0), 4))
    training = train(replace(HOT, max_newton_steps=2), problem)
    assert float(training.state.best_estimate) < 1e-6


@pytest.mark.full
def test_failed_rounds_are_undone():
    """Weights that are worse are not kept: the best estimate never rises, and damping grows after a failure."""
    problem = gaussian_problem(coreset_size=4)
    training = train(
        LeastSquares(num_draws=80, num_chains=2, tolerance=1e-9, chooses_rows=False, gaussian_term=False), problem
    )
    best, tried, damping = training.history.best_estimate, training.history.kl_estimate, training.history.damping
    rounds = np.isfinite(tried)
    assert (np.diff(best[rounds]) <= 0).all()
    worse = np.flatnonzero(rounds[1:] & (tried[1:] > best[:-1])) + 1
    assert worse.size
    assert ((damping[worse] > damping[worse - 1]) | (damping[worse] == MOST_DAMPING)).all()
    kept = float(coreset_kl(problem.rows, training.state.best_weights, problem.data.source.whole()))
    assert kept < float(coreset_kl(problem.rows, problem.initial_weights, problem.data.source.whole()))


@pytest.mark.full
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_nothing_usable_is_an_error():
    """Log-likelihoods that are NaN away from the start leave no estimate to go by."""

    def log_likelihood(position, batch):
        return jnp.where(jnp.all(position["theta"] == 0.0), 0.0, jnp.nan) * batch[:, 0]

    problem = gaussian_problem()
    broken = replace(
        problem,
        model=Model(problem.model.log_prior, log_likelihood, {"theta": np.zeros(DIM)}),
        initial_weights=jnp.zeros(CORESET_SIZE),
    )
    with pytest.raises(RunError, match="least-squares, step"):
        train(COLD, broken)


@pytest.mark.full
def test_where_trajectories_fail_slices_go_on(monkeypatch):
    """If no acceptance rate is good enough slice sampling judges the same weights, and the posterior is found."""
    monkeypatch.setattr(rounds, "LEAST_ACCEPTANCE", 1.5)
    problem, phases = gaussian_problem(), []
    training = run(
        HOT, problem, jax.random.key(0), num_steps=HOT.max_steps,
        callbacks=[lambda event: phases.append(int(event.state.phase))],
    )  # fmt: skip
    assert phases.index(Phase.ROUNDS) < phases.index(Phase.COLD_ROUNDS)
    assert float(coreset_kl(training.state.rows, training.state.best_weights, problem.data.source.whole())) < 1e-6


def test_the_sampler_goes_on_from_the_best_weights():
    problem = gaussian_problem()
    training = train(HOT, problem)
    trained = HOT.finish(training.state, problem, kernel=None, num_chains=3)
    assert isinstance(trained.coreset, SelectedRows)
    np.testing.assert_array_equal(trained.coreset.weights, training.state.best_weights)
    draws = run(trained.sampler, trained.problem, jax.random.key(1), num_steps=400).history.position["theta"]
    mean, variance = coreset_posterior(problem.data.source.whole(), jnp.ones(SIZE))
    floor = two_moment_kl_floor(DIM, 0.2 * 1_200)
    assert two_moment_kl(np.swapaxes(draws, 0, 1), mean, variance * np.eye(DIM)) < 5 * floor


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_draws": 10, "num_chains": 4}, "a multiple of the 4 chains"),
        ({"num_draws": 2, "num_chains": 1}, "num_draws"),
        ({"num_chains": 0}, "num_chains"),
        ({"discard": 1.0}, "discard"),
        ({"tolerance": 0.0}, "tolerance"),
        ({"num_rounds": 0}, "num_rounds"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        LeastSquares(**options)
