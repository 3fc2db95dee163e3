"""The estimated KL of the final weights, from draws that training has not seen, and from places around them."""

from __future__ import annotations

import time
from typing import NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.trees import first_position
from coreset_mcmc.core.types import Position
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.driver.cost import Cost
from coreset_mcmc.methods.contract import Trained
from coreset_mcmc.methods.law import Law
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.at_positions import GROUP
from coreset_mcmc.posterior.distance import Surveyed, survey
from coreset_mcmc.posterior.support import bounding_rows, told
from coreset_mcmc.posterior.target import CoresetTarget

FEWEST_DRAWS, MOST_DRAWS, EVALUATIONS = GROUP, 12 * GROUP, 100_000_000
"""Draws in the estimate; each costs an evaluation of all rows, and its satellite another, so there are fewer with very
many rows. Sixteen know the estimate to about a third of itself.
"""
FEW_DRAWS = 4 * GROUP
"""At most, where only the order of magnitude matters."""

SEED = 20_240_229
"""Of the places around the draws, which are the same for the same draws."""


class Check(NamedTuple):
    """What was seen, nothing where draws are not those of a coreset posterior; and what it took."""

    surveyed: Surveyed | None
    cost: Cost
    beyond: str = ""
    """Which rows forbid some of the draws, and where; empty if none does."""

    @property
    def kl_estimate(self) -> float:
        """In nats; NaN if nothing was seen, or nothing is told by it."""
        return float("nan") if self.surveyed is None else self.surveyed.kl_estimate


def check_coreset(
    model: Model, rows: Rows, trained: Trained, draws: Position, starts: Position, most_draws: int = MOST_DRAWS
) -> Check:
    """From draws (draw, chain, ...) of the coreset and their satellites: one pass, and a few if draws are impossible.

    ``starts`` are positions that all rows allow.
    """
    if trained.law is not Law.CORESET or trained.coreset is None:
        return Check(None, Cost.of())
    began = time.perf_counter()
    num_draws = int(np.clip(EVALUATIONS // rows.size // (2 * GROUP) * GROUP, FEWEST_DRAWS, most_draws))

    def spread(leaf: np.ndarray) -> np.ndarray:
        """Evenly spaced draws, chain after chain; all of them if there are fewer."""
        kept = np.asarray(leaf).reshape(-1, *leaf.shape[2:])
        result: np.ndarray = kept[np.linspace(0, len(kept) - 1, min(num_draws, len(kept))).astype(int)]
        return result

    target: CoresetTarget = trained.problem.target
    positions, weights = jax.tree.map(spread, draws), np.asarray(target.weights)
    few = rows.weighted(jax.tree.map(np.asarray, target.rows), weights)
    generator = np.random.default_rng(SEED)
    surveyed = survey(generator, model, rows, few, target.term, positions, "final check")[0]
    count = 2 * surveyed.num_draws
    cost = Cost(time.perf_counter() - began, 0.0, count, count * (rows.size + weights.size), "total reached")
    is_possible = np.isfinite(surveyed.draws.full)
    beyond = "" if is_possible.all() else _beyond(model, rows, positions, is_possible, starts)
    return Check(surveyed, cost, beyond)


def _beyond(model: Model, rows: Rows, positions: Position, is_possible: np.ndarray, starts: Position) -> str:
    """The rows that forbid draws, in words."""
    allowed, forbidden = (
        jax.tree.map(lambda leaf, chosen=chosen: leaf[chosen], positions) for chosen in (is_possible, ~is_possible)
    )
    bounds = bounding_rows(rows, model, allowed if is_possible.any() else starts, forbidden)
    return told(bounds, first_position(positions))
