"""One fit, its true distance to the full posterior, and the numbers behind its verdict."""

from __future__ import annotations

import math
import time
import warnings
from functools import partial
from typing import Any

import numpy as np

import coreset_mcmc as cm
from coreset_mcmc.diagnostics.metrics import min_bulk_ess, two_moment_kl, two_moment_kl_floor
from coreset_mcmc.diagnostics.mixing import sampling_quality
from coreset_mcmc.verdict import GOOD
from coreset_mcmc_benchmarks.draws import continuous, draws_of
from coreset_mcmc_benchmarks.verdicts.problems import Problem
from coreset_mcmc_benchmarks.verdicts.table import CHAINS, FIELDS

REFUSED, CRASHED = "refused", "crashed"
"""A message in words instead of a result, and an error that nobody thought of."""
FEWEST_DRAWS = 400.0
"""Draws that are worth fewer than this have an error of their own, which counts."""


def make_fit(problem: Problem, construction: str, size: int, seed: int, draws: int) -> cm.Fit:
    """One construction, without its warnings."""
    fit = partial(
        cm.fit, problem.model, problem.data, draws=draws, chains=CHAINS, random_seed=seed, initvals=problem.initvals,
        progressbar=False,
    )  # fmt: skip
    selection = None if construction == "default" else cm.selection.Uniform()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        if construction == "uniform":
            return fit(coreset_size=size, method=cm.Uniform(), selection=selection)
        made = fit(coreset_size=size, selection=selection)
        if construction != "tripled":
            return made
        given = cm.selection.Given(made.coreset.indices, 3.0 * made.coreset.weights)
        return fit(selection=given, method=cm.Uniform())


def errors_of(values: np.ndarray, problem: Problem) -> dict[str, float]:
    """True errors of draws (chain, draw, d): two-moment KL, largest error of a mean in sd and of a log sd."""
    mean, covariance, ess = problem.reference.mean, problem.reference.covariance, problem.reference.ess
    pooled = values.reshape(-1, values.shape[-1])
    deviation = np.sqrt(np.diag(covariance))
    own = max(FEWEST_DRAWS, min_bulk_ess(values))  # NaN, from draws that never move, is not larger
    noise = two_moment_kl_floor(values.shape[-1], 1.0 / (1.0 / own + 1.0 / ess))
    raw = float(two_moment_kl(values, mean, covariance))
    with np.errstate(divide="ignore"):
        spread = np.abs(np.log(pooled.std(axis=0) / deviation))
    return {
        "true_kl": math.inf if math.isnan(raw) else max(raw - noise, 0.0),
        "noise": noise,
        "mean_error": float(np.max(np.abs(pooled.mean(axis=0) - mean) / deviation)),
        "sd_error": float(np.max(spread)),
    }


def measure(problem: Problem, construction: str, size: int, seed: int, draws: int) -> dict[str, Any]:
    """One fit, its true distance and what ``trust`` says; an error is a result, too."""
    began = time.process_time()
    try:
        made = make_fit(problem, construction, size, seed, draws)
        judged = made.trust()
    except Exception as error:
        is_in_words = isinstance(error, cm.InputError | cm.RunError)
        words = str(error) if is_in_words else f"{type(error).__name__}: {error}"
        return {
            "verdict": REFUSED if is_in_words else CRASHED,
            "failure": words.replace("\n", " ")[:300],
            "cpu_seconds": time.process_time() - began,
        }
    values = continuous(problem.fold(draws_of(made)))
    quality = sampling_quality(made.tree)
    return {
        **{name: getattr(judged, name) for name in FIELDS if hasattr(judged, name)},
        **errors_of(values, problem),
        "verdict": judged.verdict,
        "reason": "" if judged.verdict == GOOD else judged.reason[:300],
        "levels": "; ".join(f"{found.name}: {found.level}" for found in judged.findings),
        "rows": made.coreset.num_rows,
        "dimension": values.shape[-1],
        "half_variance": made.kl_estimate,
        "rhat": quality.rhat,
        "ess": quality.ess,
        "num_diverging": quality.num_diverging,
        "cpu_seconds": time.process_time() - began,
    }
