"""What the search for the mode knows of all rows: their log-likelihood to second order at one position.

Around a centre c, with delta = theta - c, gradient g and curvature A (minus the Hessian) of the log-likelihood of all
rows,

    sum_n l_n(theta) = const + g'delta - delta' A delta / 2 + sum_n r_n(theta),

r_n being what the expansion of row n leaves. A coreset with the same gradient and curvature has the log-likelihood

    sum_m w_m l_m(theta) + (g - g_w)'delta - delta' (A - A_w) delta / 2,

g_w and A_w being those of the weighted rows: a Gaussian term with precision P = A - A_w goes with every w, and what the
weights have to explain are the remainders alone, R(theta) = sum_m w_m r_m(theta). With w = 0 this is the Laplace
approximation with the exact prior. The term is proper only if P is positive semi-definite
(:mod:`coreset_mcmc.methods.least_squares.curvature`).

Where A itself has negative directions, which only the prior makes up for, they count as flat: w = 0 is always allowed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coreset_mcmc.core.types import Batch, pytree
from coreset_mcmc.posterior.by_passes import posterior_of
from coreset_mcmc.posterior.gaussian_term import GaussianTerm
from coreset_mcmc.posterior.newton import NewtonSearchState
from coreset_mcmc.posterior.problem import Problem

FLAT = 1e-8
"""Curvature of the likelihood below this share of the posterior's counts as this share."""


@pytree
@dataclass(frozen=True)
class Expansion:
    """The log-likelihood of all rows at the centre, to second order."""

    centre: np.ndarray
    """c (d,), flattened."""
    gradient: np.ndarray
    """g (d,)."""
    curvature: np.ndarray
    """A (d, d), positive definite."""
    whitening: np.ndarray
    """W (d, d) with W' A W = I."""
    is_known: Any
    """Whether the mode has been found: before, and without a mode, there is no term."""

    def quadratic(self, flat: np.ndarray) -> np.ndarray:
        """g'delta - delta' A delta / 2 (K,) at flat positions (K, d)."""
        return GaussianTerm(self.centre, self.gradient, self.curvature).at(flat)

    def term(self, problem: Problem, rows: Batch, weights: np.ndarray, slope: np.ndarray | float = 0.0) -> GaussianTerm:
        """What these weights leave of gradient and curvature, and a slope (d,) that goes with them."""
        gradient, curvature = weighted_derivatives(problem, rows, weights, self.centre)
        precision = self.curvature - curvature
        return GaussianTerm(self.centre, self.gradient - gradient + slope, 0.5 * (precision + precision.T))


def weighted_derivatives(
    problem: Problem, rows: Batch, weights: np.ndarray, centre: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gradient g_w (d,) and curvature A_w (d, d) of the log-likelihood of weighted rows."""
    posterior = replace(posterior_of(problem), rows=problem.passes.weighted(rows, weights))
    found, prior = posterior.derivatives(centre, "derivatives of the coreset"), posterior.prior_derivatives(centre)
    return found.gradient - prior.gradient, prior.hessian - found.hessian


def unknown_expansion(num_coordinates: int) -> Expansion:
    """Before the mode is found."""
    nothing, unit = np.zeros(num_coordinates), np.eye(num_coordinates)
    return Expansion(nothing, nothing, unit, unit, np.asarray(False))


def expansion_at(problem: Problem, search: NewtonSearchState, scale: np.ndarray) -> Expansion:
    """Where a search has converged: the likelihood's part of its derivatives.

    ``scale`` (d, d) is a factor of the covariance of the posterior, in whose units curvature is flat or not.
    """
    posterior = posterior_of(problem)
    prior = posterior.prior_derivatives(search.position)
    curvature = prior.hessian - search.derivatives.hessian
    spectrum, vectors = np.linalg.eigh(scale.T @ curvature @ scale)
    whitening = scale @ (vectors / np.sqrt(np.maximum(spectrum, FLAT)))
    if spectrum[0] < FLAT:
        inverse = np.linalg.solve(scale.T, vectors * np.sqrt(np.maximum(spectrum, FLAT)))
        curvature = inverse @ inverse.T
    gradient = search.derivatives.gradient - prior.gradient
    known = Expansion(search.position, gradient, curvature, whitening, np.asarray(True))
    is_finite = all(np.all(np.isfinite(part)) for part in (gradient, curvature, whitening))
    return known if is_finite else replace(known, is_known=np.asarray(False))
