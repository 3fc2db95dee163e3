"""What a window says about the weights tried: each rule of the training alone, on windows made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import get_type_hints

import jax
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.methods.least_squares.equations import (
    MOST_DAMPING,
    Measured,
    Window,
    alternate_draws,
    half_variance,
    without_nonfinite,
)
from coreset_mcmc.methods.least_squares.expansion import unknown_expansion
from coreset_mcmc.methods.least_squares.judgement import (
    ASTRAY,
    LEAST_DAMPING,
    MAX_POOR_ROUNDS_FAR,
    MAX_POOR_ROUNDS_NEAR,
    NUM_SHAPING_ROUNDS,
    Judgement,
    judge,
)
from coreset_mcmc.methods.least_squares.state import LeastSquaresState
from coreset_mcmc.posterior.problem import make_problem, starting_positions

NUM_DRAWS, NUM_ROUNDS, TOLERANCE = 8, 20, 0.01


def state(**changes) -> LeastSquaresState:
    """After the first judged round, with weights to try that are not the best ones."""
    model, rows = cm.models.gaussian_location(1), np.zeros((5, 1))
    selected = SelectedRows(np.arange(3), np.ones(3))
    problem = make_problem(model, to_rows(rows), selected, starting_positions(model, jax.random.key(0), 2))
    first = cm.LeastSquares(num_draws=NUM_DRAWS, num_chains=2, hot_start=False).init(jax.random.key(0), problem)
    later = first._replace(
        weights=np.array([0.0, 1.0, 1.0]), best_estimate=np.array(2.0), round=np.array(NUM_SHAPING_ROUNDS + 1)
    )
    return later._replace(**{name: np.asarray(value) for name, value in changes.items()})


def measured(estimate: float, noise: float = 0.0) -> Measured:
    """A window whose residual has half the variance asked for, whatever the weights."""
    signs = np.where(np.arange(NUM_DRAWS) % 2 == 0, 1.0, -1.0)
    totals = signs * np.sqrt(2 * estimate * (NUM_DRAWS - 1) / NUM_DRAWS)
    return Measured(Window(np.zeros((NUM_DRAWS, 3)), totals), noise, 0)


def judged(before: LeastSquaresState, window: Measured, *, may_exchange: bool = False, **options) -> Judgement:
    return judge(before, window, tolerance=TOLERANCE, num_rounds=NUM_ROUNDS, may_exchange=may_exchange, **options)


def flags(found: Judgement) -> set[str]:
    """What is true of a round."""
    return {name for name in ("is_best", "is_over", "is_exchanging", "is_solving") if getattr(found, name)}


def test_better_weights_are_kept_and_the_damping_falls():
    before = state(damping=1e-3)
    found = judged(before, measured(0.5, noise=0.1))
    np.testing.assert_allclose(found.estimate, 0.6)
    np.testing.assert_allclose(found.best_estimate, 0.6)
    np.testing.assert_array_equal(found.best_weights, before.weights)
    np.testing.assert_allclose(found.damping, 1e-4)
    assert flags(found) == {"is_best", "is_solving"}
    assert found.num_poor == 0


def test_worse_weights_are_not_kept_and_the_damping_grows():
    before = state(damping=1e-3, num_poor=1)
    found = judged(before, measured(3.0))
    np.testing.assert_array_equal(found.best_weights, before.best_weights)
    np.testing.assert_allclose(found.damping, 0.1)
    assert found.best_estimate == 2.0
    assert flags(found) == {"is_solving"}
    assert found.num_poor == 2


@pytest.mark.parametrize(
    ("damping", "estimate", "expected"), [(LEAST_DAMPING, 0.5, LEAST_DAMPING), (50.0, 3.0, MOST_DAMPING)]
)
def test_damping_stays_within_its_bounds(damping, estimate, expected):
    assert judged(state(damping=damping), measured(estimate)).damping == expected


@pytest.mark.parametrize(("best", "estimate", "is_poor"), [(2.0, 1.9, False), (0.5, 0.45, True), (0.5, 0.3, False)])
def test_near_the_posterior_a_little_better_is_poor(best, estimate, is_poor):
    """The estimate still counts as the best."""
    found = judged(state(best_estimate=best), measured(estimate))
    assert found.is_best
    assert bool(found.num_poor) == is_poor


@pytest.mark.parametrize(("best", "limit"), [(0.5, MAX_POOR_ROUNDS_NEAR), (2.0, MAX_POOR_ROUNDS_FAR)])
def test_poor_rounds_in_a_row_end_training(best, limit):
    for num_poor in range(limit):
        found = judged(state(best_estimate=best, num_poor=num_poor), measured(5.0))
        assert found.is_over == (num_poor + 1 == limit)
        assert found.is_solving != found.is_over


def test_beside_a_gaussian_term_all_but_stray_weights_are_near():
    """A round of many parameters is dear, and what the term knows is near the posterior already."""
    known = replace(unknown_expansion(1), is_known=np.asarray(True))
    before = state(best_estimate=2.0, num_poor=MAX_POOR_ROUNDS_NEAR - 1)
    assert not judged(before, measured(1.9)).is_over
    assert judged(before._replace(expansion=known), measured(1.9)).is_over
    assert not judged(before._replace(expansion=known), measured(1.5)).is_over
    stray = before._replace(expansion=known, best_estimate=np.array(2 * ASTRAY))
    assert not judged(stray, measured(1.9 * ASTRAY)).is_over


def test_a_good_estimate_or_the_last_round_ends_training():
    assert judged(state(), measured(0.9 * TOLERANCE)).is_over
    last = NUM_ROUNDS + NUM_SHAPING_ROUNDS - 1
    assert judged(state(round=last), measured(0.5)).is_over
    assert not judged(state(round=last - 1), measured(0.5)).is_over


@pytest.mark.parametrize("best", [2 * ASTRAY, np.inf])
def test_far_astray_training_gives_up_if_another_way_is_left(best):
    far = measured(1.5 * ASTRAY)
    assert judged(state(best_estimate=best), far, may_give_up=True).is_over
    assert not judged(state(best_estimate=best), far).is_over
    assert not judged(state(best_estimate=best), measured(0.9 * ASTRAY), may_give_up=True).is_over
    assert not judged(state(best_estimate=best, round=NUM_SHAPING_ROUNDS), far, may_give_up=True).is_over


def test_rounds_that_shape_the_kernel_judge_nothing():
    """Their chains go on, but nothing else changes."""
    before = state(round=0, best_estimate=np.inf, damping=1e-3)
    found = judged(before, measured(0.9 * TOLERANCE), may_exchange=True)
    assert flags(found) == {"is_best"}
    assert (found.best_estimate, found.damping, found.num_poor) == (np.inf, 1e-3, 0)


def test_the_first_window_of_a_hot_start_is_solved_and_judges_nothing():
    before = state(round=0, best_estimate=np.inf, is_first=True)
    found = judged(before, measured(0.9 * TOLERANCE), may_exchange=True)
    assert flags(found) == {"is_solving"}
    assert (found.estimate, found.best_estimate) == (np.inf, np.inf)


def test_rows_are_exchanged_after_a_better_round_that_left_some_without_weight():
    better, worse = measured(0.5), measured(3.0)
    assert flags(judged(state(), better, may_exchange=True)) == {"is_best", "is_exchanging"}
    assert not judged(state(), better).is_exchanging
    assert not judged(state(), worse, may_exchange=True).is_exchanging
    assert not judged(state(weights=np.ones(3)), better, may_exchange=True).is_exchanging
    assert not judged(state(), measured(0.9 * TOLERANCE), may_exchange=True).is_exchanging


@pytest.mark.parametrize("side", ["values", "totals"])
def test_a_window_with_a_nan_is_never_the_best(side):
    window = measured(0.5).window
    sick = window._replace(**{side: getattr(window, side).copy()})
    getattr(sick, side)[0] = np.nan
    found = judged(state(), Measured(sick, 0.0, 0))
    assert flags(found) == {"is_solving"}
    assert (found.num_poor, found.best_estimate) == (1, 2.0)
    whole = without_nonfinite(sick)
    assert whole.totals[0] == 0
    assert (whole.values[0] == 0).all()
    np.testing.assert_array_equal(whole.totals[1:], window.totals[1:])


def test_everything_is_a_plain_value():
    """Choices are made in Python: nothing of a judgement waits for a compiled program."""
    found = judged(state(), measured(0.5))
    for name, kind in get_type_hints(Judgement).items():
        assert type(getattr(found, name)) is kind, name


def test_half_variance_is_that_of_the_residual(rng):
    values, totals, weights = rng.normal(size=(9, 4)), rng.normal(size=9), rng.random(4)
    expected = 0.5 * np.var(totals - values @ weights, ddof=1)
    np.testing.assert_allclose(half_variance(Window(values, totals), weights), expected)


def test_alternate_draws_are_whole_steps_of_all_chains():
    np.testing.assert_array_equal(alternate_draws(8, 2), [False, False, True, True, False, False, True, True])
