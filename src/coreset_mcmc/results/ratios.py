"""Importance ratios from the coreset posterior to the full one, Pareto-smoothed (Vehtari et al. 2024).

The log-ratio of a draw is sum_n l_n - sum_m w_m l_m, without the Gaussian term of the coreset if it has one, up to a
constant: the prior cancels. All draws share one pass over
the rows; from each row its value at the first draw is taken away before rows are summed. A draw that is impossible
under some row has the log-ratio minus infinity: the full posterior is zero there, and so is its weight.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from coreset_mcmc.core.trees import flat_positions
from coreset_mcmc.core.types import Position
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.at_positions import summed_differences

FLAT = 1e-6
"""Log-ratios that differ by less have no tail to fit."""
FEWEST_DRAWS = 25
"""The largest fifth of them is their tail, which needs five to be fitted."""


class Ratios(NamedTuple):
    """Smoothed and normalised log-weights (S,), and the shape of their tail."""

    log_weights: np.ndarray
    pareto_k: float

    @property
    def effective_size(self) -> float:
        """Of the weights alone: one over the sum of their squares; zero if no draw has any weight."""
        squares = float(np.sum(np.exp(2.0 * self.log_weights)))
        return 1.0 / squares if squares > 0.0 else 0.0


def good_shape(count: int) -> float:
    """The largest k-hat at which ``count`` weighted draws can be trusted."""
    return float(min(1.0 - 1.0 / np.log10(count), 0.7))


def ratios_to_full(model: Model, positions: Position, rows: Rows, coreset: SelectedRows, *, description: str) -> Ratios:
    """Of draws (S, ...) of a coreset posterior."""
    return smoothed(log_ratios_to_full(model, positions, rows, coreset, description=description))


def log_ratios_to_full(
    model: Model, positions: Position, rows: Rows, coreset: SelectedRows, *, description: str
) -> np.ndarray:
    """Before smoothing, (S,), up to a constant; one pass over the rows, in bounded memory.

    A row under which the first draw is impossible enters as it is, which shifts all draws alike.
    """
    chosen = weighted_rows(rows, coreset)
    own = summed_differences(chosen, model, positions, description)
    if coreset.term is not None:
        own = own + coreset.term.at(flat_positions(positions))
    full = summed_differences(rows, model, positions, description)
    with np.errstate(invalid="ignore"):
        log_ratios = full - own
    return np.where(log_ratios < np.inf, log_ratios, -np.inf)


def weighted_rows(rows: Rows, coreset: SelectedRows) -> Rows:
    """The rows of a coreset, which count as often as they weigh."""
    return rows.weighted(rows.source.take(np.asarray(coreset.indices)), coreset.weights)


def smoothed(log_ratios: np.ndarray) -> Ratios:
    """Pareto-smoothed importance weights; k-hat is infinite if there is no tail to fit."""
    is_possible = np.isfinite(log_ratios)
    if not is_possible.any():
        return Ratios(np.full(len(log_ratios), -np.inf), math.inf)
    log_weights = np.full(len(log_ratios), -np.inf)
    log_weights[is_possible], shape = _smoothed_tail(log_ratios[is_possible] - log_ratios[is_possible].max())
    normalised = log_weights - logsumexp(log_weights)
    if is_possible.all() and np.ptp(log_ratios) < FLAT:
        return Ratios(normalised, 0.0)
    return Ratios(normalised, shape if math.isfinite(shape) else math.inf)


def _smoothed_tail(log_ratios: np.ndarray) -> tuple[np.ndarray, float]:
    """Of finite ratios; as they are, and NaN, where they are few or the largest of them are all the same."""
    if len(log_ratios) < FEWEST_DRAWS:
        return log_ratios, math.nan
    from arviz_stats.base import array_stats  # noqa: PLC0415 - takes a second

    try:
        smooth, shape = array_stats.psislw(-log_ratios)
    except ValueError:
        return log_ratios, math.nan
    return smooth, float(shape)
