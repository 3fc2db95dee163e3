"""The estimated KL from a coreset posterior to the full one, in nats; one estimate for all who make one.

With r = log pi - log pi_w up to a constant, KL(pi_w || pi) = log E_w exp(r) - E_w r. Several estimates from draws of
pi_w, and the largest counts:

- half the variance of r, which is right to second order and too small where pi_w is much narrower than pi;
- log mean exp(r) - mean r, which grows as it should there; what n draws miss of it on average is added;
- the same with satellites around the draws (:mod:`coreset_mcmc.posterior.satellites`), which sees mass of the full
  posterior beside the draws, and steps of the log-likelihood;
- what the tail of exp(r) says if it is heavier than means of draws can stand. For Gaussians of variances c < 1 and 1
  the ratios have a tail of shape k = 1 - c and the KL is (c - 1 - log c) / 2, so a shape has a KL.

A draw that is impossible under some row makes the distance infinite. Where rows say the same at all draws and around
them nothing is known, and the estimate is NaN: that is worse than any number.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.trees import first_position, flat_positions, num_positions
from coreset_mcmc.core.types import Position
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.at_positions import summed_differences
from coreset_mcmc.posterior.gaussian_term import GaussianTerm
from coreset_mcmc.posterior.problem import log_priors
from coreset_mcmc.posterior.satellites import satellites

NEGLIGIBLE = 0.01
"""Nats, below which all ratios are nearly equal and the shape of their tail is of no consequence."""
HEAVY_TAIL = 0.7
"""A shape above which no number of draws makes up for what the coreset posterior lacks (Vehtari et al. 2024)."""
HEAVIEST_TAIL = 0.99
"""Shapes above it count as this one, 1.8 nats: from some hundred draws a shape is known to a quarter."""
FEWEST_FOR_TAIL = 25
SAME = 1e-9
"""Log-likelihoods of all rows together that differ by less say the same."""


class LogDensities(NamedTuple):
    """Of both posteriors at some positions (S,), each up to a constant."""

    full: np.ndarray
    coreset: np.ndarray

    @property
    def log_ratios(self) -> np.ndarray:
        """r; minus infinity where the full posterior is zero, or is not known to be anything else."""
        with np.errstate(invalid="ignore"):
            difference = self.full - self.coreset
        return np.where(difference < np.inf, difference, -np.inf)


class Surveyed(NamedTuple):
    """Both posteriors at draws of the coreset posterior and at a satellite of each."""

    draws: LogDensities
    around: LogDensities
    is_told: bool
    """Whether rows say different things at different places of these."""
    reference: Position
    """One place: surveys with the same one share the constants of their log-densities."""

    @property
    def num_draws(self) -> int:
        """Half of the places."""
        return len(self.draws.full)

    def thinned(self, count: int) -> Surveyed:
        """At most ``count`` evenly spaced draws of these."""
        kept = np.linspace(0, self.num_draws - 1, min(count, self.num_draws)).astype(int)
        draws, around = (LogDensities(part.full[kept], part.coreset[kept]) for part in (self.draws, self.around))
        return self._replace(draws=draws, around=around)

    def joined(self, other: Surveyed) -> Surveyed:
        """Both, if they have the same reference."""
        draws, around = (
            LogDensities(np.concatenate([one.full, more.full]), np.concatenate([one.coreset, more.coreset]))
            for one, more in ((self.draws, other.draws), (self.around, other.around))
        )
        return self._replace(draws=draws, around=around, is_told=self.is_told or other.is_told)

    @property
    def kl_estimate(self) -> float:
        """NaN if nothing is told."""
        if not self.is_told:
            return math.nan
        return estimated_kl(self.draws.log_ratios, self._paired())

    def _paired(self) -> np.ndarray:
        """The mean of exp(r) over each pair, by what the coreset posterior gives to its two places, as a logarithm."""
        full, coreset = (np.logaddexp(here, there) for here, there in zip(self.draws, self.around, strict=True))
        with np.errstate(invalid="ignore"):
            result: np.ndarray = full - coreset
        return result


def log_densities(
    model: Model, rows: Rows, few: Rows, term: GaussianTerm | None, positions: Position, description: str
) -> tuple[LogDensities, np.ndarray]:
    """Of both posteriors, and the log-likelihood of all rows alone; one pass over the rows.

    ``few`` are the weighted rows of the coreset. NaN and plus infinity count as impossible.
    """
    prior = np.asarray(log_priors(model.compiled or model, positions))
    own = summed_differences(few, model, positions, description)
    if term is not None:
        own = own + term.at(flat_positions(positions))
    totals = summed_differences(rows, model, positions, description)
    with np.errstate(invalid="ignore"):
        sums = (prior + totals, prior + own, totals)
    full, coreset, likelihood = (np.where(part < np.inf, part, -np.inf) for part in sums)
    return LogDensities(full, coreset), likelihood


def survey(
    generator: np.random.Generator,
    model: Model,
    rows: Rows,
    few: Rows,
    term: GaussianTerm | None,
    positions: Position,
    description: str,
    reference: Position | None = None,
) -> tuple[Surveyed, Position]:
    """Look at draws (J, ...) of the coreset posterior and around them; the satellites are returned, too.

    ``reference`` is that of another survey, to which this one is added.
    """
    around = satellites(generator, positions)
    count, begin = num_positions(positions), int(reference is not None)
    own = jax.tree.map(np.asarray, first_position(positions) if reference is None else reference)
    before = [jax.tree.map(lambda leaf: leaf[None], own)] * begin
    places = jax.tree.map(
        lambda *parts: np.concatenate([np.asarray(part) for part in parts]), *before, positions, around
    )
    found, likelihood = log_densities(model, rows, few, term, places, description)
    halves = (slice(begin, begin + count), slice(begin + count, None))
    first, second = (LogDensities(*(part[half] for part in found)) for half in halves)
    has_moved = bool(np.any(np.ptp(flat_positions(positions), axis=0) > 0))
    with np.errstate(invalid="ignore"):
        is_same = bool(np.all(np.abs(likelihood - likelihood[0]) <= SAME))
    return Surveyed(first, second, has_moved and not is_same, own), around


def estimated_kl(log_ratios: np.ndarray, paired: np.ndarray | None = None) -> float:
    """The largest of the estimates, from log-ratios of draws and, if they are known, of pairs with satellites.

    Infinite if a draw is impossible under the full posterior, NaN from a single draw.
    """
    if len(log_ratios) < 2:
        return math.nan
    if not np.isfinite(log_ratios).all():
        return math.inf
    estimates: list[float] = [0.5 * float(np.var(log_ratios, ddof=1)), _direct(log_ratios, log_ratios)]
    if paired is not None:
        estimates.append(_direct(paired, log_ratios))
    estimate = math.inf if any(math.isnan(one) for one in estimates) else max(estimates)
    return max(estimate, _of_tail(log_ratios)) if estimate > NEGLIGIBLE else estimate


def _direct(log_values: np.ndarray, log_ratios: np.ndarray) -> float:
    """log mean exp of the first minus the mean of the second, and what so few values miss of it to first order."""
    highest = log_values.max()
    if not math.isfinite(highest):
        return math.inf
    values = np.exp(log_values - highest)
    mean, count = values.mean(), len(values)
    missed = 0.5 * float(np.var(values, ddof=1)) / (count * mean**2)
    return float(highest + math.log(mean) - log_ratios.mean() + missed)


def _of_tail(log_ratios: np.ndarray) -> float:
    """The KL of Gaussians whose ratios have a tail of this shape, if it is heavy; zero otherwise."""
    shape = tail_shape(log_ratios)
    if not shape > HEAVY_TAIL:
        return 0.0
    shape = min(shape, HEAVIEST_TAIL)
    return 0.5 * (-shape - math.log1p(-shape))


def tail_shape(log_ratios: np.ndarray) -> float:
    """Pareto k-hat of exp(r); zero if there are too few to tell, or a largest value that many of them share."""
    count = len(log_ratios)
    tail = np.sort(log_ratios)[-math.ceil(min(0.2 * count, 3 * math.sqrt(count))) :]
    if count < FEWEST_FOR_TAIL or np.ptp(tail) < SAME:
        return 0.0
    from arviz_stats.base import array_stats  # noqa: PLC0415 - takes a second

    with np.errstate(all="ignore"):
        shape = float(array_stats.psislw(-log_ratios)[1])  # it takes minus the log-ratios
    return math.inf if math.isnan(shape) else shape
