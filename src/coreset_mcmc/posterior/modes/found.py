"""What is known about the modes of a posterior."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from coreset_mcmc.posterior.newton import NewtonSearchState

RELEVANT = 0.001
"""Share of the mass from which on a mode matters: at a distance of 30 standard deviations it doubles the variance."""
UNDERREPRESENTED = 0.1
"""A mode is missing from draws if its share of them is below this part of its share of the mass."""
OUT_OF_REACH = 10.0
"""Standard deviations, for each direction of many, from which on no draw has come near a mode."""
SAME_MODE = 1.0
"""Standard deviations up to which two searches have found the same mode."""
FAR = 3.0
"""Standard deviations from which on a copy of a mode is another mode."""


def nats_left_out(share: float) -> float:
    """KL(p in some modes || p) = -log(1 - share), if the other modes have this share of the mass of p."""
    return -math.log1p(-min(share, 1.0 - 1e-12)) if share > 0.0 else share


class Mode(NamedTuple):
    """A peak of the full log-density, and the Gaussian there."""

    position: np.ndarray
    """(d,), flat."""
    evidence: float
    """log of height times Laplace volume, up to a constant that all modes share.

    Minus infinity for a peak of a sample that cannot matter; it is kept to tell which draws are there.
    """
    precision: np.ndarray
    """(d, d), of what was free to move; the identity elsewhere."""
    is_users: bool
    """Whether a start of the user's leads there."""
    search: NewtonSearchState | None
    """Where the search on all rows has ended, if nothing was held."""

    def distances(self, flat: np.ndarray) -> np.ndarray:
        """Of flat positions (K, d), in standard deviations (K,)."""
        steps = flat - self.position
        result: np.ndarray = np.sqrt(np.maximum(np.einsum("ki,ij,kj->k", steps, self.precision, steps), 0.0))
        return result


def _is_lesser_twin(known: Mode, mode: Mode) -> bool:
    return known.evidence == -np.inf and known.distances(mode.position[None])[0] <= SAME_MODE


class Modes(NamedTuple):
    """All that was found, the most massive mode first; copies under a symmetry count as one."""

    modes: tuple[Mode, ...]
    symmetries: tuple[str, ...]
    """Exchanges and changes of sign that leave the posterior as it is and make copies of its main mode."""
    num_copies: int
    """Of the main mode, itself included."""
    changes_signs: bool
    """Whether copies differ in the sign of a parameter, and not in labels alone."""
    start: np.ndarray
    """Where chains should begin (d,): in the main mode, or the highest place where there is none."""
    num_peaks: int
    """Of the sample, before those without mass were left out."""
    num_starts: int
    """Positions that were looked at."""
    num_evaluations: int

    @property
    def shares(self) -> np.ndarray:
        """Of the mass in modes (K,), by Laplace's approximation; NaN if any of them is unknown."""
        if not self.modes:
            return np.zeros(0)
        evidence = np.array([mode.evidence for mode in self.modes])
        with np.errstate(invalid="ignore"):
            weights = np.exp(evidence - evidence.max())
            shares: np.ndarray = weights / weights.sum()
        return shares

    @property
    def num_relevant(self) -> int:
        """Modes that have any mass to speak of."""
        return int(np.sum(self.shares > 0.0))

    def shares_of(self, flat: np.ndarray) -> np.ndarray:
        """Of draws (n, d): which part of them belongs to each mode, by its Gaussian; none if all are far away."""
        if not self.modes:
            return np.zeros(0)
        scores, is_near = [], []
        for mode in self.modes:
            distances = mode.distances(flat)
            scores.append(0.5 * np.linalg.slogdet(mode.precision)[1] - 0.5 * distances**2)
            is_near.append(distances.min() <= OUT_OF_REACH * (1.0 + np.sqrt(flat.shape[1])))
        nearest = np.argmax(np.stack(scores), axis=0)
        counts = np.bincount(nearest, minlength=len(self.modes)) / len(flat)
        result: np.ndarray = np.where(is_near, counts, 0.0)
        return result

    def together_with(self, others: Iterable[Mode]) -> Modes:
        """These and other modes of the same density, as far as they are different."""
        every = list(self.modes)
        for mode in others:
            if all(known.distances(mode.position[None])[0] > SAME_MODE for known in every):
                every.append(mode)
            elif mode.evidence > -np.inf:
                every = [mode if _is_lesser_twin(known, mode) else known for known in every]
        return self._replace(modes=tuple(sorted(every, key=lambda mode: -mode.evidence)))

    def is_missing(self, flat: np.ndarray) -> np.ndarray:
        """Marks modes (K,) that draws (n, d) do not represent."""
        result: np.ndarray = self.shares_of(flat) < UNDERREPRESENTED * self.shares
        return result
