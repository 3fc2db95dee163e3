"""Rows at weight zero make room for rows that are missed."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data import rows as rows_module
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.driver.run import run
from coreset_mcmc.methods.least_squares import exchange
from coreset_mcmc.methods.least_squares.equations import Window, values_at
from coreset_mcmc.methods.least_squares.exchange import exchange_rows
from coreset_mcmc.methods.least_squares.state import Phase
from coreset_mcmc.methods.sums import full_data_sums
from coreset_mcmc.posterior.problem import make_problem, starting_positions

pytestmark = pytest.mark.full

SIZE, NUM_DRAWS = 400, 200
PLAIN = cm.LeastSquares(gaussian_term=False)
ONE_KIND = np.zeros(NUM_DRAWS, bool)


@pytest.fixture
def one_sided():
    """A logistic intercept whose coreset has positives only: every negative row is missed."""
    rng = np.random.default_rng(0)
    data = {"x": np.zeros((SIZE, 1)), "y": (np.arange(SIZE) % 4 == 0).astype(float)}
    model = cm.models.logistic_regression(1)
    chosen = SelectedRows(np.arange(0, 80, 4), np.where(np.arange(20) < 8, 0.0, 8.0))
    problem = make_problem(model, to_rows(data), chosen, starting_positions(model, jax.random.key(0), 2))
    positions = {"beta": rng.normal([-1.1, 0.0], [0.3, 1.0], size=(NUM_DRAWS, 2))}
    values = values_at(model, positions, problem.rows)
    window = Window(values, np.asarray(full_data_sums(model, positions, problem.passes.in_programs()).total))
    return problem, window, positions


def weights_of(problem):
    return np.asarray(problem.initial_weights)


def exchanged(one_sided, seed=0, is_second=ONE_KIND):
    problem, window, positions = one_sided
    return exchange_rows(jax.random.key(seed), problem, weights_of(problem), window, positions, is_second)


def test_what_is_missed_comes_in(one_sided):
    """Of five drawn rows, some of which may be there already, most are negative: 0.3 of the chance is uniform."""
    made = exchanged(one_sided)
    problem = one_sided[0]
    is_new = np.asarray(made.indices) != np.asarray(problem.indices)
    assert 3 <= is_new.sum() <= 5, "a quarter of twenty rows"
    assert np.asarray(made.rows["y"])[is_new].sum() <= 1


def test_rows_with_weight_stay_and_none_is_there_twice(one_sided):
    problem = one_sided[0]
    has_weight = np.asarray(problem.initial_weights) > 0
    for seed in range(20):
        indices = np.asarray(exchanged(one_sided, seed).indices)
        np.testing.assert_array_equal(indices[has_weight], np.asarray(problem.indices)[has_weight])
        assert len(set(indices)) == len(indices)


def test_the_window_is_that_of_the_new_rows(one_sided):
    problem, window, positions = one_sided
    made = exchanged(one_sided)
    expected = values_at(problem.model, positions, problem.data.take(made.indices))
    np.testing.assert_allclose(made.window.values, expected, atol=1e-12)
    np.testing.assert_allclose(made.window.totals, window.totals, atol=1e-9)
    weights = weights_of(problem)
    np.testing.assert_allclose(made.window.values @ weights, window.values @ weights, atol=1e-9)


def test_a_few_candidates_stand_for_very_many_rows(one_sided, monkeypatch):
    """They are those of the resident sample, and keep the numbers that they have among all rows."""
    monkeypatch.setattr(rows_module, "MOST_RESIDENT_ROWS", 100)
    problem = one_sided[0]
    made = exchanged(one_sided)
    is_new = made.indices != np.asarray(problem.indices)
    assert is_new.any()
    assert set(made.indices[is_new]) <= set(problem.passes.resident.indices)
    assert len(problem.passes.resident.indices) == 100
    np.testing.assert_array_equal(made.rows["y"], problem.data.take(made.indices)["y"])
    assert made.num_evaluations == exchange.NUM_EXCHANGE_DRAWS * 100 + made.window.values.size


def test_draws_of_two_posteriors_are_centred_each_for_itself(one_sided):
    """Old draws centred with the old, new with the new; equations that say nothing go on saying nothing."""
    problem, window, positions = one_sided
    is_second = np.arange(NUM_DRAWS) % 3 == 0
    totals = np.where(is_second, 100.0, -7.0) + np.asarray(window.totals)
    blank = np.arange(NUM_DRAWS) < 5
    shifted = Window(
        np.where(blank[:, None], 0.0, window.values + np.where(is_second, 3.0, 0.0)[:, None]),
        np.where(blank, 0.0, totals),
    )
    made = exchanged((problem, shifted, positions), is_second=is_second)
    for side in made.window:
        assert (np.asarray(side)[blank] == 0).all()
        for kind in (is_second & ~blank, ~is_second & ~blank):
            np.testing.assert_allclose(np.asarray(side)[kind].mean(axis=0), 0.0, atol=1e-9)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_rows_that_are_impossible_somewhere_stay_out(one_sided):
    """A row whose log-likelihood is not finite at a draw would spoil every equation."""
    problem, window, positions = one_sided
    model = problem.model

    def log_likelihood(position, batch):
        is_cliff = (batch["y"] == 0) & (position["beta"][0] > -1.0)
        return jnp.where(is_cliff, -jnp.inf, model.log_likelihood(position, batch))

    cliff = replace(problem, model=cm.Model(model.log_prior, log_likelihood, model.initial_position))
    made = exchanged((cliff, window, positions))
    assert np.isfinite(made.window.values).all()
    assert (np.asarray(made.rows["y"]) == 1).all()


def test_nothing_changes_without_idle_rows(one_sided):
    problem, window, positions = one_sided
    made = exchange_rows(jax.random.key(0), problem, np.ones(20), window, positions, ONE_KIND)
    np.testing.assert_array_equal(made.indices, problem.indices)


def test_training_needs_fewer_rows_with_it(monkeypatch):
    """Fewer rows than a quadratic in six parameters has coefficients (27): random rows leave whole tenths of a nat.

    The broken twin never exchanges. Medians of three seeds, whose estimates differ by a factor of ten.
    """
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3_000, 5))
    data = {"x": x, "y": rng.poisson(np.log1p(np.exp(x @ np.array([1.0, -1.0, 0.5, 0.0, 0.3]) + 1.0))).astype(float)}
    options = {"coreset_size": 20, "draws": 200, "tune": 50, "chains": 2, "progressbar": False, "method": PLAIN}

    def median_estimate():
        fits = [cm.fit(cm.models.poisson_regression(5), data, random_seed=seed, **options) for seed in range(3)]
        return np.median([fit.kl_estimate for fit in fits])

    with_exchange = median_estimate()
    monkeypatch.setattr(exchange, "exchange_rows", _nothing)
    assert with_exchange < 0.5 * median_estimate()


def _nothing(key, problem, weights, window, positions, is_second, **_):
    return exchange.Exchanged(problem.indices, problem.rows, window, 0)


def test_rows_of_the_best_weights_stay(seed):
    """Beside a Gaussian term rows are exchanged several times at once; training may still come back to the best."""
    rng = np.random.default_rng(seed)
    x = rng.standard_t(3, size=(800, 9))
    data = {"x": x, "y": (rng.random(800) < 1.0 / (1.0 + np.exp(2.0 - x @ np.full(9, 0.4)))).astype(float)}
    model = cm.models.logistic_regression(9)
    method = cm.LeastSquares(num_draws=120, num_chains=2, num_rounds=6, tolerance=1e-9, gaussian_term=True)
    chosen = cm.selection.Uniform().select(rng, data, 800, 24)
    problem = make_problem(model, to_rows(data), chosen, starting_positions(model, jax.random.key(0), 2))
    seen = []

    def look(event):
        state = event.state
        if np.isfinite(state.best_estimate):
            seen.append(dict(zip(state.indices.tolist(), state.best_weights.tolist(), strict=True)))
        return False

    run(method, problem, jax.random.key(seed), num_steps=method.max_steps, callbacks=[look])
    heavy = [{row: weight for row, weight in best.items() if weight > 0} for best in seen]
    assert len({tuple(best) for best in seen}) > 1, "rows were exchanged"
    changes = [(before, after) for before, after in pairwise(heavy) if before != after]
    for before, after in changes:
        assert set(after.values()) != set(before.values()), "the same weights stand for other rows"


def test_a_run_goes_on_from_before_an_exchange(tmp_path):
    """Stopped between a round and the exchange that follows, and resumed from a file: not a bit differs."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 5))
    data = {"x": x, "y": rng.poisson(1.0, size=600).astype(float)}
    model, method = cm.models.poisson_regression(5), cm.LeastSquares(num_draws=80, num_chains=2, num_rounds=4)
    chosen = cm.selection.Uniform().select(rng, data, 600, 12)

    def unknown_rows():
        """Rows that have been fitted remember their mode, which takes fewer steps to find."""
        return make_problem(model, to_rows(data), chosen, starting_positions(model, jax.random.key(0), 2))

    whole = run(method, unknown_rows(), jax.random.key(1), num_steps=method.max_steps)
    problem = unknown_rows()
    saved = {"checkpoint": cm.Checkpoint(tmp_path / "training.npz"), "num_steps": method.max_steps}

    def is_before(event):
        return int(event.state.phase) == Phase.EXCHANGE

    stopped = run(method, problem, jax.random.key(1), callbacks=[is_before], **saved)
    assert stopped.reason == "stopped by a callback"
    resumed = run(method, problem, jax.random.key(1), **saved)
    assert resumed.num_steps == whole.num_steps > stopped.num_steps
    for one, other in zip(jax.tree.leaves(resumed.state), jax.tree.leaves(whole.state), strict=True):
        np.testing.assert_array_equal(one, other)
