"""Folding draws onto one of the symmetric copies of a posterior.

Labels of a mixture can be exchanged and the signs of a product's factors flipped without a change of the posterior. No
sampler here crosses from one copy to another, nor needs to: every draw is moved to one representative before moments
and effective sample sizes are compared.
"""

from __future__ import annotations

import numpy as np

from coreset_mcmc_benchmarks.draws import Draws


def unchanged(draws: Draws) -> Draws:
    """A posterior without symmetries."""
    return draws


def permuted(draws: Draws, order: np.ndarray) -> Draws:
    """Components of every variable of a mixture taken in ``order`` (chain, draw, component)."""
    return {name: np.take_along_axis(values, order, axis=-1) for name, values in draws.items()}


def sorted_by_mean(draws: Draws) -> Draws:
    """Components of a mixture in ascending order of their means."""
    return permuted(draws, np.argsort(draws["means"], axis=-1))


def first_factor_positive(draws: Draws) -> Draws:
    """The branch of a product on which the first factor is positive."""
    return {**draws, "factors": draws["factors"] * np.where(draws["factors"][..., :1] < 0, -1.0, 1.0)}
