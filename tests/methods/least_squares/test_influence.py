"""Rows chosen by how much they matter."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import Uniform
from coreset_mcmc.driver.run import run
from coreset_mcmc.methods import LeastSquares
from coreset_mcmc.methods.least_squares.influence import influences
from coreset_mcmc.posterior.problem import make_problem, starting_positions

SIZE, DIM = 400, 2


@pytest.fixture(scope="module")
def problem():
    with jax.enable_x64(True):
        rng = np.random.default_rng(0)
        data = rng.normal(size=(SIZE, DIM)) * np.linspace(0.1, 5.0, SIZE)[:, None]
        model = cm.models.gaussian_location(DIM)
        selected = Uniform().select(rng, data, SIZE, 40)
        return make_problem(model, to_array_data(data), selected, starting_positions(model, jax.random.key(0), 4))


def test_influence_is_the_standard_deviation_over_draws(problem):
    """Against NumPy, for the Gaussian location model: l_n = -|x_n - theta|^2 / 2."""
    draws = np.random.default_rng(1).normal(size=(16, DIM))
    data = np.asarray(problem.data.arrays)
    expected = (-0.5 * ((data[None] - draws[:, None]) ** 2).sum(axis=2)).std(axis=0)
    np.testing.assert_allclose(influences(problem, {"theta": jnp.asarray(draws)}), expected, rtol=1e-9)


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
    problem = make_problem(model, to_array_data(data), selected, starting_positions(model, jax.random.key(0), 4))
    method = LeastSquares(num_draws=80, num_chains=2)
    training = run(method, problem, jax.random.key(0), num_steps=method.max_steps)
    assert np.asarray(training.state.rows["y"]).sum() == 12
    np.testing.assert_array_equal(np.asarray(training.state.rows["x"]), x[np.asarray(training.state.indices)])


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
