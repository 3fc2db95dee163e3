"""Regression on a product of two factors: only the product is identified, and the posterior lies along a hyperbola.

y ~ N(a b x_1 + c x_2, 1) with (a, b) = factors and c = slope, all N(0, 1) a priori. The likelihood fixes a b to within
1/sqrt(N); along the curve a b = const the prior alone speaks. Flipping the signs of both factors gives the other
branch, and exchanging them maps each branch onto itself. A Gaussian at a mode follows the tangent, off the curve.

Given a the model is linear and Gaussian in (b, c), so the marginal posterior of a is known: see
:func:`log_density_of_a_factor`.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.models.checks import regression_columns
from coreset_mcmc.models.model import Model


def _log_prior(position: Position) -> jax.Array:
    result: jax.Array = -0.5 * (jnp.sum(position["factors"] ** 2) + position["slope"] ** 2)
    return result


def _log_likelihood(position: Position, batch: Batch) -> jax.Array:
    first, second = position["factors"][0], position["factors"][1]
    predicted = first * second * batch["x"][:, 0] + position["slope"] * batch["x"][:, 1]
    result: jax.Array = -0.5 * (batch["y"] - predicted) ** 2
    return result


def _initial_position(key: Key) -> Position:
    """Drawn from the prior: zero is a saddle between the branches."""
    return {"factors": jax.random.normal(key, (2,)), "slope": jnp.zeros(())}


def _check_data(data: Any) -> None:
    regression_columns(data, 2)


@lru_cache
def unidentified_regression() -> Model:
    """y ~ N(factors_0 factors_1 x_1 + slope x_2, 1), no intercept. Data: {"x": (N, 2), "y": (N,)}."""
    return Model(
        _log_prior,
        _log_likelihood,
        initial_position=_initial_position,
        check_data=_check_data,
        dims={"factors": ("factor",)},
        name="unidentified_regression",
    )


def log_density_of_a_factor(values: np.ndarray, data: Batch) -> np.ndarray:
    """The marginal posterior log-density of a factor, up to a constant, at each of ``values``; both have the same.

    With A = I + X'X and g = X'y for the design X = (a x_1, x_2), it is ``-a^2/2 - log det(A)/2 + g'A^-1 g/2``.
    """
    x, y = np.asarray(data["x"]), np.asarray(data["y"])
    squares, cross = x.T @ x, x.T @ y
    design_scale = np.stack([np.asarray(values, float), np.ones(np.shape(values))], axis=-1)
    precision = np.eye(2) + design_scale[..., :, None] * squares * design_scale[..., None, :]
    vector = design_scale * cross
    fitted = np.linalg.solve(precision, vector[..., None])[..., 0]
    log_determinant = np.linalg.slogdet(precision)[1]
    result: np.ndarray = 0.5 * (np.sum(vector * fitted, axis=-1) - log_determinant - np.asarray(values) ** 2)
    return result


def unidentified_regression_data(rng: np.random.Generator, num_rows: int = 10_000) -> dict[str, np.ndarray]:
    """Rows with a product of 0.5 and a slope of -1; the two features are independent."""
    x = rng.normal(size=(num_rows, 2))
    return {"x": x, "y": 0.5 * x[:, 0] - x[:, 1] + rng.normal(size=num_rows)}
