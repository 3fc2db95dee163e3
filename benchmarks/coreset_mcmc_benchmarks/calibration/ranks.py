"""Ranks of true parameters among draws, and whether they are uniform.

If parameters come from the prior and data from the parameters, the rank of a parameter among independent draws of its
posterior is uniform (Cook, Gelman and Rubin 2006; Talts et al. 2018). Ties, of discrete parameters, are
broken at random.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.stats import chisquare

import coreset_mcmc as cm
from coreset_mcmc_benchmarks.calibration.models import Calibrated, Simulated

KEPT = 63
"""Draws that a parameter is ranked among: ranks from 0 to 63."""
BINS = 8
DRAWS, CHAINS = 400, 4

BROKEN = "tripled"
"""The twin that must fail: weights times three, intervals too short by a factor of 1.7."""


def fitted(made: Simulated, seed: int, **options: Any) -> cm.Fit:
    """A fit by default settings but for the number of draws and what is given."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cm.fit(
            made.model, made.data, draws=DRAWS, chains=CHAINS, random_seed=seed, progressbar=False, **options
        )  # fmt: skip


def tripled(fit: cm.Fit, made: Simulated, seed: int) -> cm.Fit:
    """The broken twin samples with wrong weights."""
    given = cm.selection.Given(fit.coreset.indices, 3.0 * fit.coreset.weights)
    return fitted(made, seed, selection=given, method=cm.Uniform())


def ranks_of(fit: cm.Fit, truth: dict[str, np.ndarray], rng: np.random.Generator) -> dict[str, int]:
    """Of every scalar, by its name."""
    result = {}
    for name, value in truth.items():
        draws = fit.posterior[name].to_numpy().reshape(-1, np.size(value))
        kept = draws[np.linspace(0, len(draws) - 1, KEPT).astype(int)]
        for number, true in enumerate(np.ravel(value)):
            ties = int(np.sum(kept[:, number] == true))
            below = int(np.sum(kept[:, number] < true)) + int(rng.integers(0, ties + 1))
            result[f"{name}[{number}]" if np.size(value) > 1 else name] = below
    return result


def replication(calibrated: Calibrated, seed: int, *, broken: bool) -> dict[str, int]:
    """Simulate, fit, rank."""
    rng = np.random.default_rng(seed)
    made = calibrated.simulate(rng)
    fit = fitted(made, seed, coreset_size=calibrated.size)
    return ranks_of(tripled(fit, made, seed) if broken else fit, made.truth, rng)


def uniformity(ranks: np.ndarray) -> float:
    """The p-value of a chi-square test over equal bins."""
    counts = np.bincount(np.asarray(ranks, int) * BINS // (KEPT + 1), minlength=BINS)
    return float(chisquare(counts).pvalue)


def coverage(ranks: np.ndarray, level: float = 0.9) -> float:
    """How often a central interval of that level holds the truth."""
    low = (1 - level) / 2
    place = (np.asarray(ranks) + 0.5) / (KEPT + 1)
    return float(np.mean((place > low) & (place < 1 - low)))
