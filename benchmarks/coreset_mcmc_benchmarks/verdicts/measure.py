"""One fit, its true distance to the full posterior, and the numbers behind its verdict."""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import Any

import coreset_mcmc as cm
from coreset_mcmc.diagnostics.metrics import min_bulk_ess, two_moment_kl, two_moment_kl_floor
from coreset_mcmc.diagnostics.mixing import sampling_quality
from coreset_mcmc_benchmarks.draws import continuous, draws_of
from coreset_mcmc_benchmarks.verdicts.problems import Problem
from coreset_mcmc_benchmarks.verdicts.table import CHAINS, FIELDS


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


def measure(problem: Problem, construction: str, size: int, seed: int, draws: int) -> dict[str, Any]:
    """One fit, its true distance and what ``trust`` says."""
    began = time.process_time()
    try:
        made = make_fit(problem, construction, size, seed, draws)
    except (cm.InputError, cm.RunError) as error:
        return {"failure": str(error).replace("\n", " ")[:160]}
    values = continuous(problem.fold(draws_of(made)))
    dimension = values.shape[-1]
    raw = two_moment_kl(values, problem.reference.mean, problem.reference.covariance)
    noise = two_moment_kl_floor(dimension, 1.0 / (1.0 / min_bulk_ess(values) + 1.0 / problem.reference.ess))
    judged = made.trust()
    quality = sampling_quality(made.tree)
    return {
        **{name: getattr(judged, name) for name in FIELDS if hasattr(judged, name)},
        "rows": made.coreset.num_rows,
        "dimension": dimension,
        "true_kl": max(raw - noise, 0.0),
        "noise": noise,
        "half_variance": made.kl_estimate,
        "rhat": quality.rhat,
        "ess": quality.ess,
        "num_diverging": quality.num_diverging,
        "cpu_seconds": time.process_time() - began,
    }
