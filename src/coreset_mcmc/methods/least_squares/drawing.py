"""A window's worth of draws: from chains on the coreset posterior, or at the start from a Gaussian."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.types import Key
from coreset_mcmc.kernels.base import Kernel, init_chains
from coreset_mcmc.kernels.slice import HitAndRunSlice
from coreset_mcmc.methods.draws import Draws, collect_draws, trajectory_draws
from coreset_mcmc.methods.least_squares.start import WIDENING
from coreset_mcmc.methods.least_squares.state import LeastSquaresState, Phase
from coreset_mcmc.posterior.problem import Problem

FEWEST_TUNING = 40
"""Steps of each chain in which trajectories find their step size, in every round."""


def kernel_or_slices(kernel: Kernel | None, scale: Any) -> Kernel:
    """The user's kernel, or slice sampling along directions of the shape (d, d)."""
    return HitAndRunSlice(scale=scale, num_directions=scale.shape[0]) if kernel is None else kernel


@dataclass(frozen=True)
class WindowDrawing:
    """How windows are drawn; the arguments are those of :class:`~coreset_mcmc.methods.LeastSquares`."""

    kernel: Kernel | None
    num_draws: int
    num_chains: int
    discard: float

    def uses_trajectories(self, phase: int) -> bool:
        """Whether the chains move by Hamiltonian trajectories."""
        return phase == Phase.ROUNDS and self.kernel is None

    def draw(self, phase: int, key: Key, state: LeastSquaresState, problem: Problem) -> Draws:
        """J positions from the chains, or for the first window of a hot start from the Gaussian at the mode."""
        if phase != Phase.ROUNDS:
            return self._from_chains(phase, key, state, problem)
        result: Draws = jax.lax.cond(
            state.is_first,
            lambda: self._from_gaussian(phase, key, state, problem),
            lambda: self._from_chains(phase, key, state, problem),
        )
        return result

    def _from_chains(self, phase: int, key: Key, state: LeastSquaresState, problem: Problem) -> Draws:
        """Equal shares of all chains, which go on from the best positions, without their first steps."""
        target, num_kept = problem.target(state.weights), self.num_draws // self.num_chains
        num_discarded = math.ceil(num_kept * self.discard / (1.0 - self.discard))
        if self.uses_trajectories(phase):
            num_tuning = max(num_discarded, FEWEST_TUNING)
            return trajectory_draws(key, state.best_positions, target, state.scale, num_kept + num_tuning, num_tuning)
        kernel = kernel_or_slices(self.kernel, state.scale)
        chains = init_chains(kernel, state.best_positions, target)
        return collect_draws(kernel, key, chains, target, num_kept + num_discarded, num_discarded)

    def _from_gaussian(self, phase: int, key: Key, state: LeastSquaresState, problem: Problem) -> Draws:
        """The widened Laplace approximation, in the form of draws from chains."""
        assert state.search is not None
        noise = jax.random.normal(key, (self.num_draws, state.scale.shape[0]))
        flat = state.search.position + WIDENING * noise @ state.scale.T
        positions = jax.vmap(ravel_pytree(problem.position)[1])(flat)
        shapes = jax.eval_shape(lambda: self._from_chains(phase, key, state, problem))
        nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), shapes)
        result: Draws = nothing._replace(positions=positions, acceptance_rate=jnp.ones(()))
        return result
