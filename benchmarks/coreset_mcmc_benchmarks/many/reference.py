"""What contestants are compared with: means and standard deviations of every parameter under the full posterior.

For the paper's problems they come from NUTS on all rows (:mod:`coreset_mcmc_benchmarks.paper.references`). For the
others from many draws of a coreset posterior with another seed than any contestant's and up to twice the rows, some
of them weighted by their full-data density, with Pareto-smoothed weights. What weights change is added to what all
draws say: with weights near one the change has a small error, far smaller than that of weighted draws alone. A number
of effective draws states the error: a mean is known to one over its root, in standard deviations, a deviation to 0.7
of that, as a share.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import coreset_mcmc as cm
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.core.trees import thinned
from coreset_mcmc.data.blocks import rows_of
from coreset_mcmc.results.fit import Fit
from coreset_mcmc.results.ratios import Ratios, ratios_to_full
from coreset_mcmc_benchmarks.draws import Draws, continuous, draws_of
from coreset_mcmc_benchmarks.many.problems import Made, Problem
from coreset_mcmc_benchmarks.paper.cases import CASES
from coreset_mcmc_benchmarks.paper.references import reference as paper_reference

SEED, NUM_CHAINS, NUM_DRAWS = 99, 4, 5_000
NUM_WEIGHTED = 800
"""Draws that are weighted: each is a pass over all rows."""
NUM_PAPER_DRAWS = 12_000
ENOUGH_ROWS = 1_000
"""Of a coreset whose draws are weighted; contestants may have more."""


@dataclass(frozen=True)
class Moments:
    """Of the parameters (d,), in the alphabetical order of their names."""

    mean: np.ndarray
    deviation: np.ndarray
    effective_draws: float
    pareto_k: float
    """NaN where no weights were needed."""
    covariance: np.ndarray | None = None
    """Where it is known well enough for a two-moment KL."""


def moments_of(name: str, problem: Problem, made: Made, *, folder: Path, papers: Path, data: Path | None) -> Moments:
    """From files if they are there; made and stored otherwise."""
    if problem.case:
        known = paper_reference(CASES[problem.case](data, None), NUM_PAPER_DRAWS, papers)
        return Moments(
            known.mean, np.sqrt(np.diagonal(known.covariance)), known.checks["min_ess"], np.nan, known.covariance
        )
    path = folder / f"{name}.npz"
    if not path.exists():
        found = _weighted(made, max(problem.sizes))
        folder.mkdir(parents=True, exist_ok=True)
        checks = {"effective_draws": found.effective_draws, "pareto_k": found.pareto_k}
        np.savez(path, mean=found.mean, deviation=found.deviation, checks=json.dumps(checks))
    with np.load(path) as stored:
        return Moments(stored["mean"], stored["deviation"], **json.loads(str(stored["checks"])))


def _weighted(made: Made, size: int) -> Moments:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = cm.fit(
            made.model,
            made.data,
            coreset_size=max(size, min(2 * size, ENOUGH_ROWS)),
            draws=NUM_DRAWS,
            chains=NUM_CHAINS,
            random_seed=SEED,
            progressbar=False,
        )
    ratios = ratios_of(fitted, NUM_WEIGHTED)
    values, weights = flat_draws(draws_of(fitted)), np.exp(ratios.log_weights)
    places = thinned({"draw": np.arange(len(values))[None]}, NUM_WEIGHTED)["draw"]
    some = values[places]
    mean = values.mean(axis=0) + weights @ some - some.mean(axis=0)
    squares, some_squares = (values - mean) ** 2, (some - mean) ** 2
    variance = squares.mean(axis=0) + weights @ some_squares - some_squares.mean(axis=0)
    smallest = float(fitted.summary(round_to="none")["ess_bulk"].min())
    change = float(np.var(weights * len(weights))) / len(weights)
    return Moments(mean, np.sqrt(variance), 1.0 / (1.0 / smallest + change), ratios.pareto_k)


@double_precision
def ratios_of(fitted: Fit, num_draws: int | None) -> Ratios:
    """Importance weights to the full posterior of evenly spaced draws, chain after chain; of all for None."""
    draws = thinned(fitted.positions(), num_draws)
    rows = rows_of(fitted.own_rows, "reference")
    assert fitted.model is not None
    return ratios_to_full(fitted.model, draws, rows, fitted.coreset.selected, description="importance weights")


def flat_draws(draws: Draws) -> np.ndarray:
    """(S, d), chain after chain."""
    values = continuous(draws)
    return values.reshape(-1, values.shape[-1])


def errors(draws: Draws, moments: Moments) -> dict[str, Any]:
    """The largest distance of a mean, in standard deviations, and of a deviation, as a share."""
    values = flat_draws(draws)
    return {
        "largest_mean_error": float(np.max(np.abs(values.mean(axis=0) - moments.mean) / moments.deviation)),
        "largest_sd_error": float(np.max(np.abs(values.std(axis=0) / moments.deviation - 1.0))),
    }
