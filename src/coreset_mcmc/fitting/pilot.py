"""A pilot run that learns the shape of the coreset posterior before training.

Hit-and-run along uniform directions crawls when parameters are correlated. A few short rounds of sampling under the
initial weights, each shaped by the covariance of the draws of the one before, bring the chains to their target and give
a scale that is then frozen: for a fixed scale the kernel leaves every pi_w invariant, and moving weights change the
shape of pi_w far less than its location. No gradients are needed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.randomness import split
from coreset_mcmc.core.trees import dimension, first_position, flat_draws
from coreset_mcmc.core.types import Key, Position
from coreset_mcmc.driver.run import Run, run
from coreset_mcmc.kernels.shape import shrunk_factor
from coreset_mcmc.kernels.slice import HitAndRunSlice
from coreset_mcmc.methods.sampling import FrozenSampling, SamplingProblem
from coreset_mcmc.posterior.problem import Problem

NUM_ROUNDS = 4
DRAWS_PER_ROUND = 100


class Pilot(NamedTuple):
    """What training starts from."""

    positions: Position
    """The last state of each chain."""
    scale: jax.Array
    """A lower Cholesky factor (d, d) of the covariance of the draws."""
    rounds: list[Run]


def run_pilot(problem: Problem, key: Key, *, progressbar: bool = False) -> Pilot:
    """Sample under the initial weights, refining the scale of the directions from round to round."""
    positions = problem.initial_positions
    num_coordinates = dimension(first_position(positions))
    kernel = HitAndRunSlice(num_directions=num_coordinates, scale=jnp.eye(num_coordinates))
    rounds: list[Run] = []
    for number, round_key in enumerate(split(key, NUM_ROUNDS), start=1):
        sampling = run(
            FrozenSampling(kernel),
            SamplingProblem(problem.target(problem.initial_weights), positions),
            round_key,
            num_steps=DRAWS_PER_ROUND,
            progressbar=progressbar,
            description=f"pilot {number}/{NUM_ROUNDS}",
            transient=True,
        )
        if sampling.is_interrupted:
            raise KeyboardInterrupt("interrupted in the pilot run, before there was anything to return")
        positions = sampling.state.chains.position
        kept = flat_draws(sampling.history.position)[DRAWS_PER_ROUND // 2 :]
        scale = shrunk_factor(jnp.asarray(kept.reshape(-1, num_coordinates)))
        kernel = replace(kernel, scale=scale)
        rounds.append(sampling)
    return Pilot(positions, scale, rounds)
