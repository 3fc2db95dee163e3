"""Stochastic gradient Langevin dynamics with control variates (Welling and Teh 2011; Baker et al. 2019).

    theta <- theta + (h / 2) g(theta) + N(0, h I)

with the control-variate gradient g and a constant step size h. There is no correction for the step: on a Gaussian
target with precision P the stationary variance is 1 / (P (1 - h P / 4)) even with exact gradients, and the recursion
diverges from h P = 4 on. The noise of the gradient adds to the variance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from coreset_mcmc.core.errors import require_count, require_positive
from coreset_mcmc.core.types import Key, pytree, static
from coreset_mcmc.methods.subsampling.gradient_sampling import Estimate, EstimateAt, TrainsByModeSearch
from coreset_mcmc.methods.subsampling.mode import ModeSearch


@pytree
@dataclass(frozen=True)
class Langevin:
    """One Euler step of the overdamped Langevin equation."""

    step_size: float

    num_gradients = 1

    def move(self, key: Key, flat: jax.Array, here: Estimate, estimate_at: EstimateAt) -> tuple[jax.Array, Estimate]:
        noise_key, batch_key = jax.random.split(key)
        noise = jax.random.normal(noise_key, flat.shape, flat.dtype)
        moved = flat + 0.5 * self.step_size * here.gradient + jnp.sqrt(self.step_size) * noise
        return moved, estimate_at(batch_key, moved)


@pytree
@dataclass(frozen=True)
class SGLD(TrainsByModeSearch):
    """Langevin steps with gradients from a few rows; training searches the mode.

    Args:
        step_size: h; the paper uses 2e-5 for linear and logistic regression and 2e-4 for Poisson regression.
        subsample_size: S, rows in each gradient, or all if there are fewer.
        mode: how the mode is searched.
        scale: L (d, d), a factor of a covariance of the flattened position: chains move in coordinates that it whitens,
            and step sizes are in standard deviations. By default the identity, as in the paper.
    """

    step_size: float = 2e-5
    subsample_size: int = static(default=500)
    mode: ModeSearch = field(default_factory=ModeSearch)
    scale: Any = None

    name = "sgld"

    def __post_init__(self) -> None:
        require_positive("SGLD step_size", self.step_size)
        require_count("SGLD subsample_size", self.subsample_size, at_least=1, fix="The paper uses 500.")

    @property
    def dynamics(self) -> Langevin:
        return Langevin(self.step_size)
