"""Non-negative ridge regression with soft limits from the inside: where exchanges go round in circles.

    minimise  x'H x / 2 - q'x + stiffness |(C x - 1)_+|^2 / 2   over  x >= 0.

With multipliers z >= 0 of x, y >= 0 of the limits and their room t = 1 + y / stiffness - C x the solution has

    H x - q + C'y = z,      x z = 0,      t y = 0.

A primal-dual method (Mehrotra 1992) follows the path on which these products are equal and go to zero: some twenty
steps, each one factorisation, whatever depends on what. Exchanges then find the last digits. By hand, for solvers of
the field (OSQP, Clarabel, quadprog) take the matrices sparse, or a constraint for each limit, and are no dependency.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

MOST_STEPS = 60
TOLERANCE = 1e-11
"""Of the products, beside the largest coordinate times the largest entry of q."""
FIRST_SHARE = 0.1
"""Of the largest coordinate, of the largest entry of q and of a limit: where the path is entered."""
NEARLY_ALL = 0.995
"""Of the way to the border."""


class Inside(NamedTuple):
    """A point on the path, or a step along it."""

    x: np.ndarray
    z: np.ndarray
    y: np.ndarray
    t: np.ndarray

    def moved(self, step: Inside, share: float) -> Inside:
        return Inside(*(part + share * change for part, change in zip(self, step, strict=True)))

    @property
    def gap(self) -> float:
        """The mean product."""
        return float((self.x @ self.z + self.t @ self.y) / (self.x.size + self.t.size))

    def room(self, step: Inside) -> float:
        """The share of a step, at most one, with which everything stays non-negative."""
        shares = [1.0]
        for part, change in zip(self, step, strict=True):
            is_falling = change < 0
            if is_falling.any():
                shares.append(float(np.min(-part[is_falling] / change[is_falling])))
        return min(shares)


class Ends(NamedTuple):
    """Where the path has led, and whether that is its end."""

    point: Inside
    has_arrived: bool


class _Newton(NamedTuple):
    """Newton's steps from one point, which share a factorisation."""

    here: Inside
    limits: np.ndarray
    softness: float
    slope: np.ndarray
    """What H x - q + C'y and z differ by."""
    excess: np.ndarray
    """What t and 1 + y / stiffness - C x differ by."""
    width: np.ndarray
    share: np.ndarray
    factor: tuple[np.ndarray, bool]

    @classmethod
    def at(cls, here: Inside, curvature: np.ndarray, pull: np.ndarray, limits: np.ndarray, softness: float) -> _Newton:
        slope = curvature @ here.x - pull + limits.T @ here.y - here.z
        excess = here.t - (1.0 + softness * here.y - limits @ here.x)
        width = here.t + softness * here.y
        share = here.y / width
        shared = limits * np.sqrt(share)[:, None]
        matrix = curvature + shared.T @ shared
        matrix[np.diag_indices(here.x.size)] += here.z / here.x
        factor = cho_factor(matrix, overwrite_a=True, check_finite=False)
        return cls(here, limits, softness, slope, excess, width, share, factor)

    def step(self, of_x: np.ndarray, of_limits: np.ndarray) -> Inside:
        """To products x z and t y that change by these amounts."""
        here = self.here
        known = (of_limits + here.y * self.excess) / self.width
        pushed = of_x / here.x - self.slope - self.limits.T @ known
        x = cho_solve(self.factor, pushed, check_finite=False)
        y = self.share * (self.limits @ x) + known
        return Inside(x, (of_x - here.z * x) / here.x, y, self.softness * y - self.limits @ x - self.excess)


def solve_from_inside(
    curvature: np.ndarray, pull: np.ndarray, limits: np.ndarray, stiffness: float, near: np.ndarray
) -> Ends:
    """H (n, n), q (n,), C (k, n), and a point whose size is about right."""
    size, strength = float(np.abs(near).max(initial=0.0)) or 1.0, float(np.abs(pull).max(initial=0.0)) or 1.0
    softness = 1.0 / stiffness if len(limits) else 0.0
    x, y = np.maximum(near, FIRST_SHARE * size), np.full(len(limits), FIRST_SHARE * strength)
    here = Inside(x, np.full(x.size, strength), y, np.maximum(1.0 + softness * y - limits @ x, FIRST_SHARE))
    for _ in range(MOST_STEPS):
        newton = _Newton.at(here, curvature, pull, limits, softness)
        if here.gap <= TOLERANCE * size * strength and np.abs(newton.slope).max() <= TOLERANCE * strength:
            return Ends(here, True)
        straight = newton.step(-here.x * here.z, -here.t * here.y)
        ahead = here.moved(straight, here.room(straight))
        target = here.gap * (ahead.gap / here.gap) ** 3
        bent = newton.step(
            target - here.x * here.z - straight.x * straight.z, target - here.t * here.y - straight.t * straight.y
        )
        here = here.moved(bent, min(1.0, NEARLY_ALL * here.room(bent)))
    return Ends(here, False)
