"""Contestants that take a PyMC model: its own NUTS, and nutpie with two back ends. Two chains, one for each core."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from coreset_mcmc_benchmarks.speed.clock import timed
from coreset_mcmc_benchmarks.speed.effort import Effort
from coreset_mcmc_benchmarks.speed.outcome import Outcome
from coreset_mcmc_benchmarks.speed.pymc_models import PYMC_MODELS
from coreset_mcmc_benchmarks.speed.sizes import Data, dimension

NUM_CHAINS = 2


def run_pymc(name: str, data: Data, effort: Effort, seed: int) -> Outcome:
    """``pm.sample`` as it is, with fewer draws; it tells how long each draw took, but not what compiling did."""
    import pymc as pm  # noqa: PLC0415 - an optional extra

    size = len(data["y"])
    tune, draws = effort.pymc_steps(size, dimension(name, data))
    with PYMC_MODELS[name](data):
        traces = pm.sample(
            draws=draws, tune=tune, chains=NUM_CHAINS, cores=NUM_CHAINS, random_seed=seed, progressbar=False,
            discard_tuned_samples=False,
        )  # fmt: skip
    seconds = [
        float(stats["perf_counter_diff"].sum("draw").max())
        for stats in (traces.warmup_sample_stats, traces.sample_stats)
    ]
    return Outcome(
        draws=_draws(traces),
        training_seconds=seconds[0],
        training_compile_seconds=math.nan,
        sampling_seconds=seconds[1],
        evaluations=_steps(traces) * size,
        note=f"{tune} steps of tuning",
        compile_seconds=math.nan,
    )


def run_nutpie_numba(name: str, data: Data, effort: Effort, seed: int) -> Outcome:
    """The default back end."""
    return _nutpie(name, data, effort, seed, "numba")


def run_nutpie_jax(name: str, data: Data, effort: Effort, seed: int) -> Outcome:
    """The same through JAX."""
    return _nutpie(name, data, effort, seed, "jax")


def _nutpie(name: str, data: Data, effort: Effort, seed: int, backend: str) -> Outcome:
    """Its diagonal mass matrix from gradients. Tuning and sampling are parted by their steps."""
    import nutpie  # noqa: PLC0415 - an optional extra

    size = len(data["y"])
    steps = effort.nuts_steps if backend == "jax" else effort.pymc_steps
    tune, draws = steps(size, dimension(name, data))
    with timed() as compiling:
        compiled = nutpie.compile_pymc_model(PYMC_MODELS[name](data), backend=backend)
    with timed() as whole:
        traces = nutpie.sample(
            compiled, draws=draws, tune=tune, chains=NUM_CHAINS, cores=NUM_CHAINS, seed=seed, progress_bar=False
        )
    share = float(traces.sample_stats["n_steps"].sum()) / _steps(traces)
    also = 0.0 if math.isnan(whole.compile_seconds) else whole.compile_seconds
    return Outcome(
        draws=_draws(traces),
        training_seconds=(1.0 - share) * whole.running_seconds,
        training_compile_seconds=compiling.seconds + also,
        sampling_seconds=share * whole.running_seconds,
        evaluations=_steps(traces) * size,
        note=f"{tune} steps of tuning",
        compile_seconds=compiling.seconds + also,
    )


def _draws(traces: Any) -> dict[str, np.ndarray]:
    return {str(name): values.to_numpy() for name, values in traces.posterior.data_vars.items()}


def _steps(traces: Any) -> float:
    """Gradients, tuning included."""
    return float(traces.warmup_sample_stats["n_steps"].sum() + traces.sample_stats["n_steps"].sum())
