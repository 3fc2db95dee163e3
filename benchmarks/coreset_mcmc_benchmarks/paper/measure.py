"""One run and the row it leaves (section 4 of the paper; appendix C for the clocks).

The clock of the effective sample size covers the share of sampling that the kept draws had; training, the search for
the mode and burn-in are apart. A run that fails is a row that says so.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import warnings
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.errors import InputError, RunError
from coreset_mcmc.diagnostics import metrics
from coreset_mcmc.fitting.fit import fit
from coreset_mcmc.models.sparse import TRUE_COEFFICIENTS
from coreset_mcmc.results.fit import Fit
from coreset_mcmc_benchmarks.draws import continuous, draws_of
from coreset_mcmc_benchmarks.paper.budget import Budget
from coreset_mcmc_benchmarks.paper.cases import CASES, Case
from coreset_mcmc_benchmarks.paper.diagnostics import METHODS
from coreset_mcmc_benchmarks.paper.gaussian import VARIANT_OF, Curve, run_curve
from coreset_mcmc_benchmarks.paper.jobs import Job
from coreset_mcmc_benchmarks.paper.plan import Plan
from coreset_mcmc_benchmarks.paper.references import Reference, reference

JUDGED_SIZES = (10, 20, 50)
"""Coreset sizes at which the verdict of the default is asked for, too."""


@dataclasses.dataclass(frozen=True)
class Setup:
    """What all jobs of a reproduction share."""

    budget: Budget
    data_folder: Path | None
    reference_folder: Path


@lru_cache(maxsize=2)
def case_of(experiment: str, setup: Setup) -> Case:
    """The case, loaded once."""
    return CASES[experiment](setup.data_folder, setup.budget.max_rows)


@lru_cache(maxsize=8)
def reference_of(experiment: str, setup: Setup) -> Reference:
    """The reference, made or read once."""
    return reference(case_of(experiment, setup), setup.budget.reference_draws, setup.reference_folder)


def measure(job: Job, setup: Setup) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The row of a job and, for a Gaussian curve, its points."""
    row: dict[str, Any] = {**job._asdict(), "coreset_size": job.coreset_size or "", "versions": versions()}
    row["hardware"] = hardware()
    if job.experiment == "gaussian":
        return _measure_curve(job, setup, row)
    case, target = case_of(job.experiment, setup), reference_of(job.experiment, setup)
    row |= {"rows": case.size, "reference": target.key}
    try:
        with jax.enable_x64(True):
            plan = METHODS[job.method].plan(case, setup.budget, job.coreset_size or 0, job.seed)
        row |= {"label": plan.label, "settings": settings_of(plan)}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            attempts = [
                fit(case.model, case.data, random_seed=seed, progressbar=False, **plan.arguments)
                for seed in plan.seeds or (job.seed,)
            ]
        return row | outcome(attempts, job, target), []
    except (InputError, RunError, FloatingPointError) as error:
        return row | {"failure": " ".join(str(error).split())[:200]}, []


def outcome(attempts: list[Fit], job: Job, target: Reference) -> dict[str, Any]:
    """Of the attempt whose own estimate is the smallest, with what all of them have cost."""
    best = min(attempts, key=lambda one: one.kl_estimate if np.isfinite(one.kl_estimate) else np.inf)
    stages = [(one.pilot, one.training, one.sampling) for one in attempts]
    return {
        **_metrics(best, target),
        "kl_estimate": best.kl_estimate,
        "training_end": best.settings.get("shortfall", "") or best.training.reason,
        "verdict": best.trust().verdict if _is_judged(job) else "",
        "training_seconds": sum(pilot.seconds + training.seconds for pilot, training, _ in stages),
        "sampling_seconds": best.sampling.seconds,
        "compile_seconds": sum(stage.compile_seconds for one in stages for stage in one),
        "evaluations": sum(stage.num_evaluations for one in stages for stage in one),
    }


def _is_judged(job: Job) -> bool:
    """Where no weighted subset can be good the default says so, or does not need to."""
    return job.method == "least-squares" and job.coreset_size in JUDGED_SIZES


def _metrics(fitted: Fit, target: Reference) -> dict[str, Any]:
    draws = draws_of(fitted)
    values = continuous(draws)
    kept = values.shape[1]
    seconds = fitted.sampling.seconds * kept / fitted.sampling.num_steps
    ess = metrics.min_bulk_ess(values)
    found: dict[str, Any] = {
        "kl": metrics.two_moment_kl(values, target.mean, target.covariance),
        "mean_error": metrics.relative_mean_error(values, target.mean),
        "covariance_error": metrics.relative_covariance_error(values, target.covariance),
        "min_ess": ess,
        "ess_per_second": ess / seconds,
    }
    if target.patterns.size:
        gamma = draws["gamma"]
        is_right = np.mean(gamma == (np.asarray(TRUE_COEFFICIENTS) != 0), axis=2, keepdims=True)
        found["js"] = metrics.jensen_shannon(gamma.reshape(-1, gamma.shape[-1]), target.pattern_draws)
        found["discrete_ess_per_second"] = metrics.min_bulk_ess(is_right) / seconds
    return found


def _measure_curve(job: Job, setup: Setup, row: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    variant = VARIANT_OF[job.variant]
    curve: Curve = run_curve(variant, setup.budget.gaussian_iterations, job.seed)
    row |= {
        "label": "published", "kl": float(curve.kl[-1]), "training_seconds": curve.seconds,
        "evaluations": curve.num_evaluations, "settings": json.dumps(dataclasses.asdict(variant)),
    }  # fmt: skip
    points = [
        {
            "variant": job.variant,
            "iteration": int(number),
            "cost": float(variant.cost_per_iteration * number),
            "kl": float(kl),
        }
        for number, kl in zip(curve.iterations, curve.kl, strict=True)
    ]
    return row, points


def settings_of(plan: Plan) -> str:
    """The arguments of ``fit`` as JSON, without arrays."""
    arguments = {name: value for name, value in plan.arguments.items() if name not in ("initvals", "coreset_size")}
    return json.dumps({name: _plain(value) for name, value in arguments.items()})


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return {"is": type(value).__name__, **{name: item for name, item in fields.items() if item is not None}}
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, np.ndarray | jax.Array) and np.ndim(value) > 0:
        return f"array {np.shape(value)}"
    if isinstance(value, str | int | float | bool) or value is None:
        return value
    return float(value) if np.ndim(value) == 0 and np.isreal(value) else str(value)


@lru_cache
def versions() -> str:
    """Package and interpreter versions."""
    names = ("coreset-mcmc", "jax", "numpy", "blackjax")
    return " ".join([f"python {platform.python_version()}", *(f"{name} {version(name)}" for name in names)])


@lru_cache
def hardware() -> str:
    """The processor, and how many of its cores this process may use."""
    name = platform.processor() or platform.machine()
    information = Path("/proc/cpuinfo")
    if information.exists():
        lines = [line for line in information.read_text().splitlines() if line.startswith("model name")]
        name = lines[0].partition(":")[2].strip() if lines else name
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{name}, {cores} core{'s' if cores != 1 else ''} for each run"
