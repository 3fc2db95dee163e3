"""Moments of the full posteriors, kept in files like those of the paper's experiments.

- ``paper``: NUTS or Gibbs on all rows, the references of ``coreset-mcmc bench paper``.
- ``importance``: the Laplace approximation with Pareto-smoothed importance weights; refused if their shape k is 0.7 or
  more. At these sizes the weights are nearly equal.
- ``nuts``: a run of NumPyro's NUTS on all rows, longer than the contestant's.
- ``factor``: independent draws, exact to the width of a grid: one factor from its marginal, the rest from its Gaussian
  conditional (see :func:`coreset_mcmc.models.unidentified.log_density_of_a_factor`).
- ``estimate``: none; the estimated KL of a coreset stands instead.
"""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from arviz_stats.base.array import array_stats

from coreset_mcmc.core.errors import RunError
from coreset_mcmc.diagnostics.metrics import min_bulk_ess
from coreset_mcmc.fitting.fit import fit
from coreset_mcmc.methods.full_data import Laplace
from coreset_mcmc.models.unidentified import log_density_of_a_factor
from coreset_mcmc_benchmarks.draws import Draws, continuous, draws_of
from coreset_mcmc_benchmarks.paper.budget import FULL as PAPER
from coreset_mcmc_benchmarks.paper.cases import CASE_OF
from coreset_mcmc_benchmarks.paper.references import (
    MAX_R_HAT,
    Reference,
    reference,
    stored_or_made,
)
from coreset_mcmc_benchmarks.speed.effort import Effort
from coreset_mcmc_benchmarks.speed.numpyro_peers import run_nuts
from coreset_mcmc_benchmarks.speed.problems import PROBLEMS, Problem
from coreset_mcmc_benchmarks.speed.sizes import Data

SEED = 99
NUM_DRAWS = 4_000
LARGEST_SHAPE = 0.7
NUM_GRID = 20_001
WIDEST_FACTOR = 6.0


def moments(name: str, data: Data, folder: Path, num_draws: int = NUM_DRAWS) -> Reference | None:
    """The reference of a problem, read or made; None if it is too dear."""
    problem = PROBLEMS[name]
    if problem.reference == "estimate":
        return None
    if problem.reference == "paper":
        assert problem.case is not None
        return reference(CASE_OF[problem.case](data), PAPER.reference_draws, folder)
    key = _key(name, data, num_draws)
    return stored_or_made(folder / f"{key}.npz", lambda: _make(problem, data, num_draws, key))


def _key(name: str, data: Data, num_draws: int) -> str:
    digest = hashlib.sha256(f"{name}/{PROBLEMS[name].reference}/{num_draws}/{SEED}".encode())
    for column in sorted(data):
        digest.update(column.encode() + np.ascontiguousarray(data[column]).tobytes())
    return f"{name}-{digest.hexdigest()[:12]}"


def _make(problem: Problem, data: Data, num_draws: int, key: str) -> Reference:
    make = {"importance": _weighted_draws, "nuts": _nuts_draws, "factor": _factor_draws}[problem.reference]
    draws, checks = make(problem, data, num_draws)
    values = continuous(problem.fold(draws))
    pooled = values.reshape(-1, values.shape[-1])
    checks |= {"draws": len(pooled), "min_ess": min_bulk_ess(values)}
    no_patterns = np.zeros((0, 0), int)
    return Reference(key, pooled.mean(axis=0), np.cov(pooled, rowvar=False), no_patterns, np.zeros(0, int), checks)


def _weighted_draws(problem: Problem, data: Data, num_draws: int) -> tuple[Draws, dict[str, Any]]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = fit(
            problem.model(data), data, method=Laplace(), draws=num_draws // 4, tune=0, random_seed=SEED,
            progressbar=False,
        )  # fmt: skip
    shape = float(fitted.tree["sample_stats"]["pareto_k"].to_numpy().flat[0])
    if not shape < LARGEST_SHAPE:
        raise RunError(f"The importance weights have shape {shape:.2f}: they give no reference.")
    return draws_of(fitted), {"pareto_k": shape}


def _nuts_draws(problem: Problem, data: Data, num_draws: int) -> tuple[Draws, dict[str, Any]]:
    effort = Effort(nuts=((1e15, 500, num_draws // 2),))
    draws = run_nuts(problem.kind, data, effort, SEED).draws
    r_hat = float(np.max(array_stats.rhat(continuous(problem.fold(draws)), chain_axis=0, draw_axis=1)))
    if r_hat > MAX_R_HAT:
        raise RunError(f"The reference has R-hat {r_hat:.3f}, above {MAX_R_HAT}: ask for more draws.")
    return draws, {"max_r_hat": r_hat}


def _factor_draws(problem: Problem, data: Data, num_draws: int) -> tuple[Draws, dict[str, Any]]:
    del problem
    num_draws *= 10
    rng = np.random.default_rng(SEED)
    grid = np.linspace(-WIDEST_FACTOR, WIDEST_FACTOR, NUM_GRID)
    log_density = log_density_of_a_factor(grid, data)
    cumulated = np.cumsum(np.exp(log_density - log_density.max()))
    first = np.interp(rng.random(num_draws), cumulated / cumulated[-1], grid)
    scale = np.stack([first, np.ones(num_draws)], axis=1)
    x, y = data["x"], data["y"]
    precision = np.eye(2) + scale[:, :, None] * (x.T @ x) * scale[:, None, :]
    mean = np.linalg.solve(precision, (scale * (x.T @ y))[..., None])[..., 0]
    factor = np.linalg.cholesky(np.linalg.inv(precision))
    rest = mean + (factor @ rng.normal(size=(num_draws, 2, 1)))[..., 0]
    draws = {"factors": np.stack([first, rest[:, 0]], axis=1)[None], "slope": rest[None, :, 1]}
    return draws, {"grid": NUM_GRID}
