"""Where chains start: least squares where the response has a scale of its own, no effects elsewhere."""

from __future__ import annotations

import math

import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.tables.design import Design
from coreset_mcmc.tables.families import Family
from coreset_mcmc.tables.standardised import COEFFICIENTS, INTERCEPT

SMALLEST_VARIANCE = 1e-12
"""Of the residuals of a standardised response: below this the predictors explain it exactly."""
DEGREES_OF_FREEDOM = 10.0
"""Of t, at the start."""


def starting_position(
    y: np.ndarray, offset: np.ndarray | None, design: Design, family: Family
) -> dict[str, np.ndarray]:
    """A position for the response as the model sees it."""
    coefficients, variance = np.zeros(design.x.shape[1]), 1.0
    if family.has_scale and coefficients.size:
        coefficients, variance = _least_squares(design, y if offset is None else y - offset)
    position: dict[str, np.ndarray] = {}
    if design.has_intercept:
        position[INTERCEPT] = np.array(0.0 if family.has_scale else _link_of_mean(y, offset, family))
    if coefficients.size:
        position[COEFFICIENTS] = coefficients
    logarithm = {"sigma": 0.5 * math.log(variance), "nu": math.log(DEGREES_OF_FREEDOM), "alpha": 0.0}
    return {**position, **{f"log_{name}": np.array(logarithm[name]) for name in family.positive}}


def _least_squares(design: Design, y: np.ndarray) -> tuple[np.ndarray, float]:
    coefficients = np.linalg.solve(design.gram, design.x.T @ y / len(y))
    variance = float(np.mean((y - design.x @ coefficients) ** 2))
    require(
        variance > SMALLEST_VARIANCE,
        "design",
        got="predictors that explain the response exactly",
        expected="a response with noise",
        fix="Is something computed from the response among the predictors? With as many columns as rows, use fewer.",
    )
    return coefficients, variance


def _link_of_mean(y: np.ndarray, offset: np.ndarray | None, family: Family) -> float:
    """The intercept that gives the mean response where no predictor has an effect."""
    mean = float(y.mean())
    if family.link == "logit":
        return math.log(mean) - math.log1p(-mean) - (0.0 if offset is None else float(offset.mean()))
    if offset is None:
        return math.log(mean)
    largest = float(offset.max())
    return math.log(mean) - largest - math.log(float(np.mean(np.exp(offset - largest))))
