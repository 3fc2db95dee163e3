"""Moments of the full posteriors, from long runs on all rows, kept in files.

NUTS for the continuous models, Gibbs sampling for the sparse regression. A file is named by a hash of model, data and
settings, so a change of any of them makes a new one. Each reference is checked: R-hat of every coordinate, and for
continuous models the distance to the Laplace approximation, which is close at these sizes.
"""

from __future__ import annotations

import hashlib
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from arviz_stats.base.array import array_stats

from coreset_mcmc.core.errors import RunError
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.diagnostics.metrics import min_bulk_ess
from coreset_mcmc.driver.run import run
from coreset_mcmc.fitting.fit import fit
from coreset_mcmc.methods.full_data import NUTS, Laplace
from coreset_mcmc.methods.sampling import sample_coreset
from coreset_mcmc.posterior.problem import make_problem, starting_positions
from coreset_mcmc_benchmarks.draws import Draws, continuous, draws_of
from coreset_mcmc_benchmarks.paper.cases import Case

NUM_CHAINS = 4
SEED = 99
MAX_R_HAT = 1.01
GIBBS_DISCARDED = 1_000


@dataclass(frozen=True)
class Reference:
    """What the metrics compare with."""

    key: str
    mean: np.ndarray
    covariance: np.ndarray
    patterns: np.ndarray
    """Distinct patterns (P, p) of the discrete coordinates; empty if there are none."""
    counts: np.ndarray
    checks: dict[str, Any]

    @property
    def pattern_draws(self) -> np.ndarray:
        return np.repeat(self.patterns, self.counts, axis=0)


def key_of(case: Case, num_draws: int) -> str:
    """A hash of everything the reference depends on."""
    digest = hashlib.sha256(f"{case.model.name}/{num_draws}/{NUM_CHAINS}/{SEED}".encode())
    for name in sorted(case.data):
        digest.update(name.encode() + np.ascontiguousarray(case.data[name]).tobytes())
    return f"{case.name}-{digest.hexdigest()[:12]}"


def reference(case: Case, num_draws: int, folder: Path) -> Reference:
    """The reference of a case, from its file if there is one."""
    key = key_of(case, num_draws)
    return stored_or_made(folder / f"{key}.npz", lambda: _make(case, num_draws, key))


def stored_or_made(path: Path, make: Callable[[], Reference]) -> Reference:
    """What is in the file; if there is none, what ``make`` returns, which is then put there."""
    if path.exists():
        with np.load(path) as stored:
            arrays = {name: stored[name] for name in ("mean", "covariance", "patterns", "counts")}
            return Reference(path.stem, **arrays, checks=json.loads(str(stored["checks"])))
    made = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_path = path.with_suffix(".part.npz")
    np.savez(
        partial_path,
        mean=made.mean,
        covariance=made.covariance,
        patterns=made.patterns,
        counts=made.counts,
        checks=json.dumps(made.checks),
    )
    partial_path.replace(path)
    return made


def _make(case: Case, num_draws: int, key: str) -> Reference:
    began = time.perf_counter()
    draws = _gibbs_draws(case, num_draws) if case.is_discrete else _nuts_draws(case, num_draws)
    seconds = time.perf_counter() - began
    values = continuous(draws)
    r_hat = float(np.max(array_stats.rhat(values, chain_axis=0, draw_axis=1)))
    if r_hat > MAX_R_HAT:
        raise RunError(f"The reference of {case.name} has R-hat {r_hat:.3f}, above {MAX_R_HAT}: ask for more draws.")
    pooled = values.reshape(-1, values.shape[-1])
    mean, covariance = pooled.mean(axis=0), np.cov(pooled, rowvar=False)
    checks: dict[str, Any] = {
        "draws": len(pooled),
        "max_r_hat": r_hat,
        "min_ess": min_bulk_ess(values),
        "seconds": seconds,
    }
    if case.is_discrete:
        patterns, counts = np.unique(draws["gamma"].reshape(len(pooled), -1), axis=0, return_counts=True)
    else:
        patterns, counts = np.zeros((0, 0), int), np.zeros(0, int)
        checks |= _distance_to_laplace(case, mean, covariance)
    return Reference(key, mean, covariance, patterns, counts, checks)


def _nuts_draws(case: Case, num_draws: int) -> Draws:
    fitted = fit(
        case.model, case.data, method=NUTS(), chains=NUM_CHAINS, draws=num_draws // NUM_CHAINS, tune=0,
        random_seed=SEED, progressbar=False,
    )  # fmt: skip
    return draws_of(fitted)


@double_precision
def _gibbs_draws(case: Case, num_draws: int) -> Draws:
    """The exact Gibbs sampler with weight one on every row."""
    rows = to_array_data(case.data)
    every_row = SelectedRows(np.arange(rows.size), np.ones(rows.size))
    starts = starting_positions(case.model, jax.random.key(0), NUM_CHAINS, case.start)
    problem = make_problem(case.model, rows, every_row, starts)
    trained = sample_coreset(problem, every_row, problem.initial_positions, case.kernel, NUM_CHAINS)
    num_steps = GIBBS_DISCARDED + num_draws // NUM_CHAINS
    history = run(trained.sampler, trained.problem, jax.random.key(SEED), num_steps=num_steps).history
    return {name: np.swapaxes(np.asarray(values)[GIBBS_DISCARDED:], 0, 1) for name, values in history.position.items()}


def _distance_to_laplace(case: Case, mean: np.ndarray, covariance: np.ndarray) -> dict[str, float]:
    """Largest difference of means in standard deviations, and of log standard deviations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = fit(case.model, case.data, method=Laplace(), draws=2_500, tune=0, random_seed=SEED, progressbar=False)
    draws = continuous(draws_of(fitted)).reshape(-1, len(mean))
    deviations = np.sqrt(np.diagonal(covariance))
    return {
        "laplace_mean_gap": float(np.max(np.abs(draws.mean(axis=0) - mean) / deviations)),
        "laplace_deviation_gap": float(np.max(np.abs(np.log(draws.std(axis=0) / deviations)))),
    }
