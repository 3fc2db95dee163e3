"""Samplers of other libraries: NumPyro's NUTS and HMCECS, BlackJAX's Pathfinder."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import RunError
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.core.status import Status
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import Uniform
from coreset_mcmc.interop.installed import require_library
from coreset_mcmc.posterior.full import full_log_density
from coreset_mcmc.posterior.newton import LaplaceApproximation, NewtonSearch, approximation_at, find_mode
from coreset_mcmc.posterior.problem import make_problem, starting_positions
from coreset_mcmc_benchmarks.ready import ready
from coreset_mcmc_benchmarks.speed.clock import timed
from coreset_mcmc_benchmarks.speed.effort import MANY_ROWS, Effort
from coreset_mcmc_benchmarks.speed.outcome import Outcome
from coreset_mcmc_benchmarks.speed.problems import Data, Problem

NUM_CHAINS = 2
NUM_BLOCKS = 100
"""Blocks of the subsample of HMCECS, one of which is refreshed with each draw."""
SUBSAMPLE_SHARE, MIN_SUBSAMPLE = 0.01, 1_000
GAUSSIAN_STEP = 1.2
"""Times d^-1/4: a step size that a standard normal target accepts nine times in ten."""
NUM_ELBO_DRAWS = 20
"""Draws by which Pathfinder judges each of its approximations; its default of 200 would take longer than the search."""


def _model(problem: Problem) -> Any:
    require_library("numpyro", "numpyro")
    from coreset_mcmc_benchmarks.speed.peers import PEERS  # noqa: PLC0415 - needs the extra

    assert problem.peer is not None
    return PEERS[problem.peer]


@double_precision
def run_nuts(problem: Problem, data: Data, effort: Effort, seed: int) -> Outcome:
    """Dense mass matrix, two chains at the same time, one for each core.

    With very many rows a chain would spend hours on finding the posterior. It is then given the mode and the covariance
    of the Laplace approximation and a step size that suits a Gaussian, so it has nothing to tune, and its short run is
    scaled up.
    """
    model = _model(problem)
    from numpyro.infer import MCMC, NUTS  # noqa: PLC0415

    size = len(next(iter(data.values())))
    tune, draws = effort.nuts_steps(size)
    is_helped = size > MANY_ROWS
    options: dict[str, Any] = {"dense_mass": True}
    starts, note = None, f"{tune} steps of tuning"
    with timed() as free:
        if is_helped:
            gaussian, unravel = laplace_approximation(problem, data)
            noise = np.random.default_rng(seed).normal(size=(NUM_CHAINS, gaussian.mean.size))
            starts = jax.vmap(unravel)(gaussian.draws(jnp.asarray(noise)))
            options |= {
                "inverse_mass_matrix": gaussian.scale_factor @ gaussian.scale_factor.T,
                "adapt_mass_matrix": False,
                "adapt_step_size": False,
                "step_size": GAUSSIAN_STEP * gaussian.mean.size**-0.25,
            }
            note = "given mode, covariance and step size"
    is_parallel = jax.local_device_count() >= NUM_CHAINS and not is_helped
    chains = MCMC(
        NUTS(model, **options),
        num_warmup=tune,
        num_samples=draws,
        num_chains=NUM_CHAINS,
        chain_method="parallel" if is_parallel else "sequential",
        progress_bar=False,
        jit_model_args=is_helped,
    )
    tune_key, run_key = jax.random.split(jax.random.key(seed))
    arrays = {name: jnp.asarray(values) for name, values in data.items()}
    with timed() as tuning:
        chains.warmup(tune_key, arrays, extra_fields=("num_steps",), collect_warmup=True, init_params=starts)
        steps = int(jnp.sum(chains.get_extra_fields()["num_steps"]))
    with timed() as sampling:
        chains.run(run_key, arrays, extra_fields=("num_steps",))
        sampled = jax.tree.map(np.asarray, chains.get_samples(group_by_chain=True))
        steps += int(jnp.sum(chains.get_extra_fields()["num_steps"]))
    return Outcome(
        draws=sampled,
        training_seconds=tuning.running_seconds,
        training_compile_seconds=tuning.compile_seconds,
        sampling_seconds=sampling.running_seconds,
        evaluations=float(steps) * size,
        note=note,
        free_seconds=free.seconds,
    )


@double_precision
def run_hmcecs(problem: Problem, data: Data, effort: Effort, seed: int) -> Outcome:
    """Energy-conserving subsampling around a mode that an optimiser finds on all rows; one percent of the rows."""
    model = _model(problem)
    from numpyro.infer import HMCECS, MCMC, NUTS, SVI, Trace_ELBO  # noqa: PLC0415
    from numpyro.infer.autoguide import AutoDelta  # noqa: PLC0415
    from numpyro.optim import Minimize  # noqa: PLC0415

    size = len(next(iter(data.values())))
    subsample = min(max(int(SUBSAMPLE_SHARE * size), MIN_SUBSAMPLE), size // 2)
    tune, draws = effort.subsampled
    arrays = {name: jnp.asarray(values) for name, values in data.items()}
    mode_key, run_key = jax.random.split(jax.random.key(seed))
    with timed() as search:
        guide = AutoDelta(model)
        found = SVI(model, guide, Minimize(), Trace_ELBO()).run(mode_key, 3, arrays, progress_bar=False)
        mode = guide.median(found.params)
    kernel = HMCECS(NUTS(model, dense_mass=True), num_blocks=NUM_BLOCKS, proxy=HMCECS.taylor_proxy(mode))
    chains = MCMC(
        kernel, num_warmup=tune, num_samples=draws, num_chains=NUM_CHAINS, progress_bar=False,
        chain_method="parallel" if jax.local_device_count() >= NUM_CHAINS else "sequential",
    )  # fmt: skip
    starts = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (NUM_CHAINS, *jnp.shape(leaf))), mode)
    with timed() as sampling:
        chains.run(run_key, arrays, subsample, init_params=starts, extra_fields=("hmc_state.num_steps",))
        sampled = jax.tree.map(np.asarray, chains.get_samples(group_by_chain=True))
        steps = int(jnp.sum(chains.get_extra_fields()["hmc_state.num_steps"]))
    share = tune / (tune + draws)
    return Outcome(
        draws={name: values for name, values in sampled.items() if np.issubdtype(values.dtype, np.floating)},
        training_seconds=search.running_seconds + share * sampling.running_seconds,
        training_compile_seconds=search.compile_seconds + sampling.compile_seconds,
        sampling_seconds=(1.0 - share) * sampling.running_seconds,
        evaluations=float(steps) * subsample * (1.0 + tune / draws),
        note=f"{subsample} rows at a time; tuning and sampling parted by their steps",
    )


@double_precision
def run_pathfinder(problem: Problem, data: Data, effort: Effort, seed: int) -> Outcome:
    """The best Gaussian along a path of L-BFGS (Zhang et al. 2022); its draws are independent and not weighted."""
    from blackjax.vi import pathfinder  # noqa: PLC0415 - BlackJAX takes a second to import

    model, rows = problem.model(data), to_array_data(data)
    start = jax.tree.map(lambda leaf: leaf[0], starting_positions(model, jax.random.key(seed), 1))

    @jax.jit
    def search(key: Any, rows: Any, start: Any) -> Any:
        return pathfinder.approximate(
            key, lambda at: full_log_density(model, rows, at), start, num_samples=NUM_ELBO_DRAWS
        )

    search_key, draw_key = jax.random.split(jax.random.key(seed))
    with timed() as searching:
        state, info = ready(search(search_key, rows, start))
    with timed() as sampling:
        drawn, _ = pathfinder.sample(draw_key, state, effort.kept)
        draws = {name: np.asarray(values)[None] for name, values in drawn.items()}
    iterations = int(jnp.sum(jnp.isfinite(info.path.elbo)))
    return Outcome(
        draws=draws,
        training_seconds=searching.running_seconds,
        training_compile_seconds=searching.compile_seconds,
        sampling_seconds=sampling.running_seconds,
        evaluations=float(iterations) * (NUM_ELBO_DRAWS + 1) * rows.size,
        note="a Gaussian, not corrected",
    )


@double_precision
def laplace_approximation(problem: Problem, data: Data) -> tuple[LaplaceApproximation, Any]:
    """The Gaussian at the mode of all rows, and how to unflatten its draws."""
    model, rows = problem.model(data), to_array_data(data)
    starts = starting_positions(model, jax.random.key(0), 1)
    selected = Uniform().select(np.random.default_rng(0), data, rows.size, 1)
    state, info = jax.jit(lambda problem: find_mode(problem, NewtonSearch()))(
        make_problem(model, rows, selected, starts)
    )
    if int(info.status) != Status.OK.value:
        raise RunError(f"laplace: {Status(int(info.status)).message}")
    return approximation_at(state), ravel_pytree(jax.tree.map(lambda leaf: leaf[0], starts))[1]
