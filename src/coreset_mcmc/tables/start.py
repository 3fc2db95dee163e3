"""Where chains start: least squares where the response has a scale of its own, no effects elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.data.leaf import Leaf
from coreset_mcmc.data.task import Program
from coreset_mcmc.tables.factors import CODES
from coreset_mcmc.tables.families import Family
from coreset_mcmc.tables.first_pass import Measured
from coreset_mcmc.tables.measured_design import Design
from coreset_mcmc.tables.row_terms import RowTerms
from coreset_mcmc.tables.standardised import COEFFICIENTS, INTERCEPT, WEIGHT

SMALLEST_VARIANCE = 1e-12
"""Of the residuals of a standardised response: below this the predictors explain it exactly."""
LARGEST_CANCELLATION = 1e-10
"""A variance from products of columns is taken where it is larger than this times the size of what cancels in it."""
DEGREES_OF_FREEDOM = 10.0
"""Of t, at the start."""

SumOfSquares = Callable[[np.ndarray], float]
"""The sum over all rows of squared residuals for some coefficients, by another pass."""


def starting_position(
    design: Design, measured: Measured, family: Family, sum_of_squares: SumOfSquares
) -> dict[str, np.ndarray]:
    """A position for the response as the model sees it."""
    coefficients, variance = np.zeros(len(design.means)), 1.0
    of_family: dict[str, Any] = {"sigma": 0.0, "nu": math.log(DEGREES_OF_FREEDOM)}
    if family.has_scale and coefficients.size:
        coefficients, variance = _least_squares(design, measured.moments.num_rows, sum_of_squares)
    intercept: Any = 0.0
    if family.has_scale:
        of_family["sigma"] = 0.5 * math.log(variance)
    else:
        intercept, of_family = family.start(design.tail_means[: _num_statistics(design)])
    position: dict[str, np.ndarray] = {}
    if design.has_intercept and not family.is_ordered:
        position[INTERCEPT] = np.asarray(intercept - _offset(design, measured, family), float)
    if coefficients.size:
        count = family.num_predictors
        position[COEFFICIENTS] = coefficients if count == 1 else np.zeros((coefficients.size, count))
    keys = {parameter.name: parameter.key for parameter in family.parameters}
    return {**position, **{key: np.asarray(of_family[name], float) for name, key in keys.items()}}


def _least_squares(design: Design, count: float, sum_of_squares: SumOfSquares) -> tuple[np.ndarray, float]:
    coefficients = np.linalg.solve(design.gram, design.with_response)
    explained = design.gram @ coefficients - 2.0 * design.with_response
    variance = float(1.0 + coefficients @ explained)
    if variance < LARGEST_CANCELLATION * float(1.0 + np.abs(coefficients).sum()) ** 2:
        variance = sum_of_squares(coefficients) / count
    require(
        variance > SMALLEST_VARIANCE,
        "design",
        got="predictors that explain the response exactly",
        expected="a response with noise",
        fix="Is something computed from the response among the predictors? With as many columns as rows, use fewer.",
    )
    return coefficients, variance


def _num_statistics(design: Design) -> int:
    return len(design.tail_means) - len(design.multiplier_scales) - design.has_offset


def _offset(design: Design, measured: Measured, family: Family) -> float:
    """What the offset adds to the predictor of the mean response."""
    if family.has_scale or not design.has_offset:
        return 0.0
    if family.link == "log":
        largest, total = measured.offset
        return largest + math.log(total / measured.moments.num_rows)
    mean = float(design.tail_means[_num_statistics(design)])
    return mean * design.response_scale if family.divides_by_mean else mean


def by_regressors(
    terms: RowTerms, design: Design, coefficients: np.ndarray
) -> tuple[np.ndarray, list[np.ndarray], float]:
    """Coefficients of dense columns, effects of levels, and what is taken away from every row."""
    standard = coefficients / design.scales
    effects = [factor.component.matrix @ standard[factor.columns] for factor in terms.factors]
    centre = sum(float(design.means[factor.columns] @ standard[factor.columns]) for factor in terms.factors)
    return coefficients[terms.places], effects, centre


@dataclass(frozen=True)
class SquaredResiduals(Program):
    """Their sum over rows of the design; the arguments are those of :func:`by_regressors`."""

    def on_leaf(self, leaf: Leaf, arguments: Any) -> float:
        batch: Any = leaf.batch
        dense, effects, centre = arguments
        residuals = batch["y"] - batch["x"] @ dense + centre
        for place, own in enumerate(effects):
            residuals -= own[batch[CODES][:, place]]
        if "offset" in batch:
            residuals -= batch["offset"]
        return float(residuals @ (residuals * batch[WEIGHT] if WEIGHT in batch else residuals))

    def merge(self, one: float, other: float) -> float:
        return one + other
