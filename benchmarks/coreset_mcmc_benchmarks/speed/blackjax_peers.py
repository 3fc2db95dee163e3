"""Contestants of BlackJAX, which takes a log-density in JAX: ours, loaded before the clock starts."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.data import to_array_data
from coreset_mcmc.posterior.full import full_log_density
from coreset_mcmc.posterior.problem import starting_positions
from coreset_mcmc_benchmarks.ready import ready
from coreset_mcmc_benchmarks.speed.clock import timed
from coreset_mcmc_benchmarks.speed.effort import Effort
from coreset_mcmc_benchmarks.speed.ours import model_of
from coreset_mcmc_benchmarks.speed.outcome import Outcome
from coreset_mcmc_benchmarks.speed.sizes import Data, dimension

NUM_CHAINS = 2
NUM_ELBO_DRAWS = 20
"""Draws by which Pathfinder judges each of its approximations; its default of 200 would take longer than the search."""


@double_precision
def run_blackjax_nuts(name: str, data: Data, effort: Effort, seed: int) -> Outcome:
    """NUTS after window adaptation with a diagonal mass matrix, which is the default; one chain on each device."""
    import blackjax  # noqa: PLC0415

    model, rows = model_of(name, data), to_array_data(data)
    tune, draws = effort.nuts_steps(rows.size, dimension(name, data))
    starts = starting_positions(model, jax.random.key(seed), NUM_CHAINS)

    def log_density(rows: Any) -> Any:
        return lambda at: full_log_density(model, rows, at)

    def adapt(key: Any, rows: Any, start: Any) -> Any:
        (state, parameters), info = blackjax.window_adaptation(blackjax.nuts, log_density(rows)).run(
            key, start, num_steps=tune
        )
        return state, parameters, jnp.sum(info.info.num_integration_steps)

    def sample(key: Any, rows: Any, state: Any, parameters: Any) -> Any:
        step = blackjax.nuts(log_density(rows), **parameters).step

        def once(state: Any, key: Any) -> Any:
            state, info = step(key, state)
            return state, (state.position, info.num_integration_steps)

        _, (positions, steps) = jax.lax.scan(once, state, jax.random.split(key, draws))
        return positions, jnp.sum(steps)

    over_chains = jax.pmap if jax.local_device_count() >= NUM_CHAINS else jax.vmap
    adapt_chains = over_chains(adapt, in_axes=(0, None, 0))
    sample_chains = over_chains(sample, in_axes=(0, None, 0, 0))
    tune_key, run_key = jax.random.split(jax.random.key(seed))
    with timed() as tuning:
        state, parameters, tune_steps = ready(adapt_chains(jax.random.split(tune_key, NUM_CHAINS), rows, starts))
    with timed() as sampling:
        drawn, steps = ready(sample_chains(jax.random.split(run_key, NUM_CHAINS), rows, state, parameters))
        positions = {name: np.asarray(values) for name, values in drawn.items()}
    return Outcome(
        draws=positions,
        training_seconds=tuning.running_seconds,
        training_compile_seconds=tuning.compile_seconds,
        sampling_seconds=sampling.running_seconds,
        evaluations=float(jnp.sum(tune_steps) + jnp.sum(steps)) * rows.size,
        note=f"{tune} steps of tuning",
    )


@double_precision
def run_pathfinder(name: str, data: Data, effort: Effort, seed: int) -> Outcome:
    """The best Gaussian along a path of L-BFGS (Zhang et al. 2022); its draws are independent and not weighted."""
    from blackjax.vi import pathfinder  # noqa: PLC0415 - BlackJAX takes a second to import

    model, rows = model_of(name, data), to_array_data(data)
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
