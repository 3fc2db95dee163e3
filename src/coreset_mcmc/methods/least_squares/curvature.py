"""Weights whose rows curve no more than all rows do, so that the Gaussian term beside them stays proper.

In coordinates in which the curvature of all rows is the unit matrix, the largest eigenvalue of that of the weighted
rows must stay below one. Least squares know nothing of it: few rows in many dimensions overshoot in some directions (by
a factor of (1 + sqrt(d / M))^2 if they are weighted without bias). So directions that overshoot become limits of the
solve, sum_m w_m (v' A_m v) <= 1 for an eigenvector v, and the solve is repeated with more and more of them. Each
solution overshoots somewhere else, by little; their running mean hardly overshoots anywhere, and explains as much,
since both are convex. So the limits are those of the mean, and the mean is what is taken. All that is needed of a model
are the curvature of the weighted rows and second derivatives of single rows along a direction: no matrix for each row.
In the end the weights are scaled down by what is left of the overshoot, which costs little: a share e of the weights is
a share e of the remainders. A direction that limits one solve limits any other, whatever its rows: the next begins with
those that were nearest to their limit. (An exact solution would be a semi-definite program, for which the M matrices of
the rows would have to be kept, and no solver of the field takes M = 1 000 and d = 300 in seconds.)

*Whole rows* count once, as they do in the sum over all rows: those that were in the coreset for sure, and whose
remainder alone matters, as that of the only row of a level does. Scaling would take a tenth of it away. What they leave
of the curvature of all rows is what the others may have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from coreset_mcmc.core.compilation import quick_compilation
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.methods.least_squares.expansion import Expansion, weighted_derivatives
from coreset_mcmc.methods.least_squares.nonnegative import Limits, NormalEquations, nonnegative_ridge
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.by_passes import posterior_of
from coreset_mcmc.posterior.problem import Problem

MOST_CURVATURE = 0.999
"""Largest eigenvalue in the end."""

GOOD_CURVATURE, BEST_CURVATURE, ROUGH_CURVATURE = 1.1, 1.005, 1.2
"""Where the search for limits ends and the weights are scaled: at the first if that costs little, else the second; at
the third where they only tell which rows are missing.
"""

MOST_LOST = 0.1
"""What scaling may cost, beside what the weights leave unexplained."""

NEGLIGIBLE_LOST = 1e-3
"""What scaling may cost in any case, in nats: a tenth of where training ends."""

NEWEST = 0.3
"""The share of the newest solution in the running mean of solutions."""

STIFFNESS = 100.0
"""What an excess of one costs, in mean squares of what the weights have to explain."""

NEW_LIMITS, MOST_SOLVES, MOST_KNOWN = 32, 24, 256
"""Directions that become limits after one solve, in one program for any number up to it; and that a next one begins
with.
"""

LANCZOS_TOLERANCE = 1e-4
"""Of eigenvalues, relative; far less than the hundredth that is left to the limit in the end."""
MANY_DIMENSIONS = 600
"""From here on only the largest eigenvalues are computed, by Lanczos iterations: a full decomposition of 2 000
dimensions takes ten times as long.
"""


EXHAUSTED = 1e-6
"""Share of the curvature of all rows that is at least left beside whole rows: where they are all there is."""


@dataclass(frozen=True)
class RowCurvature:
    """How much the free rows of a coreset curve at the centre, in units of what whole rows leave of all rows."""

    problem: Problem
    """Its rows are those of the coreset."""
    expansion: Expansion
    is_whole: np.ndarray
    """Marks (M,) rows that count once, whatever the solve says of the others."""
    known: np.ndarray
    """Whitened directions (k, d) of unit length that limited an earlier solve; zeros stand for none."""
    is_rough: bool = False
    """Whether the weights are to tell which rows are missing, and nothing else."""

    @cached_property
    def whitening(self) -> np.ndarray:
        """V (d, d), with V' (A - A_whole) V = I."""
        whitening = self.expansion.whitening
        if not np.any(self.is_whole):
            return whitening
        left = np.eye(len(whitening)) - self._between(whitening, self.is_whole.astype(float))
        spectrum, vectors = eigh(left)
        result: np.ndarray = whitening @ (vectors / np.sqrt(np.maximum(spectrum, EXHAUSTED)))
        return result

    def _between(self, whitening: np.ndarray, weights: np.ndarray) -> np.ndarray:
        curvature = weighted_derivatives(self.problem, self.problem.rows, weights, self.expansion.centre)[1]
        result: np.ndarray = whitening.T @ curvature @ whitening
        return result

    def of(self, weights: np.ndarray) -> np.ndarray:
        """(d, d), of the free rows."""
        return self._between(self.whitening, np.where(self.is_whole, 0.0, weights))

    def along(self, directions: np.ndarray) -> np.ndarray:
        """(k, M), of each row along whitened directions (k, d)."""
        model, unravel = self.problem.model, posterior_of(self.problem).unravel
        found = [np.zeros((0, len(self.is_whole)))]
        for start in range(0, len(directions), NEW_LIMITS):
            some = directions[start : start + NEW_LIMITS] @ self.whitening.T
            padded = np.pad(some, ((0, NEW_LIMITS - len(some)), (0, 0)))
            made = _compiled()(model, unravel, self.expansion.centre, padded, self.problem.rows)
            found.append(np.asarray(made)[: len(some)])
        return np.concatenate(found)

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
        return np.where(self.is_whole, weights, weights * (MOST_CURVATURE / largest))


class Within(NamedTuple):
    """Weights within the limit on curvature, and the ridge of the problem that they solve."""

    weights: np.ndarray
    ridge: float
    known: np.ndarray
    """The directions (k, d) that limit them most, for the next solve."""


def solve_within(
    values: np.ndarray, totals: np.ndarray, anchor: np.ndarray, ridge: float, curvature: RowCurvature
) -> Within:
    """Non-negative least squares under the limit on curvature; whole rows count once, the others explain the rest."""
    is_free = ~curvature.is_whole
    rest = totals - values[:, curvature.is_whole].sum(axis=1)
    stiffness = STIFFNESS * float(np.mean(rest**2)) + np.finfo(float).tiny
    directions = curvature.known[np.any(curvature.known != 0, axis=1)]
    limits, near = Limits(curvature.along(directions)[:, is_free], stiffness), anchor[is_free]
    equations = NormalEquations.of(values[:, is_free], rest)
    weights, used, largest, mean = np.ones(len(anchor)), ridge, np.inf, near
    for number in range(MOST_SOLVES):
        near, used = nonnegative_ridge(equations, anchor[is_free], ridge, limits, near=near)
        newest = 1.0 if number == 0 or curvature.is_rough else NEWEST
        mean = newest * near + (1.0 - newest) * mean
        weights[is_free] = mean
        found = curvature.of(weights)
        if not np.all(np.isfinite(found)):
            return Within(np.full(len(anchor), np.nan), used, curvature.known)
        spectrum, vectors = largest_pairs(found, NEW_LIMITS)
        largest = float(spectrum[-1])
        good = ROUGH_CURVATURE if curvature.is_rough else _good_enough(values[:, is_free], rest, mean)
        if largest <= good:
            break
        beyond = vectors[:, spectrum > 1.0].T
        directions = np.concatenate([directions, beyond])
        coefficients = np.concatenate([limits.coefficients, curvature.along(beyond)[:, is_free]])
        limits = limits._replace(coefficients=coefficients)
    nearest = np.argsort(-(limits.coefficients @ near), kind="stable")[: len(curvature.known)]
    known = np.zeros_like(curvature.known)
    known[: len(nearest)] = directions[nearest]
    return Within(curvature.scaled(weights, largest), used, known)


def _good_enough(values: np.ndarray, rest: np.ndarray, weights: np.ndarray) -> float:
    """The largest eigenvalue with which weights may be scaled: a share of them is a share of what they explain."""
    explained = values @ weights
    left = float(np.mean((rest - explained) ** 2))
    lost = max(MOST_LOST * left, 2.0 * NEGLIGIBLE_LOST)
    share = np.sqrt(lost / max(float(np.mean(explained**2)), np.finfo(float).tiny))
    return float(
        np.clip(MOST_CURVATURE / max(1.0 - share, MOST_CURVATURE / GOOD_CURVATURE), BEST_CURVATURE, GOOD_CURVATURE)
    )


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
