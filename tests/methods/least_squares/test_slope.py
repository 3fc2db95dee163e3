"""The slope that goes with weights beside a Gaussian term."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.methods.least_squares import rounds
from coreset_mcmc.methods.least_squares.equations import Window, half_variance
from coreset_mcmc.methods.least_squares.expansion import Expansion
from coreset_mcmc.methods.least_squares.slope import LARGEST, directions_of, pulled, slope_beside

DIM, NUM_DRAWS = 3, 400


def expansion_of(curvature):
    whitening = np.linalg.inv(np.linalg.cholesky(curvature)).T
    dimension = len(curvature)
    return Expansion(np.ones(dimension), np.zeros(dimension), curvature, whitening, np.asarray(True))


@pytest.fixture
def window(rng):
    """Draws of a Gaussian with the curvature of the expansion, and equations with a slope in them."""
    root = rng.normal(size=(DIM, DIM)) + 2.0 * np.eye(DIM)
    curvature = root @ root.T
    expansion = expansion_of(curvature)
    draws = {"at": 1.0 + rng.normal(size=(NUM_DRAWS, DIM)) @ expansion.whitening.T}
    values = rng.normal(size=(NUM_DRAWS, 2)) ** 3
    slope = root @ np.array([0.3, -0.2, 0.1])
    totals = values @ [2.0, 1.0] + draws["at"] @ slope
    return expansion, draws, Window(values - values.mean(axis=0), totals - totals.mean()), slope


def test_a_slope_is_found_beside_weights(window):
    expansion, draws, equations, slope = window
    directions = directions_of(expansion, draws)
    alone = directions.without(equations)
    weights = np.linalg.lstsq(alone.values, alone.totals, rcond=None)[0]
    np.testing.assert_allclose(weights, [2.0, 1.0], rtol=1e-9)
    found = slope_beside(weights, equations, directions, np.zeros(DIM))
    np.testing.assert_allclose(found, slope, rtol=1e-6)
    assert half_variance(pulled(equations, found, draws), weights) < 1e-9 < half_variance(equations, weights)


@pytest.mark.statistical
def test_what_chance_explains_is_no_slope(window, rng):
    """Of pure noise sqrt(d / J) of its size would be taken for a slope; shrinkage leaves less than half on average."""
    expansion, draws, _, _ = window
    directions = directions_of(expansion, draws)
    plain, shrunk = 0.0, 0.0
    for _ in range(50):
        noise = rng.normal(size=NUM_DRAWS)
        plain += np.sum((noise - directions.take_from(noise)) ** 2)
        left = (draws["at"] - draws["at"].mean(axis=0)) @ directions.slope(noise)
        shrunk += np.sum(left**2)
    assert shrunk < 0.5 * plain


def test_a_slope_moves_the_mean_by_no_more_than_a_standard_deviation(window):
    expansion, draws, equations, slope = window
    directions = directions_of(expansion, draws)
    steep = pulled(equations, -100.0 * slope, draws)
    found = slope_beside(np.array([2.0, 1.0]), steep, directions, np.zeros(DIM))
    moved = np.sqrt(found @ np.linalg.solve(expansion.curvature, found))
    np.testing.assert_allclose(moved, LARGEST, rtol=1e-6)


def test_directions_that_only_the_prior_knows_have_none(window):
    """The likelihood hardly curves along the last parameter: a tilt there could make a prior improper."""
    draws = window[1]
    expansion = expansion_of(np.diag([1.0, 4.0, 1e-8]))
    directions = directions_of(expansion, draws)
    assert directions.basis.shape[1] == 2
    np.testing.assert_array_equal(directions.to_slope[2], 0.0)
    assert directions_of(None, draws) is None
    few = {"at": draws["at"][:5]}
    assert directions_of(expansion_of(np.eye(DIM)), few) is None, "three directions from five draws are chance"


@pytest.mark.full
def test_few_rows_of_a_skewed_posterior_have_the_right_mean(monkeypatch):
    """Rates of exponential times with few events: the mean is far from the mode. The broken twin has no slope."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4_000, 6))
    data = {"x": x, "y": rng.poisson(np.exp(-6.0 + x @ np.full(6, 0.4))).astype(float)}

    def log_likelihood(position, rows):
        predicted = position["beta"][0] + rows["x"] @ position["beta"][1:]
        return rows["y"] * predicted - jnp.exp(predicted)

    model = cm.Model(lambda at: -0.5 * jnp.sum(at["beta"] ** 2) / 100.0, log_likelihood, {"beta": np.zeros(7)})
    options = {"coreset_size": 8, "draws": 400, "tune": 100, "random_seed": 3, "progressbar": False}

    def estimate():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            return cm.fit(model, data, method=cm.LeastSquares(gaussian_term=True), **options).kl_estimate

    with_slope = estimate()
    monkeypatch.setattr(rounds, "slope_beside", lambda weights, window, directions, old: np.zeros_like(old))
    assert with_slope < 0.7 * estimate()


def test_directions_that_depend_on_each_other_have_none(window):
    twice = {"at": np.concatenate([window[1]["at"], window[1]["at"]], axis=1)}
    assert directions_of(expansion_of(np.eye(2 * DIM)), twice) is None
