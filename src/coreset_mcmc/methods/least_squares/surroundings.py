"""A look around the draws of a window before it is believed that nothing is left to explain.

Equations L w = T of draws inside one step of the log-likelihood are 0 w = 0: any weights solve them, and an estimate
of zero from them is no estimate. The same holds, less plainly, where the full posterior has its mass beside the draws.
So weights that a window finds good enough are judged once more with satellites of some of its draws
(:mod:`coreset_mcmc.posterior.satellites`), on sums over all rows. Where these disagree training goes on, and the
satellites that either posterior cares for take the places of their draws in the window: the next solve sees what the
draws did not.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.randomness import generator_of
from coreset_mcmc.core.types import Key, Position
from coreset_mcmc.posterior.at_positions import GROUP
from coreset_mcmc.posterior.distance import LogDensities, survey
from coreset_mcmc.posterior.gaussian_term import GaussianTerm
from coreset_mcmc.posterior.problem import Problem

FEWEST, MOST, EVALUATIONS = GROUP, 8 * GROUP, 100_000_000
"""Draws that get a satellite, fewer with very many rows."""

CARED_FOR = 10.0
"""Nats below its draw down to which a satellite is of interest to a posterior."""


class Surroundings(NamedTuple):
    """What a look around has found."""

    kl_estimate: float
    """NaN if rows say the same everywhere."""
    positions: Position
    """The draws (J, ...), with satellites in the places of some."""
    num_evaluations: int


def look_around(
    key: Key, problem: Problem, weights: np.ndarray, term: GaussianTerm | None, positions: Position
) -> Surroundings:
    """Around draws (J, ...) of the coreset posterior with these weights."""
    num_draws, size = len(jax.tree.leaves(positions)[0]), problem.data.size
    count = min(num_draws, int(np.clip(EVALUATIONS // size // (2 * GROUP) * GROUP, FEWEST, MOST)))
    places = np.linspace(0, num_draws - 1, count).astype(int)
    some = jax.tree.map(lambda leaf: np.asarray(leaf)[places], positions)
    few = problem.passes.weighted(jax.tree.map(np.asarray, problem.rows), weights)
    found, around = survey(
        generator_of(key), problem.model, problem.passes, few, term, some, "looking around the draws"
    )
    is_put = _is_cared_for(found.draws, found.around)

    def mixed(leaf: np.ndarray, other: np.ndarray) -> np.ndarray:
        result = np.array(leaf)
        result[places[is_put]] = np.asarray(other)[is_put]
        return result

    evaluations = 2 * count * (size + problem.coreset_size)
    return Surroundings(found.kl_estimate, jax.tree.map(mixed, positions, around), evaluations)


def _is_cared_for(draws: LogDensities, around: LogDensities) -> np.ndarray:
    """Marks satellites that all rows allow and whose density is not negligible under one of the posteriors."""
    with np.errstate(invalid="ignore"):
        is_near = [there - here > -CARED_FOR for there, here in zip(around, draws, strict=True)]
    result: np.ndarray = (is_near[0] | is_near[1]) & np.isfinite(around.full) & np.isfinite(around.coreset)
    return result
