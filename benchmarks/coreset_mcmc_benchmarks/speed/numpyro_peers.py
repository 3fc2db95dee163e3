"""Contestants of NumPyro: NUTS, HMCECS and mean-field variational inference; none loads anything of our package."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc_benchmarks.speed.clock import timed
from coreset_mcmc_benchmarks.speed.effort import MANY_ROWS, Effort
from coreset_mcmc_benchmarks.speed.outcome import Outcome
from coreset_mcmc_benchmarks.speed.peers import PEERS
from coreset_mcmc_benchmarks.speed.sizes import Data, dimension

NUM_CHAINS = 2
NUM_BLOCKS = 100
"""Blocks of the subsample of HMCECS, one of which is refreshed with each draw."""
SUBSAMPLE_SHARE, MIN_SUBSAMPLE = 0.01, 1_000
GAUSSIAN_STEP = 1.2
"""Times d^-1/4: a step size that a standard normal target accepts nine times in ten."""
LEARNING_RATE = 0.01


def run_nuts(name: str, data: Data, effort: Effort, seed: int) -> Outcome:
    """Dense mass matrix, two chains at the same time, one for each core.

    With very many rows a chain would spend hours on finding the posterior. It is then given the mode and the covariance
    of the Laplace approximation and a step size that suits a Gaussian, so it has nothing to tune, and its short run is
    scaled up.
    """
    from numpyro import enable_x64  # noqa: PLC0415
    from numpyro.infer import MCMC, NUTS  # noqa: PLC0415

    enable_x64()
    model, size = PEERS[name], len(next(iter(data.values())))
    tune, draws = effort.nuts_steps(size, dimension(name, data))
    is_helped = size > MANY_ROWS
    options: dict[str, Any] = {"dense_mass": True}
    starts, note = None, f"{tune} steps of tuning"
    with timed() as free:
        if is_helped:
            from coreset_mcmc_benchmarks.speed.help import laplace_approximation  # noqa: PLC0415 - not on the clock

            gaussian, unravel = laplace_approximation(name, data)
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


def run_hmcecs(name: str, data: Data, effort: Effort, seed: int) -> Outcome:
    """Energy-conserving subsampling around a mode that an optimiser finds on all rows; one percent of the rows."""
    from numpyro import enable_x64  # noqa: PLC0415
    from numpyro.infer import HMCECS, MCMC, NUTS, SVI, Trace_ELBO  # noqa: PLC0415
    from numpyro.infer.autoguide import AutoDelta  # noqa: PLC0415
    from numpyro.optim import Minimize  # noqa: PLC0415

    enable_x64()
    model, size = PEERS[name], len(next(iter(data.values())))
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


def run_advi(name: str, data: Data, effort: Effort, seed: int) -> Outcome:
    """Mean-field Gaussian by stochastic gradients of the ELBO, one draw a step, on all rows; not corrected."""
    from numpyro import enable_x64  # noqa: PLC0415
    from numpyro.infer import SVI, Trace_ELBO  # noqa: PLC0415
    from numpyro.infer.autoguide import AutoNormal  # noqa: PLC0415
    from numpyro.optim import Adam  # noqa: PLC0415

    enable_x64()
    model, size = PEERS[name], len(next(iter(data.values())))
    arrays = {column: jnp.asarray(values) for column, values in data.items()}
    search_key, draw_key = jax.random.split(jax.random.key(seed))
    guide = AutoNormal(model)
    with timed() as search:
        found = SVI(model, guide, Adam(LEARNING_RATE), Trace_ELBO()).run(
            search_key, effort.variational_steps, arrays, progress_bar=False
        )
        jax.block_until_ready(found.params)
    with timed() as sampling:
        drawn = guide.sample_posterior(draw_key, found.params, arrays, sample_shape=(effort.kept,))
        draws = {name: np.asarray(values)[None] for name, values in drawn.items()}
    return Outcome(
        draws=draws,
        training_seconds=search.running_seconds,
        training_compile_seconds=search.compile_seconds,
        sampling_seconds=sampling.running_seconds,
        evaluations=float(effort.variational_steps) * size,
        note=f"an approximation, not corrected: NumPyro's AutoNormal, {effort.variational_steps} steps of Adam",
    )
