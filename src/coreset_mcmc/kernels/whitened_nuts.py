"""The No-U-Turn sampler in coordinates whitened by a known covariance (Hoffman and Gelman 2014).

Where the scale of a target changes from place to place no one length suits all trajectories: trees double until they
turn, wherever they are. Trees are BlackJAX's.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax.numpy as jnp
from blackjax.mcmc import nuts

from coreset_mcmc.core.types import Key, Position, pytree
from coreset_mcmc.kernels.base import KernelInfo
from coreset_mcmc.kernels.blackjax_state import BlackJAXState
from coreset_mcmc.kernels.whitened import Whitened
from coreset_mcmc.posterior.target import CoresetTarget

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

    def init(self, position: Position, target: CoresetTarget) -> BlackJAXState:
        return BlackJAXState(nuts.init(position, target.log_density))

    def step(self, key: Key, state: BlackJAXState, target: CoresetTarget) -> tuple[BlackJAXState, KernelInfo]:
        scale = jnp.asarray(self.scale)
        moved, info = nuts.build_kernel()(
            key, state.inner, target.log_density, self.step_size, scale @ scale.T, MAX_DOUBLINGS
        )
        return BlackJAXState(moved), KernelInfo(
            acceptance_rate=info.acceptance_rate,
            num_evaluations=jnp.asarray(info.num_integration_steps, jnp.int32),
            diverging=info.is_divergent,
        )
