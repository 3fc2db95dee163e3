"""Random-walk Metropolis (section 3.2 of the paper names it as the basic choice).

Written out rather than adapted from BlackJAX so that the scale is an argument of the compiled program, not part of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import require_positive
from coreset_mcmc.core.types import Key, pytree
from coreset_mcmc.kernels.base import Kernel, KernelInfo, KernelState
from coreset_mcmc.posterior.target import CoresetTarget


@pytree
@dataclass(frozen=True)
class RandomWalk(Kernel):
    """Propose theta + scale * noise, accept by Metropolis.

    Args:
        scale: a number, one number for each flattened coordinate, or a (d, d) factor L (proposal covariance L L').
    """

    scale: float | jax.Array = 0.1

    def __post_init__(self) -> None:
        require_positive("RandomWalk scale", self.scale)

    def step(self, key: Key, state: KernelState, target: CoresetTarget) -> tuple[KernelState, KernelInfo]:
        noise_key, accept_key = jax.random.split(key)
        flat, unravel = ravel_pytree(state.position)
        noise = jax.random.normal(noise_key, flat.shape, flat.dtype)
        scale = jnp.asarray(self.scale, flat.dtype)
        proposal = unravel(flat + (scale @ noise if scale.ndim == 2 else scale * noise))
        log_density = target.log_density(proposal)
        log_ratio = jnp.where(log_density == -jnp.inf, -jnp.inf, log_density - state.log_density)
        is_accepted = jnp.log(jax.random.uniform(accept_key, dtype=flat.dtype)) < log_ratio
        moved = KernelState(proposal, log_density)
        chosen = jax.tree.map(lambda new, old: jnp.where(is_accepted, new, old), moved, state)
        info = KernelInfo(
            acceptance_rate=jnp.exp(jnp.minimum(log_ratio, 0.0)),
            num_evaluations=jnp.ones((), jnp.int32),
            diverging=jnp.array(False),
        )
        return chosen, info
