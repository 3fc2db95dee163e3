"""The log-density of the coreset posterior, and along a line: values that kernels rely on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.models import gaussian_location, linear_regression, logistic_regression, poisson_regression
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.target import CoresetTarget, move
from tests.helpers.exact_targets import PARETO

NUM_ROWS = 12


def regression_rows(rng: np.random.Generator, response: np.ndarray) -> dict[str, np.ndarray]:
    return {"x": rng.normal(size=(NUM_ROWS, 3)), "y": response}


READY_MADE: dict[str, tuple[Model, Callable[[np.random.Generator], Any]]] = {
    "gaussian_location": (gaussian_location(3), lambda rng: rng.normal(size=(NUM_ROWS, 3))),
    "linear": (linear_regression(3), lambda rng: regression_rows(rng, rng.normal(size=NUM_ROWS))),
    "logistic": (logistic_regression(3), lambda rng: regression_rows(rng, 1.0 * rng.integers(0, 2, NUM_ROWS))),
    "poisson": (poisson_regression(3), lambda rng: regression_rows(rng, 1.0 * rng.poisson(2.0, NUM_ROWS))),
}
every_model = pytest.mark.parametrize("name", READY_MADE)


def target_of(rows: Any, weights: Any, model: Model) -> CoresetTarget:
    return CoresetTarget(jax.tree.map(jnp.asarray, rows), jnp.asarray(weights, float), model)


def random_position(rng: np.random.Generator, model: Model) -> Any:
    return jax.tree.map(lambda leaf: rng.normal(size=np.shape(leaf)), model.initial_position)


@pytest.mark.full
@every_model
def test_integer_weights_are_replicated_rows(name: str, rng: np.random.Generator) -> None:
    model, make_rows = READY_MADE[name]
    rows, multiplicities = make_rows(rng), rng.integers(0, 4, NUM_ROWS)
    replicated = jax.tree.map(lambda leaf: np.repeat(leaf, multiplicities, axis=0), rows)
    weighted = target_of(rows, multiplicities, model)
    whole = target_of(replicated, np.ones(multiplicities.sum()), model)
    for _ in range(3):
        position = random_position(rng, model)
        np.testing.assert_allclose(weighted.log_density(position), whole.log_density(position), rtol=1e-13)


@pytest.mark.full
@every_model
@pytest.mark.parametrize("has_predictor", [True, False], ids=["linear_predictor", "whole"])
def test_along_a_line_equals_the_log_density_there(name: str, has_predictor: bool, rng: np.random.Generator) -> None:
    model, make_rows = READY_MADE[name]
    assert (model.linear_predictor is None) == (name == "gaussian_location")
    model = model if has_predictor else replace(model, linear_predictor=None)
    weights = rng.exponential(size=NUM_ROWS) * rng.integers(0, 2, NUM_ROWS)
    target = target_of(make_rows(rng), weights, model)
    position, direction = random_position(rng, model), random_position(rng, model)
    distances = np.array([-20.0, -1.3, 0.0, 0.4, 7.0])
    on_line = jax.vmap(target.along(position, direction))(distances)
    there = jax.vmap(lambda distance: target.log_density(move(position, distance, direction)))(distances)
    assert np.all(np.isfinite(there))
    np.testing.assert_allclose(on_line, there, rtol=1e-11)


def given(values: list[float], *, prior: float = 0.0, is_split: bool) -> tuple[Model, np.ndarray]:
    """A model whose rows are their own log-likelihoods, with or without a linear predictor."""

    def log_prior(position: Any) -> jax.Array:
        return prior + 0.0 * position["theta"]

    if is_split:
        model = Model.from_linear_predictor(
            log_prior,
            lambda position, batch: jnp.full(batch.shape, position["theta"]),
            lambda position, predicted, batch: batch + 0.0 * predicted,
        )
    else:
        model = Model(log_prior, lambda position, batch: batch)
    return model, np.array(values)


INFINITY, NOT_A_NUMBER = float("inf"), float("nan")


@pytest.mark.parametrize("is_split", [False, True], ids=["whole", "linear_predictor"])
@pytest.mark.parametrize(
    ("values", "weights", "prior", "expected"),
    [
        ([-INFINITY, -2.0], [0.0, 1.5], 0.0, -3.0),
        ([INFINITY, -2.0], [0.0, 1.5], 0.0, -3.0),
        ([NOT_A_NUMBER, -2.0], [0.0, 1.5], 0.0, -3.0),
        ([-INFINITY, -2.0], [0.5, 1.5], 0.0, -INFINITY),
        ([NOT_A_NUMBER, -2.0], [0.5, 1.5], 0.0, -INFINITY),
        ([INFINITY, -2.0], [0.5, 1.5], 0.0, -INFINITY),
        ([-INFINITY, -2.0], [-0.5, 1.5], 0.0, -INFINITY),
        ([-INFINITY, -INFINITY], [-0.5, 1.5], 0.0, -INFINITY),
        ([-3.0, -2.0], [-0.5, 1.5], 0.0, -1.5),
        ([-3.0, -2.0], [0.0, 0.0], NOT_A_NUMBER, -INFINITY),
        ([-INFINITY, -2.0], [-0.5, 1.5], -INFINITY, -INFINITY),
        ([-3.0, -2.0], [1.0, 1.0], -INFINITY, -INFINITY),
    ],
)
def test_impossible_and_undefined_rows(
    values: list[float], weights: list[float], prior: float, expected: float, is_split: bool
) -> None:
    """A row of weight zero is not there; otherwise what is infinite or undefined is impossible."""
    model, rows = given(values, prior=prior, is_split=is_split)
    target, position = target_of(rows, weights, model), {"theta": jnp.array(0.5)}
    assert float(target.log_density(position)) == expected
    assert float(target.along(position, {"theta": jnp.array(1.0)})(jnp.array(2.0))) == expected


def test_a_row_outside_the_support_counts_only_if_it_has_weight() -> None:
    position = {"edge": jnp.array(1.7)}
    rows, model = np.array([1.2, 9.0]), PARETO.model
    prior = float(target_of(rows, [0.0, 0.0], model).log_density(position))
    assert float(target_of(rows, [2.0, 0.0], model).log_density(position)) == pytest.approx(prior - 2.0 * np.log(1.7))
    assert float(target_of(rows, [2.0, 1e-9], model).log_density(position)) == -INFINITY


def test_overflow_in_linear_regression_is_impossible_not_undefined() -> None:
    """exp(-s) overflows far below, where a residual of zero would give 0 * inf."""
    rows = {"x": np.zeros((2, 1)), "y": np.array([0.0, 1.0])}
    position = {"beta": jnp.zeros(2), "log_variance": jnp.array(0.0)}
    downwards = {"beta": jnp.zeros(2), "log_variance": jnp.array(-1.0)}
    for weights, expected in (([1.0, 1.0], -INFINITY), ([1.0, 0.0], -INFINITY), ([0.0, 0.0], -0.5 * 800.0**2)):
        target = target_of(rows, weights, linear_regression(1))
        assert float(target.along(position, downwards)(jnp.array(800.0))) == expected
        assert float(target.log_density(move(position, 800.0, downwards))) == expected
