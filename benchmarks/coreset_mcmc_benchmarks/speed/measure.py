"""From the draws of a contestant to the row of the table; runs in the contestant's own process."""

from __future__ import annotations

import platform
import resource
import sys
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from coreset_mcmc.core.errors import InputError, RunError
from coreset_mcmc.diagnostics import metrics
from coreset_mcmc_benchmarks.draws import Draws, continuous
from coreset_mcmc_benchmarks.paper.measure import hardware
from coreset_mcmc_benchmarks.paper.references import Reference
from coreset_mcmc_benchmarks.speed.clock import timed
from coreset_mcmc_benchmarks.speed.contestants import CONTESTANTS
from coreset_mcmc_benchmarks.speed.effort import EFFECTIVE_DRAWS, FEWEST_FOR_ESS, FULL, QUICK
from coreset_mcmc_benchmarks.speed.moments import NUM_DRAWS, moments
from coreset_mcmc_benchmarks.speed.outcome import Outcome
from coreset_mcmc_benchmarks.speed.problems import PROBLEMS, Data

QUICK_REFERENCE_DRAWS = 1_000


def make_reference(task: dict[str, Any], data: Data, import_seconds: float) -> dict[str, Any]:
    """Make the reference of a problem, so that contestants only read it."""
    del import_seconds
    made = _reference(task, data)
    return {} if made is None else made.checks


def measure(task: dict[str, Any], data: Data, import_seconds: float) -> dict[str, Any]:
    """Run a contestant and judge its draws; the clock stands still while it is judged."""
    contestant, problem = CONTESTANTS[task["contestant"]], PROBLEMS[task["problem"]]
    size = len(next(iter(data.values())))
    row: dict[str, Any] = {
        **{name: task[name] for name in ("problem", "contestant", "seed")},
        "rows": size,
        "versions": versions(),
        "hardware": hardware(),
    }
    try:
        with timed() as whole:
            outcome = contestant.run(problem, data, QUICK if task["quick"] else FULL, task["seed"])
    except (InputError, RunError, FloatingPointError, MemoryError) as error:
        return row | {"failure": " ".join(str(error).split())[:200]}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1e-6 if sys.platform == "darwin" else 1e-3)
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = import_seconds + whole.seconds - outcome.free_seconds
    row |= {
        "coreset_size": outcome.coreset_size or "",
        "import_seconds": import_seconds,
        "compile_seconds": whole.compile_seconds,
        "training_seconds": outcome.training_seconds,
        "training_seconds_cold": outcome.training_seconds + outcome.training_compile_seconds,
        "sampling_seconds": outcome.sampling_seconds,
        "seconds": seconds,
        "processor_seconds": used.ru_utime + used.ru_stime,
        "evaluations": outcome.evaluations,
        "passes": outcome.evaluations / size,
        "peak_megabytes": memory,
        "kl_estimate": outcome.kl_estimate,
        "note": outcome.note,
        "warnings": outcome.warnings[:300],
    }
    return row | judged(outcome, seconds, _reference(task, data), problem.fold(outcome.draws))


def _reference(task: dict[str, Any], data: Data) -> Reference | None:
    if not task["has_reference"]:
        return None
    num_draws = QUICK_REFERENCE_DRAWS if task["quick"] else NUM_DRAWS
    return moments(task["problem"], data, Path(task["references"]), num_draws)


def judged(outcome: Outcome, seconds: float, reference: Reference | None, draws: Draws) -> dict[str, Any]:
    """Effective draws and what ten thousand of them take; the distance to the full posterior."""
    values = continuous(draws)
    num_draws, dimension = values.shape[0] * values.shape[1], values.shape[2]
    is_enough = num_draws >= FEWEST_FOR_ESS
    ess = metrics.min_bulk_ess(values) if is_enough else float(num_draws)
    whole = seconds - outcome.sampling_seconds + outcome.sampling_seconds * EFFECTIVE_DRAWS / ess
    kind = "scaled, one effective draw for each draw" if not is_enough else "scaled"
    found: dict[str, Any] = {
        "dimension": dimension,
        "draws": num_draws,
        "min_ess": ess,
        "seconds_to_effective": whole,
        "scaled": kind if ess < EFFECTIVE_DRAWS else "",
    }
    if reference is None:
        return found | {"kl": outcome.kl_estimate, "kl_kind": "estimated"}
    if not is_enough:
        return found | {"kl_kind": "too few draws"}
    found |= {
        "kl": metrics.two_moment_kl(values, reference.mean, reference.covariance),
        "kl_floor": metrics.two_moment_kl_floor(dimension, min(ess, num_draws))
        + metrics.two_moment_kl_floor(dimension, min(reference.checks["min_ess"], reference.checks["draws"])),
        "kl_kind": "two-moment",
        "reference": reference.key,
    }
    if reference.patterns.size:
        gamma = draws["gamma"]
        found["js"] = metrics.jensen_shannon(gamma.reshape(-1, gamma.shape[-1]), reference.pattern_draws)
    return found


@lru_cache
def versions() -> str:
    """Interpreter and packages, as far as they are there."""
    names = []
    for package in ("coreset-mcmc", "jax", "numpy", "blackjax", "numpyro"):
        try:
            names.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return " ".join([f"python {platform.python_version()}", *names])
