"""What samples the trained coreset: trajectories, and slices along parameters that they would take for ever to cross.

Beside a Gaussian term the Gaussian at the mode knows how large steps may be. A parameter whose draws are far wider has
a wall on one side and a plain on the other (:mod:`coreset_mcmc.kernels.hmc_and_lines`).
"""

from __future__ import annotations

import jax
import numpy as np

from coreset_mcmc.core.types import Position
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.methods.contract import Trained
from coreset_mcmc.methods.law import Law
from coreset_mcmc.methods.least_squares.state import LeastSquaresState, gaussian_of, known_expansion
from coreset_mcmc.methods.sampling import frozen_problem
from coreset_mcmc.methods.tuned_sampling import Lines, TunedSampling
from coreset_mcmc.posterior.problem import Problem

FAR_WIDER = 5.0
"""A parameter whose draws are so many times as wide as the Gaussian at the mode is crossed by slices of its own."""


def sampler_after(state: LeastSquaresState) -> TunedSampling:
    """Shaped as the last windows were."""
    scale, lines = np.asarray(state.scale), None
    if known_expansion(state) is not None and not np.any(state.is_held):
        scale, places, widths = apart(scale, np.asarray(gaussian_of(state).scale_factor))
        lines = Lines(jax.device_put(places), jax.device_put(widths)) if places.size else None
    return TunedSampling(jax.device_put(scale), lines=lines)


def apart(scale: np.ndarray, gaussian: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of a factor (d, d) of the covariance of draws what trajectories move by, and the rest.

    That is the factor, as narrow as the Gaussian wherever draws are far wider, and where that is (k,), with the
    standard deviations of the draws (k,).
    """
    widths, narrow = (np.sqrt(np.sum(factor**2, axis=1)) for factor in (scale, gaussian))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = widths / narrow
    is_far = np.isfinite(ratio) & (ratio > FAR_WIDER)
    return scale / np.where(is_far, ratio, 1.0)[:, None], np.flatnonzero(is_far), widths[is_far]


def by_trajectories(
    problem: Problem, coreset: SelectedRows, positions: Position, sampler: TunedSampling, num_chains: int
) -> Trained:
    """The coreset posterior, sampled from where chains are."""
    frozen = jax.device_put(frozen_problem(problem, coreset, positions, num_chains))
    return Trained(sampler, frozen, coreset, Law.CORESET)
