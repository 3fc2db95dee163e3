"""Weights whose rows curve no more than all rows do, so that the Gaussian term beside them stays proper.

In coordinates in which the curvature of all rows is the unit matrix, the largest eigenvalue of that of the weighted
rows must stay below one. Least squares know nothing of it: few rows in many dimensions overshoot in some directions (by
a factor of (1 + sqrt(d / M))^2 if they are weighted without bias). So directions that overshoot become limits of the
solve, sum_m w_m (v' A_m v) <= 1 for an eigenvector v, and the solve is repeated with more and more of them. All that
is needed of a model are the curvature of the weighted rows and second derivatives of single rows along a direction:
no matrix for each row. In the end the weights are scaled down by what is left of the overshoot, which costs little: a
share e of the weights is a share e of the remainders. (An exact solution would be a semi-definite program, for which
the M matrices of the rows would have to be kept, and no solver of the field takes M = 1 000 and d = 300 in seconds.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from coreset_mcmc.core.compilation import quick_compilation
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.methods.least_squares.expansion import Expansion, weighted_derivatives
from coreset_mcmc.methods.least_squares.nonnegative import Limits, NormalEquations, Solution, nonnegative_ridge
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.by_passes import posterior_of
from coreset_mcmc.posterior.problem import Problem

MOST_CURVATURE = 0.99
"""Largest eigenvalue in the end."""

GOOD_CURVATURE = 1.1
"""Where the search for limits ends and the weights are scaled."""

STIFFNESS = 10.0
"""What an excess of one costs, in mean squares of what the weights have to explain."""

NEW_LIMITS, MOST_SOLVES = 32, 12
"""Directions that become limits after one solve; one program serves any number up to it."""

LANCZOS_TOLERANCE = 1e-4
"""Of eigenvalues, relative; far less than the hundredth that is left to the limit in the end."""
MANY_DIMENSIONS = 600
"""From here on only the largest eigenvalues are computed, by Lanczos iterations: a full decomposition of 2 000
dimensions takes ten times as long.
"""


@dataclass(frozen=True)
class RowCurvature:
    """How much the rows of a coreset curve at the centre, in units of the curvature of all rows."""

    problem: Problem
    """Its rows are those of the coreset."""
    expansion: Expansion

    def of(self, weights: np.ndarray) -> np.ndarray:
        """(d, d), of the weighted rows."""
        whitening = self.expansion.whitening
        curvature = weighted_derivatives(self.problem, self.problem.rows, weights, self.expansion.centre)[1]
        result: np.ndarray = whitening.T @ curvature @ whitening
        return result

    def along(self, directions: np.ndarray) -> np.ndarray:
        """(k, M), of each row along whitened directions (d, k), at most :data:`NEW_LIMITS`."""
        missing = NEW_LIMITS - directions.shape[1]
        padded = np.pad((self.expansion.whitening @ directions).T, ((0, missing), (0, 0)))
        model, unravel = self.problem.model, posterior_of(self.problem).unravel
        found = _compiled()(model, unravel, self.expansion.centre, padded, self.problem.rows)
        return np.asarray(found)[: directions.shape[1]]

    def largest(self, weights: np.ndarray) -> float:
        """The largest eigenvalue for these weights; infinite if there is none."""
        curvature = self.of(weights)
        if not np.all(np.isfinite(curvature)):
            return np.inf
        return float(largest_pairs(curvature, 1)[0][-1])

    def scaled(self, weights: np.ndarray, largest: float | None = None) -> np.ndarray:
        """Scaled down to what is allowed; nothing is left of weights whose curvature is not a number."""
        largest = self.largest(weights) if largest is None else largest
        if largest <= MOST_CURVATURE:
            return weights
        return weights * (MOST_CURVATURE / largest)


def solve_within(
    values: np.ndarray, totals: np.ndarray, anchor: np.ndarray, ridge: float, curvature: RowCurvature
) -> Solution:
    """Non-negative least squares under the limit on curvature."""
    stiffness = STIFFNESS * float(np.mean(totals**2)) + np.finfo(float).tiny
    limits, near = Limits(np.zeros((0, len(anchor))), stiffness), anchor
    equations = NormalEquations.of(values, totals)
    for _ in range(MOST_SOLVES):
        solution = nonnegative_ridge(equations, anchor, ridge, limits, near=near)
        near = solution.weights
        found = curvature.of(solution.weights)
        if not np.all(np.isfinite(found)):
            return solution._replace(weights=np.full(len(anchor), np.nan))
        spectrum, vectors = largest_pairs(found, NEW_LIMITS)
        if spectrum[-1] <= GOOD_CURVATURE:
            break
        beyond = vectors[:, spectrum > 1.0]
        limits = limits._replace(coefficients=np.concatenate([limits.coefficients, curvature.along(beyond)]))
    return solution._replace(weights=curvature.scaled(solution.weights, float(spectrum[-1])))


def largest_pairs(matrix: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues (k,) of a symmetric matrix, ascending, and their vectors (d, k)."""
    size = len(matrix)
    if size >= MANY_DIMENSIONS:
        start = np.random.default_rng(0).normal(size=size)
        try:
            values, vectors = eigsh(matrix, k=count, which="LA", v0=start, tol=LANCZOS_TOLERANCE)
        except ArpackNoConvergence:
            pass
        else:
            order = np.argsort(values)
            return values[order], vectors[:, order]
    found: tuple[np.ndarray, np.ndarray] = eigh(matrix, subset_by_index=(max(size - count, 0), size - 1))
    return found


def row_curvatures(
    model: Model, unravel: Callable[[jax.Array], Position], centre: jax.Array, directions: jax.Array, rows: Batch
) -> jax.Array:
    """-v' H_m v (k, M) of each row at the centre, for directions v (k, d)."""

    def along(direction: jax.Array) -> jax.Array:
        def slope(at: jax.Array) -> jax.Array:
            first: jax.Array = jax.jvp(lambda flat: model.log_likelihood(unravel(flat), rows), (at,), (direction,))[1]
            return first

        second: jax.Array = jax.jvp(slope, (centre,), (direction,))[1]
        return -second

    result: jax.Array = jax.vmap(along)(directions)
    return result


@cache
def _compiled() -> Any:
    return jax.jit(row_curvatures, static_argnums=(0, 1), compiler_options=quick_compilation(1) or None)
