"""One fit in a fresh process, and how far it is from its own correction by importance weights on all rows."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import warnings
from typing import Any

import numpy as np

BLOCK = 1024
CONTESTANTS = ("ours", "plain", "term-alone")
"""The default; without a Gaussian term; and the term without any row, which is a Laplace approximation with the exact
prior."""
REFERENCE_DRAWS = 400


def measured(name: str, size: int, contestant: str, seed: int, *, quick: bool) -> dict[str, Any]:
    """Seconds with compilation, estimated KL, and the largest errors of means and deviations against the correction."""
    import coreset_mcmc as cm  # noqa: PLC0415 - in the child process
    from coreset_mcmc_benchmarks.many.problems import PROBLEMS, QUICK  # noqa: PLC0415

    warnings.simplefilter("ignore", UserWarning)
    model, data = (QUICK if quick else PROBLEMS)[name].make()
    load, began = os.getloadavg()[0], time.perf_counter()
    fitted = cm.fit(model, data, random_seed=seed, progressbar=False, **_options(contestant, size))
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * BLOCK
    corrected = fitted.reweight(draws=REFERENCE_DRAWS, progressbar=False)
    shift, ratio = _errors(fitted, corrected)
    table = fitted.summary(round_to="none")
    return {
        "seconds": seconds,
        "compile_seconds": fitted.training.compile_seconds + fitted.sampling.compile_seconds,
        "peak_gigabytes": peak / 1e9,
        "num_parameters": len(table),
        "kl_estimate": fitted.kl_estimate,
        "pareto_k": corrected.settings["pareto_k"],
        "effective_draws": corrected.settings["effective_draws"],
        "largest_shift": shift,
        "largest_sd_error": ratio,
        "smallest_ess": float(table["ess_bulk"].min()),
        "term": fitted.settings["gaussian_term"],
        "load_before": load,
    }


def _options(contestant: str, size: int) -> dict[str, Any]:
    import coreset_mcmc as cm  # noqa: PLC0415 - in the child process

    if contestant == "term-alone":
        return {"coreset_size": 1, "method": cm.LeastSquares(gaussian_term=True)}
    return {"coreset_size": size, "method": cm.LeastSquares(gaussian_term=None if contestant == "ours" else False)}


def _errors(fitted: Any, corrected: Any) -> tuple[float, float]:
    """Of all parameters the largest distance of means, in standard deviations, and of deviations, as a share."""
    shifts, ratios = [], []
    for name, draws in fitted.posterior.data_vars.items():
        own, right = (np.asarray(part).reshape(-1, *np.shape(draws)[2:]) for part in (draws, corrected.posterior[name]))
        spread = right.std(axis=0)
        shifts.append(np.max(np.abs(own.mean(axis=0) - right.mean(axis=0)) / spread))
        ratios.append(np.max(np.abs(own.std(axis=0) / spread - 1.0)))
    return float(max(shifts)), float(max(ratios))


if __name__ == "__main__":
    problem, size, contestant, seed, quick = sys.argv[1:]
    print(json.dumps(measured(problem, int(size), contestant, int(seed), quick=quick == "quick")))
