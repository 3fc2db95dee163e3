"""Rows chosen by how much they matter, and by what an expansion leaves of them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.selection import Uniform
from coreset_mcmc.driver.run import run
from coreset_mcmc.methods import LeastSquares
from coreset_mcmc.methods.least_squares.scores import (
    MANY_ROWS,
    Scores,
    num_influence_draws,
    num_remainder_draws,
)
from coreset_mcmc.methods.least_squares.taylor import EVALUATIONS_PER_REMAINDER
from coreset_mcmc.posterior.by_passes import posterior_of
from coreset_mcmc.posterior.problem import make_problem, starting_positions

SIZE, DIM = 400, 2


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    data = {"x": rng.normal(size=(SIZE, DIM)) * np.linspace(0.1, 5.0, SIZE)[:, None], "y": np.arange(SIZE) % 2.0}
    model = cm.models.logistic_regression(DIM)
    selected = Uniform().select(rng, data, SIZE, 40)
    return make_problem(model, to_rows(data), selected, starting_positions(model, jax.random.key(0), 4))


def scores_of(problem, draws, centre, displacements, *, of_coreset, of_sample, beside_term=False):
    function = Scores(problem.model, posterior_of(problem).unravel, of_coreset, of_sample, beside_term)
    parts = problem.passes.values(function, draws, centre, displacements, description="scores")
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]


@pytest.fixture
def places(rng):
    """Draws, a centre and displacements from it."""
    return rng.normal(size=(16, DIM + 1)), 0.1 * rng.normal(size=DIM + 1), 0.3 * rng.normal(size=(8, DIM + 1))


def row_values(problem, flat):
    """log p(y | x) of the logistic regression, (K, N), by NumPy."""
    data = problem.data.source.whole()
    predicted = flat[:, :1] + flat[:, 1:] @ data["x"].T
    return np.where(data["y"] == 1, -np.logaddexp(0, -predicted), -np.logaddexp(0, predicted))


def test_influence_is_the_standard_deviation_over_draws(problem, places):
    (found,) = scores_of(problem, *places, of_coreset=True, of_sample=False)
    np.testing.assert_allclose(found, row_values(problem, places[0]).std(axis=0), rtol=1e-9)


def test_a_remainder_is_what_the_second_order_leaves(problem, places):
    """With derivatives of the logistic regression by hand; the root of its mean square over displacements."""
    _, centre, displacements = places
    data = problem.data.source.whole()
    design = np.column_stack([np.ones(SIZE), data["x"]])
    chance = 1 / (1 + np.exp(-design @ centre))
    along = displacements @ design.T
    expansion = along * (data["y"] - chance) - 0.5 * along**2 * chance * (1 - chance)
    left = row_values(problem, centre + displacements) - row_values(problem, centre[None]) - expansion
    (found,) = scores_of(problem, *places, of_coreset=False, of_sample=True)
    np.testing.assert_allclose(found, np.sqrt(np.mean(left**2, axis=0)), rtol=1e-6, atol=1e-14)


def test_both_come_from_one_pass(problem, places):
    both = scores_of(problem, *places, of_coreset=True, of_sample=True)
    alone = [
        *scores_of(problem, *places, of_coreset=True, of_sample=False),
        *scores_of(problem, *places, of_coreset=False, of_sample=True),
    ]
    for one, other in zip(both, alone, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-15)


def test_beside_a_term_both_samples_go_by_remainders(problem, places):
    one, other = scores_of(problem, *places, of_coreset=True, of_sample=True, beside_term=True)
    (expected,) = scores_of(problem, *places, of_coreset=False, of_sample=True)
    np.testing.assert_array_equal(one, expected)
    np.testing.assert_array_equal(other, expected)


def test_draws_are_fewer_with_very_many_rows(problem):
    assert [num_influence_draws(size) for size in (MANY_ROWS - 1, MANY_ROWS)] == [16, 4]
    unravel = posterior_of(problem).unravel
    for size in (1_000, MANY_ROWS):
        influence, remainder = num_influence_draws(size), EVALUATIONS_PER_REMAINDER * num_remainder_draws(size)
        counts = {
            flags: Scores(problem.model, unravel, *flags, False).num_evaluations(size, 100)
            for flags in [(True, False), (False, True), (True, True)]
        }
        assert list(counts.values()) == [
            count * (size + 100) for count in (influence, remainder, influence + remainder)
        ]


@pytest.mark.full
def test_few_rows_with_all_the_information_are_found():
    """Twelve positives among 3 000 rows: a hot start brings them in, uniform rows would bring 0.2 of them."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3_000, 2))
    y = np.zeros(3_000)
    y[rng.choice(3_000, 12, replace=False)] = 1.0
    model = cm.models.logistic_regression(2)
    data = {"x": x, "y": y}
    selected = Uniform().select(rng, data, 3_000, 50)
    problem = make_problem(model, to_rows(data), selected, starting_positions(model, jax.random.key(0), 4))
    method = LeastSquares(num_draws=80, num_chains=2)
    training = run(method, problem, jax.random.key(0), num_steps=method.max_steps)
    assert np.asarray(training.state.rows["y"]).sum() == 12
    np.testing.assert_array_equal(np.asarray(training.state.rows["x"]), x[np.asarray(training.state.indices)])


@pytest.mark.full
def test_a_row_with_no_finite_score_is_chosen():
    """It is impossible at draws of the Laplace approximation: without it the coreset posterior would not know."""
    rng = np.random.default_rng(0)
    data = {"y": rng.normal(size=600), "edge": np.where(np.arange(600) == 77, 0.02, 9.0)}
    model = cm.Model(
        lambda position: -0.5 * position["mean"] ** 2,
        lambda position, rows: jnp.where(
            position["mean"] < rows["edge"], -0.5 * (rows["y"] - position["mean"]) ** 2, -jnp.inf
        ),
        {"mean": np.array(-0.1)},
    )
    selected = Uniform().select(rng, data, 600, 12)
    problem = make_problem(model, to_rows(data), selected, starting_positions(model, jax.random.key(0), 2))
    method = LeastSquares(num_draws=40, num_chains=2)
    chosen = []

    def after_scores(event):
        chosen.append(event.state.indices)
        return bool(event.state.is_first)

    run(method, problem, jax.random.key(0), num_steps=method.max_steps, callbacks=[after_scores])
    assert 77 not in chosen[0]
    assert 77 in chosen[-1]


@pytest.mark.full
def test_selected_rows_are_kept():
    """Whoever selects rows gets those rows; whoever does not gets the ones that matter."""
    data = {"y": np.random.default_rng(0).normal(size=(300,))}
    model = cm.Model(
        lambda position: -0.5 * position["mean"] ** 2,
        lambda position, rows: -0.5 * (rows["y"] - position["mean"]) ** 2,
        {"mean": np.zeros(())},
    )
    options = {"draws": 20, "tune": 5, "progressbar": False, "random_seed": 0, "method": LeastSquares(num_draws=20)}
    with pytest.warns(UserWarning, match="ESS"):
        kept = cm.fit(model, data, selection=cm.selection.Given([3, 1, 4, 15, 9, 2]), **options)
    assert list(kept.coreset.indices) == [3, 1, 4, 15, 9, 2]
