"""One contestant in a fresh process: seconds, memory, and how far its draws are from the full posterior."""

from __future__ import annotations

import json
import os
import resource
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from coreset_mcmc.diagnostics.metrics import bulk_ess, two_moment_kl
from coreset_mcmc.results.ratios import Ratios
from coreset_mcmc_benchmarks.draws import continuous
from coreset_mcmc_benchmarks.many.contestants import CONTESTANTS, Ended
from coreset_mcmc_benchmarks.many.problems import PROBLEMS, QUICK
from coreset_mcmc_benchmarks.many.reference import errors, moments_of, ratios_of

REFERENCE = "reference"
"""In the place of a contestant: only what contestants are compared with is made, if it is not there yet."""
BLOCK = 1024
NUM_CHECKED = 400
"""Draws behind the KL on all rows."""


def measured(task: dict[str, Any]) -> dict[str, Any]:
    """The row of the table; the clock stands still while data are made and results are compared."""
    warnings.simplefilter("ignore", UserWarning)
    problem = (QUICK if task["quick"] else PROBLEMS)[task["problem"]]
    data = Path(task["data"]) if task["data"] else None
    made = problem.make(data)
    folder, papers = Path(task["references"]), Path(task["papers"])
    known = partial(moments_of, task["problem"], problem, made, folder=folder, papers=papers, data=data)
    if task["contestant"] == REFERENCE:
        known()
        return {}
    load = os.getloadavg()[0]
    ended = CONTESTANTS[task["contestant"]](made, task["rows"], problem.draws, task["seed"])
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * BLOCK
    row: dict[str, Any] = {
        "seconds": ended.seconds,
        "peak_gigabytes": peak / 1e9,
        "note": ended.note,
        "load_before": load,
        "load_after": os.getloadavg()[0],
    }
    if ended.draws is None:
        return row
    values = continuous(ended.draws)
    moments = known()
    row |= {"num_parameters": values.shape[-1], "smallest_ess": float(np.min(bulk_ess(values)))}
    row |= errors(ended.draws, moments) | {"reference_draws": moments.effective_draws, "reference_k": moments.pareto_k}
    if moments.covariance is not None:
        row["two_moment_kl"] = two_moment_kl(values, moments.mean, moments.covariance)
    return row | _checked(ended)


def _checked(ended: Ended) -> dict[str, Any]:
    """Of draws of a coreset posterior: the estimate of the fit, and another from all rows at more draws."""
    fitted = ended.fitted
    if fitted is None:
        return {}
    if not fitted.samples_coreset:
        return {"pareto_k": fitted.settings.get("pareto_k", "")}
    ratios = ratios_of(fitted, NUM_CHECKED)
    return {"kl_estimate": fitted.kl_estimate, "kl_all_rows": _kl(ratios), "pareto_k": ratios.pareto_k}


def _kl(ratios: Ratios) -> float:
    """log mean exp(r) - mean(r) of log-ratios r, known up to a constant, or half their variance if that is larger."""
    shifted = ratios.log_weights - ratios.log_weights.max()
    by_mean = float(np.log(np.mean(np.exp(shifted))) - np.mean(shifted))
    return max(by_mean, float(0.5 * np.var(shifted, ddof=1)))


if __name__ == "__main__":
    print(json.dumps(measured(json.loads(sys.argv[1]))))
