"""A slope beside the weights: what few rows miss of a skewed posterior is, above all, where its mean is.

An expansion to second order at the mode puts the mean of a skewed posterior at its mode. The remainders of the rows
would have to say how far off that is, and few rows say it badly. But a slope s in the Gaussian term says it with d
numbers: the equations of a window become

    L w + Z s = T,        Z (J, k): the centred draws in units of the likelihood's curvature,

with s free of sign. It is solved for together with the weights: least squares with a free s are least squares in w
alone once the part that Z explains is taken from both sides. Then s follows from what the weights leave. (Among
Gaussians the one nearest in KL has the *expected* gradient, where the Laplace approximation has that at one point;
Opper and Archambeau 2009. Here the rows of the coreset take part.)

Only directions that the likelihood curves get a slope: elsewhere a tilt could make a prior improper. J draws know d
numbers with an error of their own, so that s is shrunk by what chance explains (James and Stein 1961).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from coreset_mcmc.core.trees import flat_positions
from coreset_mcmc.core.types import Position
from coreset_mcmc.methods.least_squares.equations import Window
from coreset_mcmc.methods.least_squares.expansion import Expansion

LEAST_INFORMED = 0.05
"""Variance of a direction, in units of the likelihood's curvature, below which the prior knows more than the rows."""

MOST_FEATURES = 0.5
"""Of the number of draws: with more directions than that their slopes are chance."""

LEAST_INDEPENDENT = 1e-8
"""What is new in a direction, as a share of the largest."""

LARGEST = 1.0
"""Standard deviations by which a slope may move the mean: beyond, an expansion is of no use."""


class Directions(NamedTuple):
    """The draws of a window along the directions that may have a slope."""

    basis: np.ndarray
    """Q (J, k) of Z = Q R, the centred draws: orthonormal."""
    triangle: np.ndarray
    """R (k, k), upper triangular."""
    to_slope: np.ndarray
    """(d, k): the slope of the flat position is this times the coefficients of Z."""

    def take_from(self, side: np.ndarray) -> np.ndarray:
        """One side of the equations, (J,) or (J, M), without what the directions explain of it."""
        result: np.ndarray = side - self.basis @ (self.basis.T @ side)
        return result

    def without(self, window: Window) -> Window:
        """Equations for the weights alone."""
        return Window(self.take_from(window.values), self.take_from(window.totals))

    def slope(self, residual: np.ndarray) -> np.ndarray:
        """s (d,) that explains the residual T - L w (J,), shrunk by what chance alone would explain."""
        num_draws, num_features = self.basis.shape
        along_basis = residual @ self.basis
        coefficients = solve_triangular(self.triangle, along_basis)
        explained = self.basis @ along_basis
        noise = np.sum((residual - explained) ** 2) * num_features / max(num_draws - num_features, 1)
        share = max(0.0, 1.0 - noise / max(float(np.sum(explained**2)), np.finfo(float).tiny))
        size = share * float(np.linalg.norm(coefficients))
        share *= min(1.0, LARGEST / size) if size > 0 else 0.0
        result: np.ndarray = self.to_slope @ (share * coefficients)
        return result


def directions_of(expansion: Expansion | None, positions: Position) -> Directions | None:
    """Of draws (J, ...); none without an expansion, with so many directions that their slopes would be chance, or with
    directions that depend on each other.
    """
    if expansion is None:
        return None
    delta = flat_positions(positions) - expansion.centre
    to_units = np.linalg.inv(expansion.whitening)
    features = (delta - delta.mean(axis=0)) @ to_units.T
    is_informed = np.var(features, axis=0) >= LEAST_INFORMED
    if not np.all(np.isfinite(features)) or not 0 < is_informed.sum() <= MOST_FEATURES * len(features):
        return None
    basis, triangle = np.linalg.qr(features[:, is_informed])
    sizes = np.abs(np.diagonal(triangle))
    if sizes.min() <= LEAST_INDEPENDENT * sizes.max():
        return None
    return Directions(basis, triangle, to_units[is_informed].T)


def pulled(window: Window, slope: np.ndarray, positions: Position) -> Window:
    """The equations with the slope's part taken from the sums: what is left for the weights to explain."""
    part = flat_positions(positions) @ slope
    return window._replace(totals=window.totals - (part - part.mean()))


def slope_beside(weights: np.ndarray, window: Window, directions: Directions | None, old: np.ndarray) -> np.ndarray:
    """s (d,) for weights, by what they leave of a window; none where no directions are known."""
    if directions is None:
        return np.zeros_like(old)
    return directions.slope(window.totals - window.values @ weights)
