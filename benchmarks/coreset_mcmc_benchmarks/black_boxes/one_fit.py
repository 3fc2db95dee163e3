"""One fit in a process of its own: ``python -m ... one_fit TASK.json``. The clock runs from before JAX is imported."""

from __future__ import annotations

import json
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from coreset_mcmc_benchmarks.black_boxes.problems import PROBLEMS


def processor_seconds() -> float:
    """Of this process."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def answer(task: dict[str, Any]) -> dict[str, Any]:
    """Fit, then judge: only the fit is timed."""
    problem = PROBLEMS[task["problem"]][1](task["rows"])
    counts = {"calls": 0, "rows_evaluated": 0}

    def counted(position: Any, rows: Any) -> Any:
        values = problem.log_likelihood(position, rows)
        counts["calls"] += 1
        counts["rows_evaluated"] += np.size(values)
        return values

    began, spent = time.perf_counter(), processor_seconds()
    import coreset_mcmc as cm  # noqa: PLC0415 - importing is part of a cold start

    start = {name: np.asarray(value, float) for name, value in problem.start.items()}
    model = cm.Model.from_callable(problem.log_prior, counted, start)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cm.fit(model, problem.data, random_seed=task["seed"], progressbar=False)
        told: dict[str, Any] = {
            "seconds": time.perf_counter() - began,
            "processor_seconds": processor_seconds() - spent,
            **counts,
            "coreset_size": fit.coreset.size,
            "derivatives": "differences" if fit.model is not None and fit.model.differentiable else "none",
            "kl_estimate": fit.kl_estimate,
        }
        told["verdict"] = fit.trust(num_coresets=task["num_coresets"]).verdict
    return told | _compared(problem, fit, task["reference_draws"])


def _compared(problem: Any, fit: Any, draws: int) -> dict[str, Any]:
    from coreset_mcmc.diagnostics.metrics import bulk_ess  # noqa: PLC0415 - after the clock has stopped
    from coreset_mcmc_benchmarks.black_boxes.reference import reference  # noqa: PLC0415
    from coreset_mcmc_benchmarks.draws import draws_of, flattened  # noqa: PLC0415

    flat = flattened(draws_of(fit))
    known = reference(problem, draws)
    effective = bulk_ess(flat)
    shift = np.abs(flat.mean(axis=(0, 1)) - known.means)
    errors = np.hypot(flat.std(axis=(0, 1)) / np.sqrt(effective), known.errors)
    ratios = flat.std(axis=(0, 1)) / known.deviations
    return {
        "parameters": flat.shape[2],
        "largest_shift": float((shift / known.deviations).max()),
        "largest_shift_in_errors": float((shift / errors).max()),
        "smallest_deviation_ratio": float(ratios.min()),
        "largest_deviation_ratio": float(ratios.max()),
        "min_ess": float(effective.min()),
        "reference_draws": known.effective,
    }


if __name__ == "__main__":
    TASK = json.loads(Path(sys.argv[1]).read_text())
    Path(TASK["answer"]).write_text(json.dumps(answer(TASK)))
