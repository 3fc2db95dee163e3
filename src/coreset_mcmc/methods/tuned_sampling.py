"""Draws by Hamiltonian trajectories, or by trees, whose step size is found by the first of them, which do not count.

Training has shaped the trajectories (:mod:`coreset_mcmc.kernels.whitened_hmc`); what is left is one number, the step
size, by dual averaging over all chains together (Nesterov 2009; Hoffman and Gelman 2014). Finding it in the program
that samples spares a program of its own, which takes as long to compile as sampling takes to run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.on_use import on_use
from coreset_mcmc.core.types import Key, pytree, static
from coreset_mcmc.kernels.base import Kernel, init_chains, step_chains
from coreset_mcmc.kernels.hmc_and_lines import HMCAndLines
from coreset_mcmc.kernels.whitened_hmc import WhitenedHMC
from coreset_mcmc.kernels.whitened_nuts import WhitenedNUTS
from coreset_mcmc.methods.hopeless import hopeless_depth
from coreset_mcmc.methods.sampling import SamplesCoreset, SamplingInfo, SamplingProblem, sampling_info

adaptation = on_use("blackjax.adaptation.step_size")

NUM_TUNING = 100
TARGET_ACCEPTANCE = 0.8


class TunedState(NamedTuple):
    """The chains, and what is known about the step size."""

    chains: Any
    averaging: Any
    number: jax.Array
    done: jax.Array


class Lines(NamedTuple):
    """Parameters that move along lines of their own, too: where they are in the position, and their deviations (k,)."""

    places: jax.Array
    widths: jax.Array


@pytree
@dataclass(frozen=True)
class TunedSampling(SamplesCoreset):
    """Trajectories of a quarter period, or trees, under the inverse mass matrix L L'.

    Args:
        scale: L (d, d), a factor of the covariance of the flattened position.
        acceptance_rate: what the step size is tuned for.
        by_trees: by NUTS.
        num_tuning: how many of the first draws search for the step size.
        lines: parameters that trajectories cannot cross in steps that suit the others.
    """

    scale: jax.Array
    acceptance_rate: float | jax.Array = TARGET_ACCEPTANCE
    by_trees: bool = static(default=False)
    num_tuning: int = NUM_TUNING
    lines: Lines | None = None

    may_be_replaced = True
    takes_few_steps = True
    """Trajectories spend their time in matrix products, which gain nothing from a longer compilation."""

    def _kernel(self, step_size: jax.Array) -> Kernel:
        if self.by_trees:
            return WhitenedNUTS(self.scale, step_size)
        if self.lines is not None:
            return HMCAndLines(self.scale, step_size, *self.lines)
        return WhitenedHMC(self.scale, step_size)

    def init(self, key: Key, problem: SamplingProblem) -> TunedState:
        del key
        first = jnp.asarray(self.scale.shape[0] ** -0.25, self.scale.dtype)
        averaging = adaptation.dual_averaging_adaptation(self.acceptance_rate)[0](first)
        chains = without_strays(init_chains(self._kernel(first), problem.initial_positions, problem.target))
        return TunedState(chains, averaging, jnp.zeros((), jnp.int32), jnp.array(False))

    def step(self, key: Key, state: TunedState, problem: SamplingProblem) -> tuple[TunedState, SamplingInfo]:
        _, update, final = adaptation.dual_averaging_adaptation(self.acceptance_rate)
        is_tuning = state.number < self.num_tuning
        step_size = jnp.where(is_tuning, jnp.exp(state.averaging.log_step_size), final(state.averaging))
        chains, info = step_chains(self._kernel(step_size), key, state.chains, problem.target)
        rates = jnp.where(jnp.isfinite(info.acceptance_rate), info.acceptance_rate, 0.0)
        updated = update(state.averaging, jnp.mean(rates))
        averaging = jax.tree.map(lambda new, old: jnp.where(is_tuning, new, old), updated, state.averaging)
        moved = TunedState(chains, averaging, state.number + 1, state.done)
        return moved, sampling_info(chains, info, problem.target)


def without_strays(chains: Any) -> Any:
    """Chains that start where hardly any probability can be go where the highest one starts.

    Starts may come from a Gaussian that is much too wide. So far out gradients are so large that no step size serves
    there and elsewhere, and such a chain never moves.
    """
    heights = jnp.where(jnp.isfinite(chains.log_density), chains.log_density, -jnp.inf)
    num_coordinates = sum(leaf[0].size for leaf in jax.tree.leaves(chains.position))
    is_stray = heights < jnp.max(heights) - hopeless_depth(num_coordinates)
    places = jnp.where(is_stray, jnp.argmax(heights), jnp.arange(heights.size))
    return jax.tree.map(lambda leaf: leaf[places], chains)
