"""Many draws by Hamiltonian trajectories, made by the programs that sample the trained coreset.

Windows of training and the sampling at the end differ in numbers only: the shape, the weights, how many of the first
steps look for a step size. So one compiled program serves both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.randomness import split
from coreset_mcmc.core.types import Key, Position
from coreset_mcmc.driver.compiled import CAPACITY, trace_ahead
from coreset_mcmc.driver.programs import Programs
from coreset_mcmc.methods.draws import Draws
from coreset_mcmc.methods.sampling import SamplingInfo, SamplingProblem
from coreset_mcmc.methods.tuned_sampling import TunedSampling
from coreset_mcmc.posterior.target import CoresetTarget


def trajectory_draws(
    key: Key, positions: Position, target: CoresetTarget, scale: Any, num_steps: int, num_discarded: int
) -> Draws:
    """``num_steps`` of each chain; they find their step size in the first ``num_discarded``, which are thrown away."""
    first_key, step_key = split(key)
    sampler, problem = _sampling(positions, target, scale, num_discarded)
    programs = Programs(sampler, problem, step_key, None, None)
    state, parts = programs.first(first_key), []
    for start in range(0, num_steps, CAPACITY):
        count = min(CAPACITY, num_steps - start)
        state, (part, _), _ = programs.advance(state, start, count)
        parts.append(jax.tree.map(lambda leaf, count=count: np.asarray(leaf)[:count], part))
    info: SamplingInfo = jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
    return Draws(
        chains=jax.tree.map(np.asarray, state.chains),
        positions=jax.tree.map(lambda leaf: leaf[num_discarded:].reshape(-1, *leaf.shape[2:]), info.position),
        acceptance_rate=np.mean(info.acceptance_rate[num_discarded:]),
        diverging=np.sum(info.diverging, dtype=np.int32),
        num_evaluations=np.sum(info.num_evaluations) // target.weights.shape[0],
    )


def trajectories_ahead(positions: Position, target: CoresetTarget, scale: Any) -> Callable[[], None]:
    """What compiles the programs behind :func:`trajectory_draws`, traced."""
    return trace_ahead(*_sampling(positions, target, scale, 0))


def _sampling(
    positions: Position, target: CoresetTarget, scale: Any, num_tuning: int
) -> tuple[TunedSampling, SamplingProblem]:
    sampler = TunedSampling(jax.device_put(np.asarray(scale)), num_tuning=num_tuning)
    return sampler, jax.device_put(SamplingProblem(target, positions))
