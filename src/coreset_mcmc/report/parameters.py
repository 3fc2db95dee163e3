"""The parameters of a fit one by one: their draws, their row of the summary, and which of them to show.

A model may have thousands. Where there is no room for all, one half of the places goes to those that mixed worst and
the rest to the first ones. How badly a parameter mixed is measured in units of the limits of
:mod:`coreset_mcmc.diagnostics.mixing`: the larger of (R-hat - 1) / 0.01 and 100 K / ESS for K chains.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd

from coreset_mcmc.diagnostics.mixing import MAX_RHAT, MIN_ESS_PER_CHAIN
from coreset_mcmc.report.wording import label
from coreset_mcmc.results.fit import Fit

PROBABILITY = 0.89
"""Of the intervals, as in ArviZ."""
LOW, HIGH = "eti89_lb", "eti89_ub"


@dataclass(frozen=True)
class Parameters:
    """All scalar parameters of a fit, in the order of its summary."""

    fit: Fit
    summary: pd.DataFrame
    """ArviZ's table without rounding."""

    @classmethod
    def of(cls, fit: Fit) -> Parameters:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore", RuntimeWarning)  # R-hat of a parameter that never moves is NaN
            return cls(fit, fit.summary(round_to="none", ci_prob=PROBABILITY, ci_kind="eti"))

    @property
    def count(self) -> int:
        return len(self.summary)

    @property
    def num_chains(self) -> int:
        return int(self.fit.posterior.sizes["chain"])

    @property
    def num_draws(self) -> int:
        """Of each chain."""
        return int(self.fit.posterior.sizes["draw"])

    @property
    def least_ess(self) -> int:
        return MIN_ESS_PER_CHAIN * self.num_chains

    def name(self, place: int, longest: int = 60) -> str:
        return label(self.summary.index[place], longest)

    def draws(self, place: int) -> np.ndarray:
        """(chains, draws) of the parameter at a place of the summary."""
        group = self.fit.posterior
        for name in map(str, group.data_vars):
            values = group[name].transpose("chain", "draw", ...)
            size = int(np.prod(values.shape[2:], dtype=int))
            if place < size:
                flat = values.to_numpy().reshape(*values.shape[:2], size)
                return np.asarray(flat[..., place], dtype=float)
            place -= size
        raise IndexError(place)

    def badness(self) -> np.ndarray:
        """How badly each parameter mixed; above 1 if outside the limits, 0 where nothing can be said."""
        with np.errstate(all="ignore"):
            rhat = (self.summary["r_hat"].to_numpy(dtype=float) - 1.0) / (MAX_RHAT - 1.0)
            ess = self.least_ess / self.summary["ess_bulk"].to_numpy(dtype=float)
        return np.maximum(np.nan_to_num(rhat), np.nan_to_num(ess))

    def shown(self, most: int) -> list[int]:
        """At most so many places in their order: all, or the worst mixed ones and the first ones."""
        if self.count <= most:
            return list(range(self.count))
        chosen = set(np.argsort(-self.badness(), kind="stable")[: most // 2].tolist())
        for place in range(self.count):
            if len(chosen) == most:
                break
            chosen.add(place)
        return sorted(chosen)
