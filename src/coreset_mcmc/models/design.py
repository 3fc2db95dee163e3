"""The linear predictor with an intercept, without copying the features, and what it is made of."""

from __future__ import annotations

import jax

from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.models.regressors import Coefficients, Regressors, RowRegressors


def intercept_plus(features: jax.Array, coefficients: jax.Array) -> jax.Array:
    """beta_0 + x'(beta_1..beta_p) for each row."""
    return coefficients[0] + features @ coefficients[1:]


def _of_rows(batch: Batch) -> RowRegressors:
    return RowRegressors(batch["x"])


def _coefficients(position: Position) -> Coefficients:
    return Coefficients(position["beta"][0], position["beta"][1:])


WITH_INTERCEPT = Regressors(_of_rows, _coefficients)
"""Those of :func:`intercept_plus` for rows with features "x" and positions with coefficients "beta"."""
