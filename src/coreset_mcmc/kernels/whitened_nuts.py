"""The No-U-Turn sampler in coordinates whitened by a known covariance (Hoffman and Gelman 2014).

Where the scale of a target changes from place to place no one length suits all trajectories: trees double until they
turn, wherever they are. Trees are BlackJAX's.
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

nuts = on_use("blackjax.mcmc.nuts")

MAX_DOUBLINGS = 10


@pytree
@dataclass(frozen=True)
class WhitenedNUTS(Whitened):
    """Trees of at most 2^10 - 1 steps under the inverse mass matrix L L'.

    Args:
        scale: L (d, d), a factor of the covariance of the flattened position.
        step_size: in standard deviations.
    """

    has_data_dependent_loops = True

    def step(self, key: Key, state: WhitenedState, target: CoresetTarget) -> tuple[WhitenedState, KernelInfo]:
        def move(start: Any, density: Any, inverse_masses: jax.Array) -> Any:
            return nuts.build_kernel()(key, start, density, self.step_size, inverse_masses, MAX_DOUBLINGS)

        moved, info = self._moved(move, state, target)
        return moved, KernelInfo(
            acceptance_rate=info.acceptance_rate,
            num_evaluations=jnp.asarray(info.num_integration_steps, jnp.int32),
            diverging=info.is_divergent,
        )
