"""Non-negative ridge regression: an independent solver, the conditions of optimality, and what is hard for pivoting."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize, nnls

from coreset_mcmc.methods.least_squares import nonnegative
from coreset_mcmc.methods.least_squares.nonnegative import Limits, NormalEquations, nonnegative_ridge


def whole_solution(matrix, response, *arguments, **options):
    return nonnegative_ridge(NormalEquations.of(matrix, response), *arguments, **options)


def solve(*arguments, **options):
    return whole_solution(*arguments, **options).weights


def low_rank_problem(rng, num_rows=60, num_columns=40, rank=8):
    """Columns that nearly depend on each other, as log-likelihoods of rows under draws of a posterior do."""
    decay = np.exp(-np.arange(rank) / 2)[:, None]
    matrix = rng.normal(size=(num_rows, rank)) @ (decay * rng.normal(size=(rank, num_columns)))
    matrix += 1e-3 * rng.normal(size=matrix.shape)
    return matrix, matrix @ rng.exponential(size=num_columns) + 0.1 * rng.normal(size=num_rows)


def by_scipy(matrix, response, anchor, ridge):
    """The same problem with the ridge as further rows."""
    num_rows, num_columns = matrix.shape
    scale = np.sqrt(np.mean(matrix**2, axis=0))
    stacked = np.vstack([matrix / np.sqrt(num_rows), np.sqrt(ridge) * np.diag(scale)])
    target = np.concatenate([response / np.sqrt(num_rows), np.sqrt(ridge) * scale * anchor])
    return nnls(stacked, target, maxiter=50 * num_columns)[0]


@pytest.mark.parametrize("ridge", [1e-8, 1e-3, 1.0])
@pytest.mark.parametrize("shape", [(60, 40), (30, 40)])
def test_agrees_with_scipy(rng, ridge, shape):
    matrix, response = low_rank_problem(rng, *shape)
    anchor = np.full(shape[1], 1.0)
    expected = by_scipy(matrix, response, anchor, ridge)
    np.testing.assert_allclose(solve(matrix, response, anchor, ridge), expected, atol=1e-6 * expected.max())


def test_conditions_of_optimality(rng):
    """Free coordinates have no slope, those at zero would have to be pushed below."""
    matrix, response = low_rank_problem(rng)
    anchor, ridge = rng.exponential(size=40), 1e-4
    weights = np.asarray(solve(matrix, response, anchor, ridge))
    scale = np.sqrt(np.mean(matrix**2, axis=0))
    slope = (matrix @ weights - response) @ matrix / 60 + ridge * scale**2 * (weights - anchor)
    size = np.abs(response @ matrix).max() / 60
    assert (weights >= 0).all()
    assert 0 < (weights == 0).sum() < 40
    assert np.abs(slope[weights > 0]).max() < 1e-9 * size
    assert slope[weights == 0].min() > -1e-9 * size


def test_an_exact_solution_is_found(rng):
    matrix = rng.normal(size=(50, 20))
    weights = rng.exponential(size=20)
    found = solve(matrix, matrix @ weights, np.ones(20), 1e-12)
    np.testing.assert_allclose(found, weights, rtol=1e-9)


def test_units_of_the_columns_do_not_matter(rng):
    """Weights of a row in other units: the solution moves with them, whatever the ridge."""
    matrix, response = low_rank_problem(rng)
    units = 10.0 ** rng.uniform(-3, 3, size=40)
    plain = solve(matrix, response, np.ones(40), 0.01)
    other = solve(matrix * units, response, 1.0 / units, 0.01)
    np.testing.assert_allclose(other * units, plain, rtol=1e-6, atol=1e-9)


def test_rows_that_say_nothing_keep_the_anchor():
    """Columns and equations of zeros: no curvature, no slope."""
    matrix = np.zeros((6, 3))
    matrix[:3, 0] = [1.0, 2.0, 3.0]
    weights = solve(matrix, 2.0 * matrix[:, 0], np.array([1.0, 5.0, 0.0]), 1e-10)
    np.testing.assert_allclose(weights, [2.0, 5.0, 0.0], atol=1e-7)


def test_a_large_ridge_stays_at_the_anchor(rng):
    matrix, response = low_rank_problem(rng)
    np.testing.assert_allclose(solve(matrix, response, np.full(40, 2.0), 1e8), 2.0, rtol=1e-6)


@pytest.mark.full
def test_where_exchanges_go_round_a_path_through_the_inside_leads_on(rng, monkeypatch):
    """More columns than equations and next to no ridge: the answer is still the minimiser."""
    entered, inside = [], nonnegative.solve_from_inside
    monkeypatch.setattr(nonnegative, "solve_from_inside", lambda *arguments: entered.append(True) or inside(*arguments))
    for _ in range(10):
        matrix, response = low_rank_problem(rng, num_rows=150, num_columns=300, rank=60)
        anchor = rng.exponential(size=300)
        solution = whole_solution(matrix, response, anchor, 1e-9)
        expected = by_scipy(matrix, response, anchor, float(solution.ridge))
        np.testing.assert_allclose(solution.weights, expected, atol=1e-3 * expected.max())
        assert solution.ridge == 1e-9
    assert entered, "otherwise nothing was tested"


@pytest.mark.parametrize("num_limits", [0, 5])
def test_from_inside_alone(rng, num_limits):
    """Coordinates and limits end on the sides that exchanges find."""
    matrix, response = low_rank_problem(rng)
    equations = NormalEquations.of(matrix, response)
    limits = Limits(rng.exponential(size=(num_limits, 40)), 10.0)
    expected = nonnegative_ridge(equations, np.ones(40), 1e-3, limits).weights * equations.scale
    curvature = equations.gram + 1e-3 * np.eye(40)
    pull = equations.target + 1e-3 * equations.scale
    found = nonnegative.solve_from_inside(curvature, pull, limits.coefficients / equations.scale, 10.0, np.ones(40))
    assert found.has_arrived
    np.testing.assert_allclose(found.point.x, expected, atol=1e-4 * expected.max())
    assert not num_limits or np.any(limits.coefficients / equations.scale @ expected > 1.0)


@pytest.mark.parametrize("start", ["nothing", "the wrong ones", "everything"])
def test_a_path_among_a_few_finds_what_it_was_not_given(rng, monkeypatch, start):
    """Where exchanges never settle: coordinates that the start leaves out come in, and limits that it does not see."""
    matrix, response = low_rank_problem(rng)
    equations = NormalEquations.of(matrix, response)
    limits = Limits(rng.exponential(size=(5, 40)), 10.0)
    expected = nonnegative_ridge(equations, np.ones(40), 1e-3, limits).weights
    near = {"nothing": np.zeros(40), "the wrong ones": np.where(expected > 0, 0.0, 1e-9), "everything": np.ones(40)}
    exchanged = nonnegative._exchanged
    monkeypatch.setattr(nonnegative, "_exchanged", lambda *arguments: exchanged(*arguments)._replace(has_settled=False))
    found = nonnegative_ridge(equations, np.ones(40), 1e-3, limits, near=near[start])
    assert found.ridge == 1e-3
    np.testing.assert_allclose(found.weights, expected, atol=1e-4 * expected.max())


@pytest.mark.full
def test_a_ridge_that_grows_is_named(rng, monkeypatch):
    """Where not even that leads on: the minimiser for the ridge that the answer names."""
    monkeypatch.setattr(
        nonnegative,
        "_from_inside",
        lambda quadratic, near, ridge, most: nonnegative._Pivoted(near, near > 0, np.zeros(0, bool), False),
    )
    grew = 0
    for _ in range(10):
        matrix, response = low_rank_problem(rng, num_rows=150, num_columns=300, rank=60)
        anchor = rng.exponential(size=300)
        solution = whole_solution(matrix, response, anchor, 1e-9)
        grew += solution.ridge > 1e-9
        expected = by_scipy(matrix, response, anchor, float(solution.ridge))
        np.testing.assert_allclose(solution.weights, expected, atol=1e-3 * expected.max())
    assert grew > 0, "otherwise nothing was tested"


def test_limits_are_kept_as_far_as_they_are_stiff(rng):
    """Against a general solver; an excess shrinks as the stiffness grows, and limits that are kept change nothing."""
    matrix, response = low_rank_problem(rng)
    coefficients, anchor = rng.exponential(size=(3, 40)) / 20, np.ones(40)
    excesses = []
    for stiffness in (1.0, 100.0):
        limits = Limits(coefficients, stiffness)
        weights = solve(matrix, response, anchor, 0.1, limits)

        def objective(w, stiffness=stiffness):
            scale = np.sqrt(np.mean(matrix**2, axis=0))
            over = np.maximum(coefficients @ w - 1.0, 0.0)
            fit = np.mean((matrix @ w - response) ** 2) + 0.1 * np.sum((scale * (w - anchor)) ** 2)
            return fit + stiffness * np.sum(over**2)

        found = minimize(objective, weights + 0.01, bounds=[(0.0, None)] * 40, method="L-BFGS-B")
        assert objective(weights) <= found.fun * (1 + 1e-9)
        excesses.append((coefficients @ weights - 1.0).max())
    assert excesses[0] > 2 * excesses[1] > 0, "otherwise no limit was at work"
    slack = Limits(1e-3 * coefficients, 100.0)
    np.testing.assert_allclose(
        solve(matrix, response, anchor, 0.1, slack), solve(matrix, response, anchor, 0.1), rtol=1e-9
    )


def test_where_the_search_starts_changes_nothing(rng):
    matrix, response = low_rank_problem(rng)
    expected = solve(matrix, response, np.ones(40), 1e-3)
    for near in (expected, np.zeros(40), rng.exponential(size=40)):
        found = solve(matrix, response, np.ones(40), 1e-3, near=near)
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-12)


def test_numbers_that_are_none_have_no_solution(rng):
    matrix, response = low_rank_problem(rng)
    matrix[3, 4] = np.nan
    assert np.isnan(solve(matrix, response, np.ones(40), 1e-3)).any()
