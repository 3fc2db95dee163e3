"""What kernels share that move in coordinates whitened by a known covariance L L'.

A trajectory starts at z = 0 and moves through theta + L z with unit masses, which is the same as the inverse mass
matrix L L' and needs no inverse of it: a gradient costs two products with L on top of the model's own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import require_positive
from coreset_mcmc.core.on_use import on_use
from coreset_mcmc.core.types import Position
from coreset_mcmc.kernels.base import Kernel, check_continuous, check_differentiable
from coreset_mcmc.kernels.shape import check_factor
from coreset_mcmc.posterior.target import CoresetTarget

hmc = on_use("blackjax.mcmc.hmc")


Move = Callable[[Any, Callable[[jax.Array], jax.Array], jax.Array], tuple[Any, Any]]
"""From a state of BlackJAX, a log-density and inverse masses to the next state and what happened."""


class WhitenedState(NamedTuple):
    """Of one chain, or with a leading axis of several."""

    position: Position
    log_density: jax.Array
    gradient: jax.Array
    """(d,), with respect to z."""


@dataclass(frozen=True)
class Whitened(Kernel):
    """Gradients, a factor L (d, d) of the covariance, and a step size in standard deviations."""

    scale: Any
    step_size: Any = 0.5

    caches_gradient = True

    def __post_init__(self) -> None:
        require_positive(f"{type(self).__name__} step_size", self.step_size)

    def check(self, position: Position, target: CoresetTarget) -> None:
        name = type(self).__name__
        check_continuous(name, position)
        check_differentiable(name, target)
        check_factor(f"{name} scale", self.scale, position)

    def init(self, position: Position, target: CoresetTarget) -> WhitenedState:
        log_density, gradient = jax.value_and_grad(target.log_density)(position)
        return WhitenedState(position, log_density, jnp.asarray(self.scale).T @ ravel_pytree(gradient)[0])

    def _moved(self, move: Move, state: WhitenedState, target: CoresetTarget) -> tuple[WhitenedState, Any]:
        """From z = 0, and what happened."""
        scale = jnp.asarray(self.scale)
        flat, unravel = ravel_pytree(state.position)
        start = hmc.HMCState(jnp.zeros_like(flat), state.log_density, state.gradient)
        moved, info = move(start, lambda z: target.log_density(unravel(flat + scale @ z)), jnp.ones_like(flat))
        position = unravel(flat + scale @ moved.position)
        return WhitenedState(position, moved.logdensity, moved.logdensity_grad), info
