"""How far from the mode its Gaussian can be believed.

Rows are chosen, chains begin and the first equations are made at draws of the Laplace approximation. On a curved ridge,
such as that of effects times their unknown scale, it is narrow across and long along a tangent, and its draws end up
where counts are expected by the million. So the remainder of the log-likelihood, what its expansion to second order
does not explain, is looked at along a few draws first, on the sample of rows that is in memory; where it is large the
draws are brought nearer to the mode, by halves, until it is not. Whatever moves the chains goes on from there by
itself.

It may also be much too narrow: for a level without a single event the likelihood is flat on one side, and the posterior
is as wide as its prior. Draws of chains tell, parameter by parameter. Where they are far wider, trajectories keep to
the Gaussian, and slices along the parameter do the rest (:mod:`coreset_mcmc.methods.least_squares.sampler`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coreset_mcmc.core.trees import positions_of
from coreset_mcmc.posterior.at_positions import summed_differences
from coreset_mcmc.posterior.by_passes import posterior_of
from coreset_mcmc.posterior.newton import LaplaceApproximation
from coreset_mcmc.posterior.problem import Problem

NUM_PROBES = 15
"""With the mode itself, a group of positions that share a program."""
NARROWER = 0.5 ** np.arange(1, 9)
ALLOWED, ALLOWED_PER_COORDINATE = 20.0, 2.0
"""Nats of a remainder with which a draw is of use."""
ENOUGH = 0.75
"""Share of the draws that must be of use."""
DIFFERENT = 1.5
"""A standard deviation of draws that is so many times another tells more than chance."""


def believable_width(problem: Problem, centre: np.ndarray, gaussian: LaplaceApproximation) -> tuple[float, int]:
    """The largest of 1, 1/2, 1/4, ... by which draws of the Gaussian may be scaled, and the rows evaluated for it."""
    if problem.model.log_concave:
        return 1.0, 0
    resident = problem.passes.resident
    factor = problem.data.size / len(resident.indices)
    few = problem.passes.weighted(resident.rows, np.full(len(resident.indices), factor))
    at = replace(posterior_of(problem), rows=few).derivatives(centre, "how far the Gaussian goes")
    noise = np.random.default_rng(0).normal(size=(NUM_PROBES, centre.size))

    def are_of_use(widths: np.ndarray) -> np.ndarray:
        flat = np.concatenate(
            [replace(gaussian, scale_factor=width * gaussian.scale_factor).draws(noise) for width in widths]
        )
        values = summed_differences(
            few,
            problem.model,
            positions_of(problem.position, np.concatenate([centre[None], flat])),
            "how far the Gaussian goes",
        )[1:]
        steps = flat - centre
        with np.errstate(all="ignore"):
            remainders = values - steps @ at.gradient - 0.5 * np.einsum("ki,ij,kj->k", steps, at.hessian, steps)
            is_small = np.abs(remainders) <= ALLOWED + ALLOWED_PER_COORDINATE * centre.size
        result: np.ndarray = is_small.reshape(len(widths), NUM_PROBES).mean(axis=1) >= ENOUGH
        return result

    count = len(resident.indices)
    num_evaluations = (1 + centre.size + NUM_PROBES) * count
    if are_of_use(np.ones(1))[0]:
        return 1.0, num_evaluations
    is_of_use = are_of_use(NARROWER)
    width = NARROWER[np.argmax(is_of_use)] if is_of_use.any() else NARROWER[-1]
    return float(width), num_evaluations + NUM_PROBES * len(NARROWER) * count


def as_wide_as(scale: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """A factor (d, d) of a covariance, stretched along parameters whose draws (J, d) are wider or narrower by far."""
    known, seen = np.sqrt(np.sum(scale**2, axis=1)), flat.std(axis=0, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = seen / known
        is_different = np.isfinite(ratio) & (ratio > 0) & (np.abs(np.log(ratio)) > np.log(DIFFERENT))
    return scale * np.where(is_different, ratio, 1.0)[:, None]
