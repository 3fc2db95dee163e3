"""Stochastic gradient Hamiltonian Monte Carlo with control variates (Chen, Fox and Guestrin 2014; Baker et al. 2019).

Each draw begins with a fresh momentum r ~ N(0, I) and makes L inner steps, each with fresh rows,

    theta <- theta + e r,    r <- r + e g(theta) - e C r + N(0, 2 e (C - B) I)

with friction C and an estimate B of the noise of the gradient. As in the paper there is unit mass and no accept or
reject, and the inner step is the Euler scheme of Chen et al., not a leapfrog step.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from coreset_mcmc.core.errors import require, require_count, require_positive
from coreset_mcmc.core.types import Key, pytree, static
from coreset_mcmc.methods.subsampling.gradient_sampling import Estimate, EstimateAt, TrainsByModeSearch
from coreset_mcmc.methods.subsampling.mode import ModeSearch


@pytree
@dataclass(frozen=True)
class FrictionDynamics:
    """A trajectory with friction and the noise that balances it."""

    step_size: float
    friction: float
    noise_estimate: float
    num_leapfrog: int

    @property
    def num_gradients(self) -> int:
        return self.num_leapfrog

    def move(self, key: Key, flat: jax.Array, here: Estimate, estimate_at: EstimateAt) -> tuple[jax.Array, Estimate]:
        momentum_key, path_key = jax.random.split(key)
        noise_scale = jnp.sqrt(2.0 * self.step_size * (self.friction - self.noise_estimate))

        def inner(
            number: jax.Array, carry: tuple[jax.Array, jax.Array, Estimate]
        ) -> tuple[jax.Array, jax.Array, Estimate]:
            position, momentum, _ = carry
            batch_key, noise_key = jax.random.split(jax.random.fold_in(path_key, number))
            position = position + self.step_size * momentum
            there = estimate_at(batch_key, position)
            noise = noise_scale * jax.random.normal(noise_key, flat.shape, flat.dtype)
            momentum = momentum + self.step_size * (there.gradient - self.friction * momentum) + noise
            return position, momentum, there

        momentum = jax.random.normal(momentum_key, flat.shape, flat.dtype)
        position, _, there = jax.lax.fori_loop(0, self.num_leapfrog, inner, (flat, momentum, here))
        return position, there


@pytree
@dataclass(frozen=True)
class SGHMC(TrainsByModeSearch):
    """Trajectories with friction and gradients from a few rows; training searches the mode.

    Args:
        step_size: e, 8e-4 in the paper.
        friction: C, 0.01 in the paper.
        noise_estimate: B, at most C; 0 in the paper.
        num_leapfrog: L, inner steps for each draw.
        subsample_size: S, rows in each gradient, or all if there are fewer.
        mode: how the mode is searched.
        scale: L (d, d), a factor of a covariance of the flattened position: chains move in coordinates that it whitens,
            and step sizes are in standard deviations. By default the identity, as in the paper.
    """

    step_size: float = 8e-4
    friction: float = 0.01
    noise_estimate: float = 0.0
    num_leapfrog: int = 30
    subsample_size: int = static(default=500)
    mode: ModeSearch = field(default_factory=ModeSearch)
    scale: Any = None

    name = "sghmc"

    def __post_init__(self) -> None:
        require_positive("SGHMC step_size", self.step_size)
        require_positive("SGHMC friction", self.friction)
        require_count("SGHMC subsample_size", self.subsample_size, at_least=1, fix="The paper uses 500.")
        if isinstance(self.num_leapfrog, int | float):
            require_count("SGHMC num_leapfrog", self.num_leapfrog, at_least=1, fix="The paper uses 30.")
        if isinstance(self.noise_estimate, int | float) and isinstance(self.friction, int | float):
            require(
                0 <= self.noise_estimate <= self.friction,
                "SGHMC noise_estimate",
                got=self.noise_estimate,
                expected=f"at least 0 and at most the friction {self.friction}",
                fix="Use 0, as the paper does.",
            )

    @property
    def dynamics(self) -> FrictionDynamics:
        return FrictionDynamics(self.step_size, self.friction, self.noise_estimate, self.num_leapfrog)
