"""Ridge regression with non-negative coefficients and soft upper limits, by block pivoting.

    minimise  |A w - b|^2 / J + ridge |s (w - anchor)|^2 + stiffness |(C w - 1)_+|^2   over  w >= 0,

A (J, M), b (J,), with s_m the root mean square of column m, so that ``ridge`` is a pure number: the same damping
relative to the curvature in every coordinate, as Marquardt's. Limits C (k, M) are optional. A solution splits the
coordinates into those that are free and those at zero, and the limits into those that are exceeded and those that are
kept; each round solves for the free ones and exchanges all that are on the wrong side (Judice and Pires 1994; Kim and
Park 2011). With columns that nearly depend on each other and a ridge close to rounding such exchanges can go round in
circles. The textbook way out, one coordinate at a time, then takes hundreds of factorisations; here a path through the
inside leads to the right sides in some twenty (:mod:`coreset_mcmc.methods.least_squares.interior`). If that fails,
too, the ridge grows tenfold, which is a shorter step of the iteration that asked, and the answer says so. SciPy's
``nnls`` frees one coordinate at a time: with M = 2 000 and J = 800 it takes eight times as long.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from coreset_mcmc.methods.least_squares.interior import solve_from_inside

MAX_POOR_EXCHANGES = 5
"""Exchanges in a row that may fail to bring down the number of wrong coordinates."""

MOST_RIDGE = 1e6
"""Beside which the anchor is the answer."""

NEARLY_LIMITED = 0.9
"""Limits that are used up so far nearby are kept in sight."""
FORGOTTEN = 1e-9
"""Slope, beside the largest entry of the right-hand side, with which a coordinate that was left out comes in."""
NEGLIGIBLE = 1e-9
"""Beside the largest coordinate, at the end of a path that exchanges did not finish: on the border nothing is zero."""

ROUNDING = 1e-12
"""Negative numbers closer to zero than this are rounding errors and count as zero.

Coordinates are compared with the largest coordinate, slopes with the largest entry of the right-hand side.
"""


class Limits(NamedTuple):
    """Sums C w (k,) that should not exceed one."""

    coefficients: np.ndarray
    """C (k, M)."""
    stiffness: float
    """What an excess of one costs."""


class Solution(NamedTuple):
    """Weights, and the ridge of the problem that they solve."""

    weights: np.ndarray
    """(M,): the minimiser, or an approximation to it if ``max_iterations`` ended the search; NaN if there is none."""
    ridge: float
    """The one asked for, or a larger one if exchanges went round in circles."""


class _Quadratic(NamedTuple):
    """The problem in coordinates whose columns have a root mean square of one."""

    gram: np.ndarray
    target: np.ndarray
    start: np.ndarray
    limits: np.ndarray
    stiffness: float

    def solve(self, is_free: np.ndarray, is_exceeded: np.ndarray, ridge: float) -> np.ndarray:
        """The minimiser with the other coordinates at zero and only the exceeded limits at work."""
        free = np.flatnonzero(is_free)
        point = np.zeros(len(is_free))
        if not len(free):
            return point
        limits = self.limits[np.ix_(np.flatnonzero(is_exceeded), free)]
        curvature = self.gram[np.ix_(free, free)] + self.stiffness * limits.T @ limits
        curvature[np.diag_indices(len(free))] += ridge
        pull = (self.target + ridge * self.start)[free] + self.stiffness * limits.sum(axis=0)
        point[free] = cho_solve(cho_factor(curvature, overwrite_a=True, check_finite=False), pull, check_finite=False)
        return point

    def wrong_sides(
        self, point: np.ndarray, is_free: np.ndarray, is_exceeded: np.ndarray, ridge: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Coordinates and limits that are on the wrong side of what was assumed of them."""
        excess = self.limits @ point - 1.0
        active = np.where(is_exceeded, excess, 0.0)
        pull = self.target + ridge * self.start
        slope = self.gram @ point + ridge * point - pull + self.stiffness * active @ self.limits
        is_negative = is_free & (point < -ROUNDING * np.abs(point).max(initial=0.0))
        is_wrong = is_negative | (~is_free & (slope < -ROUNDING * np.abs(pull).max(initial=0.0)))
        return is_wrong, is_exceeded ^ (excess > ROUNDING)


class NormalEquations(NamedTuple):
    """A'A / J and A'b / J of columns whose root mean square is one."""

    gram: np.ndarray
    target: np.ndarray
    scale: np.ndarray
    """s (M,)."""

    @classmethod
    def of(cls, matrix: np.ndarray, response: np.ndarray) -> NormalEquations:
        """Of A (J, M) and b (J,)."""
        scale = np.sqrt(np.mean(matrix**2, axis=0))
        scale = np.where(scale > 0, scale, 1.0)
        scaled = matrix / scale
        return cls(scaled.T @ scaled / len(matrix), response @ scaled / len(matrix), scale)


def nonnegative_ridge(
    equations: NormalEquations,
    anchor: np.ndarray,
    ridge: float,
    limits: Limits | None = None,
    *,
    near: np.ndarray | None = None,
    max_iterations: int = 200,
) -> Solution:
    """The minimiser for ``ridge``, which must be positive, or for a larger one.

    ``near`` (M,) is known to be close to it, by default the anchor; it makes the search shorter and changes nothing.
    """
    scale = equations.scale
    quadratic = _Quadratic(
        gram=equations.gram,
        target=equations.target,
        start=anchor * scale,
        limits=np.zeros((0, scale.size)) if limits is None else limits.coefficients / scale,
        stiffness=0.0 if limits is None else limits.stiffness,
    )
    try:
        point, ridge = _pivot(quadratic, scale * (anchor if near is None else near), float(ridge), max_iterations)
    except LinAlgError:
        point = np.full(scale.size, np.nan)
    return Solution(np.maximum(point, 0.0) / scale, ridge)


class _Pivoted(NamedTuple):
    """Where exchanges ended."""

    point: np.ndarray
    is_free: np.ndarray
    is_exceeded: np.ndarray
    has_settled: bool
    """Whether nothing is on the wrong side."""


def _pivot(quadratic: _Quadratic, near: np.ndarray, ridge: float, max_iterations: int) -> tuple[np.ndarray, float]:
    """Exchange until nothing is on the wrong side, from where the anchor or an inner path leads, or with more ridge."""
    found = _exchanged(quadratic, near > 0, quadratic.limits @ near > 1.0, ridge, max_iterations)
    if not found.has_settled:
        found = _from_inside(quadratic, near, ridge, max_iterations)
    while not found.has_settled and ridge < MOST_RIDGE:
        ridge *= 10.0
        found = _exchanged(quadratic, found.is_free, found.is_exceeded, ridge, max_iterations)
    return found.point, ridge


def _from_inside(quadratic: _Quadratic, near: np.ndarray, ridge: float, max_iterations: int) -> _Pivoted:
    """Where a path through the inside ends, to the last digit if exchanges settle there.

    A step along the path costs the cube of the number of coordinates. Mostly less than half of them are free in the
    end, and those are nearly known. So the path is followed with them alone, and again with what that has forgotten.
    """
    curvature = quadratic.gram.copy()
    curvature[np.diag_indices(len(curvature))] += ridge
    pull, limits = quadratic.target + ridge * quadratic.start, quadratic.limits
    strength = float(np.abs(pull).max(initial=0.0))
    is_in, is_limit = (near > 0) | (not np.any(near > 0)), limits @ near > NEARLY_LIMITED
    while True:
        rows, columns = np.flatnonzero(is_limit), np.flatnonzero(is_in)
        some_limits = limits[np.ix_(rows, columns)]
        ends = solve_from_inside(
            curvature[np.ix_(columns, columns)], pull[columns], some_limits, quadratic.stiffness, near[columns]
        )
        here, point, is_free, is_exceeded = ends.point, np.zeros(len(near)), is_in.copy(), is_limit.copy()
        is_free[columns] = here.x * here.z.max(initial=0.0) > here.z * here.x.max(initial=0.0)
        is_exceeded[rows] = here.y > quadratic.stiffness * here.t
        found = _exchanged(quadratic, is_free, is_exceeded, ridge, max_iterations)
        if found.has_settled or not ends.has_arrived:
            return found
        slope = curvature[:, columns] @ here.x - pull + here.y @ limits[rows]
        is_forgotten = ~is_in & (slope < -FORGOTTEN * strength)
        is_neglected = ~is_limit & (limits[:, columns] @ here.x > 1.0)
        if not (is_forgotten.any() or is_neglected.any()):
            point[columns] = np.where(here.x > NEGLIGIBLE * here.x.max(), here.x, 0.0)
            return _Pivoted(point, is_free, is_exceeded, True)
        is_in, is_limit = is_in | is_forgotten, is_limit | is_neglected


def _exchanged(
    quadratic: _Quadratic, is_free: np.ndarray, is_exceeded: np.ndarray, ridge: float, max_iterations: int
) -> _Pivoted:
    """Until nothing is on the wrong side, or exchanges no longer help."""
    fewest_wrong, num_poor, point = is_free.size + is_exceeded.size + 1, 0, np.zeros(is_free.size)
    for _ in range(max_iterations):
        point = quadratic.solve(is_free, is_exceeded, ridge)
        is_wrong, is_misjudged = quadratic.wrong_sides(point, is_free, is_exceeded, ridge)
        num_wrong = int(is_wrong.sum() + is_misjudged.sum())
        if num_wrong == 0:
            return _Pivoted(point, is_free, is_exceeded, True)
        num_poor = 0 if num_wrong < fewest_wrong else num_poor + 1
        fewest_wrong = min(fewest_wrong, num_wrong)
        if num_poor > MAX_POOR_EXCHANGES:
            break
        is_free, is_exceeded = is_free ^ is_wrong, is_exceeded ^ is_misjudged
    return _Pivoted(point, is_free, is_exceeded, False)
