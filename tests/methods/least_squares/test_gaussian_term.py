"""Weighted rows beside a Gaussian term: derivatives that match, curvature that stays below, the right posteriors."""

from __future__ import annotations

import warnings
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.selection import Uniform
from coreset_mcmc.fitting import pipeline
from coreset_mcmc.fitting.rescue import sample_by_trees
from coreset_mcmc.methods.least_squares import curvature as curvature_module
from coreset_mcmc.methods.least_squares.curvature import MOST_CURVATURE, RowCurvature, row_curvatures, solve_within
from coreset_mcmc.methods.least_squares.equations import Window, row_values
from coreset_mcmc.methods.least_squares.expansion import expansion_at, weighted_derivatives
from coreset_mcmc.methods.least_squares.nonnegative import NormalEquations, nonnegative_ridge
from coreset_mcmc.methods.least_squares.rounds import is_beaten_by_none
from coreset_mcmc.methods.least_squares.slope import LARGEST
from coreset_mcmc.methods.sampling import SamplingProblem
from coreset_mcmc.methods.tuned_sampling import TunedSampling
from coreset_mcmc.posterior.by_passes import flat_position, posterior_of
from coreset_mcmc.posterior.newton import NewtonSearch, approximation_at
from coreset_mcmc.posterior.problem import make_problem, starting_positions
from coreset_mcmc.posterior.target import CoresetTarget

SIZE, NUM_FEATURES, NUM_CHOSEN = 600, 7, 30
DIM = NUM_FEATURES + 1


def logistic_rows(seed=0, size=SIZE, num_features=NUM_FEATURES):
    rng = np.random.default_rng(seed)
    x = rng.standard_t(5, size=(size, num_features))
    chance = 1.0 / (1.0 + np.exp(1.5 - 0.3 * x.sum(axis=1)))
    return {"x": x, "y": (rng.random(size) < chance).astype(float)}


@pytest.fixture(scope="module")
def at_mode():
    """A logistic regression, thirty of its rows, and the expansion of all at the mode."""
    with jax.enable_x64(True):
        data, model = logistic_rows(), cm.models.logistic_regression(NUM_FEATURES)
        chosen = Uniform().select(np.random.default_rng(0), data, SIZE, NUM_CHOSEN)
        problem = make_problem(model, to_rows(data), chosen, starting_positions(model, jax.random.key(0), 2))
        search = NewtonSearch(tolerance=1e-6)
        found, _ = posterior_of(problem).find_mode(search, flat_position(problem.position))
        yield problem, expansion_at(problem, found, np.asarray(approximation_at(found).scale_factor))


def log_likelihood(problem, rows, flat):
    return np.asarray(problem.model.log_likelihood({"beta": jnp.asarray(flat)}, rows))


def test_the_expansion_is_that_of_the_likelihood_alone(at_mode):
    """By hand for a logistic regression: X'(y - p) and X'diag(p (1 - p)) X, without the prior."""
    problem, expansion = at_mode
    data = problem.data.source.whole()
    design = np.column_stack([np.ones(SIZE), data["x"]])
    p = 1.0 / (1.0 + np.exp(-design @ expansion.centre))
    np.testing.assert_allclose(expansion.gradient, design.T @ (data["y"] - p), atol=1e-8)
    curvature = (design * (p * (1 - p))[:, None]).T @ design
    np.testing.assert_allclose(expansion.curvature, curvature, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(expansion.whitening.T @ curvature @ expansion.whitening, np.eye(DIM), atol=1e-9)


def test_rows_and_term_have_the_derivatives_of_all_rows(at_mode, rng):
    """To second order at the centre, for any weights: what is left is of third order."""
    problem, expansion = at_mode
    weights = rng.exponential(size=NUM_CHOSEN)
    term = expansion.term(problem, problem.rows, weights)
    gradient, curvature = weighted_derivatives(problem, problem.rows, weights, expansion.centre)
    np.testing.assert_allclose(gradient + term.slope, expansion.gradient, atol=1e-9)
    np.testing.assert_allclose(curvature + term.precision, expansion.curvature, atol=1e-9)
    direction, data = rng.normal(size=DIM), problem.data.source.whole()

    def difference(t):
        at = expansion.centre + t * direction
        coreset = weights @ log_likelihood(problem, problem.rows, at) + term.at(at[None])[0]
        return log_likelihood(problem, data, at).sum() - coreset

    small, large = (difference(t) - difference(0.0) for t in (0.01, 0.02))
    assert 6.0 < large / small < 10.0, "eight for a third power, four for a second"


def test_windows_hold_remainders(at_mode, rng):
    """Of a row: its log-likelihood without the expansion by finite differences' closed form, centred over draws."""
    problem, expansion = at_mode
    flat = expansion.centre + 0.3 * rng.normal(size=(9, DIM))
    found = np.asarray(row_values(problem.model, jnp.asarray(expansion.centre), {"beta": flat}, problem.rows))
    rows = problem.rows
    design = np.column_stack([np.ones(NUM_CHOSEN), rows["x"]])
    p, y = 1.0 / (1.0 + np.exp(-design @ expansion.centre)), np.asarray(rows["y"])
    delta = (flat - expansion.centre) @ design.T
    here = np.array([log_likelihood(problem, rows, at) for at in flat])
    expected = here - log_likelihood(problem, rows, expansion.centre) - (y - p) * delta + 0.5 * p * (1 - p) * delta**2
    np.testing.assert_allclose(found, expected - expected.mean(axis=0), atol=1e-12)


def test_curvature_of_rows_along_a_direction(at_mode, rng):
    problem, expansion = at_mode
    directions = rng.normal(size=(3, DIM))
    found = row_curvatures(
        problem.model, posterior_of(problem).unravel, jnp.asarray(expansion.centre), directions, problem.rows
    )
    design = np.column_stack([np.ones(NUM_CHOSEN), problem.rows["x"]])
    p = 1.0 / (1.0 + np.exp(-design @ expansion.centre))
    np.testing.assert_allclose(found, p * (1 - p) * (directions @ design.T) ** 2, rtol=1e-9)


NONE_WHOLE = np.zeros(NUM_CHOSEN, bool)
NONE_KNOWN = np.zeros((64, DIM))


def equations_of(problem, expansion, rng, num_draws=120):
    flat = expansion.centre + rng.normal(size=(num_draws, DIM)) @ expansion.whitening.T
    centre = jnp.asarray(expansion.centre)
    values = np.asarray(row_values(problem.model, centre, {"beta": flat}, problem.rows))
    everything = np.asarray(row_values(problem.model, centre, {"beta": flat}, problem.data.source.whole()))
    return values, everything.sum(axis=1)


def test_solutions_curve_no_more_than_all_rows(at_mode, rng):
    """Without the limit some direction overshoots; with it P is positive definite and the fit is hardly worse."""
    problem, expansion = at_mode
    values, totals = equations_of(problem, expansion, rng)
    curvature, anchor = RowCurvature(problem, expansion, NONE_WHOLE, NONE_KNOWN), np.ones(NUM_CHOSEN)
    free = nonnegative_ridge(NormalEquations.of(values, totals), anchor, 1e-6).weights
    assert curvature.largest(free) > 1.2, "otherwise the limit has nothing to do"
    within = solve_within(values, totals, anchor, 1e-6, curvature).weights
    assert (within >= 0).all()
    assert curvature.largest(within) <= MOST_CURVATURE + 1e-9
    term = expansion.term(problem, problem.rows, within)
    assert np.linalg.eigvalsh(term.precision).min() > 0
    scaled = curvature.scaled(free)
    left = [np.mean((totals - values @ weights) ** 2) for weights in (within, scaled)]
    assert left[0] < left[1], "limits in the solve are better than scaling afterwards"
    assert left[0] < 0.7 * np.mean(totals**2)


def test_directions_of_one_solve_limit_the_next(at_mode, rng, monkeypatch):
    """Of other draws: the same quality with fewer solves, and any direction of unit length is a valid limit."""
    problem, expansion = at_mode
    first, second = (equations_of(problem, expansion, rng) for _ in range(2))
    num_solves = []
    monkeypatch.setattr(
        curvature_module,
        "nonnegative_ridge",
        lambda *args, **options: num_solves.append(1) or nonnegative_ridge(*args, **options),
    )

    def solved(equations, known):
        num_solves.clear()
        made = solve_within(*equations, np.ones(NUM_CHOSEN), 1e-6, RowCurvature(problem, expansion, NONE_WHOLE, known))
        return made, len(num_solves), np.mean((equations[1] - equations[0] @ made.weights) ** 2)

    known = solved(first, NONE_KNOWN)[0].known
    lengths = np.linalg.norm(known, axis=1)
    np.testing.assert_allclose(lengths[lengths > 0], 1.0, rtol=1e-9)
    (_, from_nothing, alone), (with_them, from_known, together) = solved(second, NONE_KNOWN), solved(second, known)
    assert from_known < from_nothing
    assert together < 1.1 * alone
    assert RowCurvature(problem, expansion, NONE_WHOLE, known).largest(with_them.weights) <= MOST_CURVATURE + 1e-9


def test_a_rough_solve_is_scaled_to_what_is_allowed(at_mode, rng):
    problem, expansion = at_mode
    values, totals = equations_of(problem, expansion, rng)
    rough = RowCurvature(problem, expansion, NONE_WHOLE, NONE_KNOWN, is_rough=True)
    within = solve_within(values, totals, np.ones(NUM_CHOSEN), 1e-6, rough).weights
    assert rough.largest(within) <= MOST_CURVATURE + 1e-9
    assert np.mean((totals - values @ within) ** 2) < np.mean(totals**2)


def test_whole_rows_count_once_and_leave_room_for_the_others(at_mode, rng):
    """Their weights are one, also where the others are scaled, and P stays positive definite."""
    problem, expansion = at_mode
    values, totals = equations_of(problem, expansion, rng)
    is_whole = np.arange(NUM_CHOSEN) % 7 == 0
    curvature, anchor = RowCurvature(problem, expansion, is_whole, NONE_KNOWN), np.ones(NUM_CHOSEN)
    within = solve_within(values, totals, anchor, 1e-6, curvature).weights
    np.testing.assert_array_equal(within[is_whole], 1.0)
    assert np.any(within[~is_whole] == 0)
    assert np.any(within[~is_whole] > 1)
    assert np.linalg.eigvalsh(expansion.term(problem, problem.rows, within).precision).min() > 0
    scaled = curvature.scaled(100.0 * within)
    np.testing.assert_array_equal(scaled[is_whole], 100.0)
    assert curvature.largest(scaled) <= MOST_CURVATURE + 1e-9


def test_whole_rows_that_are_all_there_is_leave_nothing(at_mode):
    """Where whole rows are the only ones that read a direction, none is left and nothing overflows."""
    problem, expansion = at_mode
    own = replace(expansion, whitening=expansion.whitening)
    is_whole = np.ones(NUM_CHOSEN, bool)
    alone = weighted_derivatives(problem, problem.rows, np.ones(NUM_CHOSEN), expansion.centre)[1]
    factor = np.linalg.cholesky(np.linalg.inv(alone))
    only = RowCurvature(problem, replace(own, curvature=alone, whitening=factor), is_whole, NONE_KNOWN)
    assert np.all(np.isfinite(only.whitening))
    assert only.largest(np.ones(NUM_CHOSEN)) == 0.0


def test_a_curvature_that_is_not_a_number_is_no_solution(at_mode, rng, monkeypatch):
    problem, expansion = at_mode
    values, totals = equations_of(problem, expansion, rng)
    monkeypatch.setattr(curvature_module.RowCurvature, "of", lambda self, weights: np.full((DIM, DIM), np.nan))
    curvature = RowCurvature(problem, expansion, NONE_WHOLE, NONE_KNOWN)
    assert np.isnan(solve_within(values, totals, np.ones(NUM_CHOSEN), 1e-6, curvature).weights).all()
    assert curvature.largest(np.ones(NUM_CHOSEN)) == np.inf
    np.testing.assert_array_equal(curvature.scaled(np.ones(NUM_CHOSEN)), 0.0)


def test_negative_curvature_of_the_likelihood_counts_as_flat():
    """Student-t errors, whose rows far out curve upwards: beside the prior there is a mode, and w = 0 is proper."""

    def rows_log_likelihood(position, batch):
        return -2.0 * jnp.log1p((batch - position["mean"][0] - position["mean"][1] ** 2) ** 2)

    model = cm.Model(
        lambda position: -0.5 * 40.0 * jnp.sum(position["mean"] ** 2),
        rows_log_likelihood,
        {"mean": np.zeros(2)},
    )
    data = np.array([3.0, 3.5, 4.0])
    chosen = Uniform().select(np.random.default_rng(0), data, 3, 2)
    problem = make_problem(model, to_rows(data), chosen, starting_positions(model, jax.random.key(0), 2))
    found, _ = posterior_of(problem).find_mode(NewtonSearch(), flat_position(problem.position))
    prior = posterior_of(problem).prior_derivatives(found.position)
    assert np.linalg.eigvalsh(prior.hessian - found.derivatives.hessian).min() < 0, "what is to be tested"
    expansion = expansion_at(problem, found, np.asarray(approximation_at(found).scale_factor))
    assert expansion.is_known
    assert np.linalg.eigvalsh(expansion.curvature).min() > 0


def test_rows_that_explain_less_than_nothing_are_left_out():
    window = Window(np.array([[1.0], [-1.0], [0.0]]), np.array([-1.0, 1.0, 0.0]))
    assert is_beaten_by_none(window, 4.5), "half a nat is left without any row"
    assert not is_beaten_by_none(window, 0.2)
    assert not is_beaten_by_none(window, np.nan)


def quietly(*arguments, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cm.fit(*arguments, progressbar=False, **options)


@pytest.fixture(scope="module")
def fitted():
    """Twelve parameters and twenty of 2 000 rows: by the method's own choice, and without a term."""
    data, model = logistic_rows(1, 2_000, 11), cm.models.logistic_regression(11)
    options = {"coreset_size": 20, "draws": 500, "tune": 100, "random_seed": 5}
    without = quietly(model, data, method=cm.LeastSquares(gaussian_term=False, num_rounds=6), **options)
    return quietly(model, data, **options), without, model, data


def test_few_rows_for_many_parameters_get_a_term(fitted):
    fit, without, _, _ = fitted
    assert fit.has_term
    assert fit.settings["gaussian_term"] == "yes: 20 rows are fewer than the 135 that 12 parameters call for"
    assert without.settings["gaussian_term"] == "no: as asked for"
    assert fit.kl_estimate < 0.1 < without.kl_estimate


def test_its_posterior_is_the_full_one(fitted):
    """Importance weights to the full posterior are nearly equal, and its means and deviations those of exact draws."""
    fit = fitted[0]
    trust = fit.trust(num_coresets=1, sensitivity=False, progressbar=False)
    assert trust.kl_estimate < 0.15
    corrected = quietly_reweighted(fit)
    assert corrected.settings["effective_draws"] > 0.6 * 2_000
    own, right = (made.posterior["beta"].stack(all_draws=("chain", "draw")) for made in (fit, corrected))
    shift = (own.mean("all_draws") - right.mean("all_draws")) / right.std("all_draws")
    assert float(np.abs(shift).max()) < 0.3


def quietly_reweighted(fit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return fit.reweight(progressbar=False)


def test_the_term_is_proper_and_matches(fitted):
    fit, _, model, data = fitted
    coreset = fit.coreset
    assert np.linalg.eigvalsh(coreset.term.precision).min() > 0
    assert coreset.coordinates == tuple(f"beta[{place}]" for place in range(12))
    position = {"beta": jnp.asarray(coreset.term.centre)}
    rows = {name: jnp.asarray(column) for name, column in coreset.columns.items()}

    def of_coreset(at):
        return coreset.weights @ model.log_likelihood(at, rows) + coreset.term.log_density(at)

    def of_all(at):
        return jnp.sum(model.log_likelihood(at, data))

    with jax.enable_x64(True):
        own, full = (jax.hessian(density)(position)["beta"]["beta"] for density in (of_coreset, of_all))
        slope = jax.grad(of_coreset)(position)["beta"] - jax.grad(of_all)(position)["beta"]
    np.testing.assert_allclose(own, full, atol=1e-6)
    moved = np.sqrt(slope @ np.linalg.solve(-full, slope))
    assert 0.0 < moved <= LARGEST, "by so many standard deviations the slope moves the mean"


@pytest.mark.full
def test_it_is_saved_loaded_and_resumed_to_the_same_bits(fitted, tmp_path):
    fit, _, model, data = fitted
    loaded = cm.load(fit.save(tmp_path / "fit.nc"), model=model, data=data)
    np.testing.assert_array_equal(loaded.coreset.term.precision, fit.coreset.term.precision)
    assert loaded.coreset.coordinates == fit.coreset.coordinates
    options = {"coreset_size": 20, "draws": 100, "tune": 100, "random_seed": 5, "checkpoint": tmp_path / "run"}

    first = quietly(model, data, **options)
    (tmp_path / "run" / "sampling.npz").unlink()
    resumed = quietly(model, data, **options)
    np.testing.assert_array_equal(resumed.posterior["beta"], first.posterior["beta"])
    np.testing.assert_array_equal(resumed.coreset.term.precision, first.coreset.term.precision)


@pytest.mark.full
def test_a_poor_term_falls_back(monkeypatch, fitted):
    """Where the estimate with it is not good enough, the same rows are tried without, and the better is kept."""
    _, _, model, data = fitted
    fit = quietly(model, data, coreset_size=60, draws=100, tune=100, random_seed=5, kl_target=1e-9)
    assert fit.settings["gaussian_term"].startswith("yes: with it the estimated KL was")


@pytest.mark.full
def test_a_poor_coreset_without_a_term_gets_one():
    """A level with two outcomes among 600 rows: thirty rows may have none of them, and the effect goes to infinity."""
    rng = np.random.default_rng(0)
    level = np.repeat([0.0, 1.0], [5_400, 600])
    y = (rng.random(6_000) < 0.05).astype(float)
    y[level == 1] = 0.0
    y[-2:] = 1.0
    data, model = {"x": level[:, None], "y": y}, cm.models.logistic_regression(1)
    calls = []
    method = cm.LeastSquares()
    assert method.otherwise(model, {"beta": np.zeros(2)}, 30, has_term=False).gaussian_term is True
    assert method.otherwise(replace(model, differentiable=False), {"beta": np.zeros(2)}, 30, has_term=False) is None
    assert cm.LeastSquares(gaussian_term=False).otherwise(model, {"beta": np.zeros(2)}, 30, has_term=False) is None

    def spoiled(request, reading):
        """The twin without a term is made poor: its estimate is far off."""
        made = pipeline_once(request, reading)
        calls.append(reading.method.gaussian_term)
        return made if made.has_term else replace(made, kl_estimate=50.0)

    pipeline_once = pipeline.fit_once
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pipeline, "fit_once", spoiled)
        fit = quietly(model, data, coreset_size=30, draws=100, tune=50, random_seed=1)
    assert calls == [None, True]
    assert fit.has_term
    assert fit.settings["gaussian_term"].startswith("yes: with it the estimated KL was")
    assert fit.settings["gaussian_term"].endswith("without 50")


def test_forced_where_it_cannot_be():
    model = replace(cm.models.logistic_regression(2), differentiable=False)
    with pytest.raises(cm.InputError, match="gaussian_term"):
        cm.fit(model, logistic_rows(0, 50, 2), coreset_size=10, method=cm.LeastSquares(gaussian_term=True))


@pytest.mark.full
def test_exact_draws_accept_what_rows_and_term_propose(fitted):
    """Without the term the coreset would propose places that all rows refuse."""
    made = fitted[0].exact(draws=30, tune=5, chains=4, progressbar=False)
    assert made.settings["acceptance_rate"] > 0.6


@pytest.mark.full
def test_trees_sample_the_term_too(fitted):
    """NUTS, which takes over where trajectories mix badly, finds the posterior of rows and term."""
    fit, _, model, _ = fitted
    coreset = fit.coreset
    with jax.enable_x64(True):
        rows = {name: jnp.asarray(column) for name, column in coreset.columns.items()}
        target = CoresetTarget(rows, jnp.asarray(coreset.weights), model, jax.tree.map(jnp.asarray, coreset.term))
        starts = {"beta": jnp.asarray(fit.posterior["beta"].to_numpy()[:, -1])}
        sampler, problem = TunedSampling(jnp.eye(12)), SamplingProblem(target, starts)
        made = sample_by_trees(
            jax.random.key(0), sampler, problem, diverges=False, tune=0, draws=250, progressbar=False
        )
    draws = made.history.position["beta"][sampler.num_tuning :].reshape(-1, 12)
    shift = (draws.mean(axis=0) - fit.posterior["beta"].mean(("chain", "draw"))) / draws.std(axis=0)
    assert float(np.abs(shift).max()) < 0.4


@pytest.mark.full
def test_a_kernel_that_samples_rows_and_weights_gets_no_term():
    data = np.random.default_rng(0).normal(size=(200, 3))
    fit = quietly(
        cm.models.gaussian_location(3),
        data,
        coreset_size=10,
        draws=20,
        tune=0,
        kernel=cm.kernels.GaussianAutoregression(0.0),
        random_seed=0,
    )
    assert not fit.has_term
    assert fit.settings["gaussian_term"] == "no: the kernel samples rows and weights"
