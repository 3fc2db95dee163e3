"""The estimated KL of the final weights, from draws that training has not seen."""

from __future__ import annotations

import time
from typing import NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.trees import flat_positions
from coreset_mcmc.core.types import Position
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.driver.cost import Cost
from coreset_mcmc.methods.contract import Trained
from coreset_mcmc.methods.law import Law
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.at_positions import GROUP, summed_differences
from coreset_mcmc.posterior.target import CoresetTarget

FEWEST_DRAWS, MOST_DRAWS, EVALUATIONS = GROUP, 12 * GROUP, 100_000_000
"""Draws in the estimate; each costs an evaluation of all rows, so there are fewer with very many rows.

Sixteen know the estimate to about a third of itself.
"""


class Check(NamedTuple):
    """The estimate in nats, NaN where draws are not those of a coreset posterior, and what it took."""

    kl_estimate: float
    cost: Cost


def check_coreset(model: Model, rows: Rows, trained: Trained, draws: Position) -> Check:
    """Half the variance of the difference of log-likelihoods over draws (draw, chain, ...) of the coreset: one pass."""
    if trained.law is not Law.CORESET or trained.coreset is None:
        return Check(float("nan"), Cost.of())
    began = time.perf_counter()
    num_draws = int(np.clip(EVALUATIONS // rows.size // GROUP * GROUP, FEWEST_DRAWS, MOST_DRAWS))

    def spread(leaf: np.ndarray) -> np.ndarray:
        """Evenly spaced draws, chain after chain; repeated if there are too few."""
        kept = np.asarray(leaf).reshape(-1, *leaf.shape[2:])
        result: np.ndarray = kept[np.linspace(0, len(kept) - 1, num_draws).astype(int)]
        return result

    target: CoresetTarget = trained.problem.target
    positions = jax.tree.map(spread, draws)
    weights = np.asarray(target.weights)
    totals = summed_differences(rows, model, positions, "final check")
    few = rows.weighted(jax.tree.map(np.asarray, target.rows), weights)
    with np.errstate(invalid="ignore"):
        residual = totals - summed_differences(few, model, positions, "final check")
        if target.term is not None:
            residual = residual - target.term.at(flat_positions(positions))
        estimate = float(0.5 * np.var(residual, ddof=1))
    num_evaluations = num_draws * (rows.size + weights.size)
    return Check(estimate, Cost(time.perf_counter() - began, 0.0, num_draws, num_evaluations, "total reached"))
