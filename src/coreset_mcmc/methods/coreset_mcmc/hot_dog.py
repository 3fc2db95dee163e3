"""Hot DoG: a learning-rate-free step for each weight (Chen, Huggins and Campbell, the tuning-free follow-up).

Per coordinate, the step is (distance travelled so far) * (mean gradient) / sqrt(t * mean squared gradient):

    v = b2 v + (1 - b2) g^2,  m = b1 m + (1 - b1) g,   both bias-corrected
    D = b1 D + (1 - b1) max(|w - w_0|, D),             bias-corrected, from the second update on
    step = D m / (sqrt(t v) + eps),                     with D = r at the first update

D never falls. A coordinate whose first step is zero would keep D = 0 for good, so D is floored at r. "Hot" refers to
starting only once the chains have reached their target: see :mod:`coreset_mcmc.methods.coreset_mcmc.hot_start`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.errors import require_positive
from coreset_mcmc.core.types import pytree

MEAN_DECAY, SQUARE_DECAY, EPSILON = 0.9, 0.999, 1e-8


class HotDoGState(NamedTuple):
    """Moments, distance and start of each weight."""

    num_updates: jax.Array
    start: jax.Array
    mean: jax.Array
    square: jax.Array
    distance: jax.Array


@pytree
@dataclass(frozen=True)
class HotDoG:
    """Distance over gradients per coordinate, with momentum.

    Args:
        initial_distance: r, the size of the first step; any small value works.
    """

    initial_distance: float = 1e-3

    def __post_init__(self) -> None:
        require_positive("HotDoG initial_distance", self.initial_distance)

    def init(self, params: jax.Array) -> HotDoGState:
        nothing = jnp.zeros_like(params)
        return HotDoGState(jnp.zeros((), jnp.int32), params, nothing, nothing, nothing)

    def update(
        self, updates: jax.Array, state: HotDoGState, params: jax.Array | None = None
    ) -> tuple[jax.Array, HotDoGState]:
        if params is None:
            raise ValueError("HotDoG measures how far the weights have moved: pass params to update.")
        count = state.num_updates + 1
        square = SQUARE_DECAY * state.square + (1.0 - SQUARE_DECAY) * updates**2
        mean = MEAN_DECAY * state.mean + (1.0 - MEAN_DECAY) * updates
        travelled = jnp.maximum(jnp.abs(params - state.start), state.distance)
        distance = jnp.where(count == 1, 0.0, MEAN_DECAY * state.distance + (1.0 - MEAN_DECAY) * travelled)
        corrected_distance = jnp.maximum(distance / (1.0 - MEAN_DECAY**count), self.initial_distance)
        corrected_mean = mean / (1.0 - MEAN_DECAY**count)
        corrected_square = square / (1.0 - SQUARE_DECAY**count)
        step = corrected_distance * corrected_mean / (jnp.sqrt(count * corrected_square) + EPSILON)
        return -step, HotDoGState(count, state.start, mean, square, distance)
