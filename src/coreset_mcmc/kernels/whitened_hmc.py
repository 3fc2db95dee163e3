"""Hamiltonian Monte Carlo in coordinates whitened by a known covariance.

Training has seen hundreds of draws of the target and knows its covariance L L'. With that as inverse mass matrix the
target looks like a standard normal, where a trajectory of length pi / 2 makes a draw that is nearly independent of the
last; so the number of leapfrog steps follows from the step size (:mod:`coreset_mcmc.methods.tuned_sampling` finds it).
No tree doubles until it turns, as that of NUTS does, and all chains take the same number of steps, so they move
together in one matrix product. Trajectories are BlackJAX's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from coreset_mcmc.core.on_use import on_use
from coreset_mcmc.core.types import Key, pytree
from coreset_mcmc.kernels.base import KernelInfo
from coreset_mcmc.kernels.whitened import Whitened, WhitenedState
from coreset_mcmc.posterior.target import CoresetTarget

hmc = on_use("blackjax.mcmc.hmc")

TRAJECTORY = 1.5708
"""pi / 2: a quarter of the period of a standard normal target."""

JITTER = 0.2
"""Each trajectory has a step size up to this share longer or shorter, so that none is periodic."""

MAX_LEAPFROG = 64


@pytree
@dataclass(frozen=True)
class WhitenedHMC(Whitened):
    """Trajectories of a quarter period under the inverse mass matrix L L'.

    Args:
        scale: L (d, d), a factor of the covariance of the flattened position.
        step_size: in standard deviations.
    """

    @property
    def num_leapfrog(self) -> jax.Array:
        return jnp.clip(jnp.round(TRAJECTORY / self.step_size), 1, MAX_LEAPFROG).astype(jnp.int32)

    def step(self, key: Key, state: WhitenedState, target: CoresetTarget) -> tuple[WhitenedState, KernelInfo]:
        move_key, jitter_key = jax.random.split(key)
        jitter = jax.random.uniform(jitter_key, (), state.gradient.dtype, 1.0 - JITTER, 1.0 + JITTER)
        step_size, count = self.step_size * jitter, self.num_leapfrog

        def move(start: Any, density: Any, inverse_masses: jax.Array) -> Any:
            return hmc.build_kernel()(move_key, start, density, step_size, inverse_masses, count)

        moved, info = self._moved(move, state, target)
        return moved, KernelInfo(
            acceptance_rate=info.acceptance_rate,
            num_evaluations=jnp.asarray(count, jnp.int32),
            diverging=info.is_divergent,
        )
