"""From the draws of a contestant to its effective draws and its distance from the posterior."""

from __future__ import annotations

import platform
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from coreset_mcmc.diagnostics import metrics
from coreset_mcmc_benchmarks.draws import Draws, continuous
from coreset_mcmc_benchmarks.paper.references import Reference
from coreset_mcmc_benchmarks.speed.effort import EFFECTIVE_DRAWS, FEWEST_FOR_ESS
from coreset_mcmc_benchmarks.speed.moments import NUM_DRAWS, moments
from coreset_mcmc_benchmarks.speed.outcome import Outcome
from coreset_mcmc_benchmarks.speed.problems import PROBLEMS
from coreset_mcmc_benchmarks.speed.sizes import Data

QUICK_REFERENCE_DRAWS = 1_000


def judge(task: dict[str, Any], data: Data, outcome: Outcome, seconds: float) -> dict[str, Any]:
    """The columns that come from the draws."""
    return judged(outcome, seconds, reference_of(task, data), PROBLEMS[task["problem"]].fold(outcome.draws))


def reference_of(task: dict[str, Any], data: Data) -> Reference | None:
    """The reference of the task's problem, if it shall have one."""
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
    for package in (
        "coreset-mcmc",
        "jax",
        "numpy",
        "blackjax",
        "numpyro",
        "pymc",
        "pytensor",
        "nutpie",
        "statsmodels",
    ):
        try:
            names.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return " ".join([f"python {platform.python_version()}", *names])
