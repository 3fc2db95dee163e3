"""Stochastic gradient Langevin dynamics with control variates (Welling and Teh 2011; Baker et al. 2019).

    theta <- theta + (h / 2) g(theta) + N(0, h I)

with the control-variate gradient g and a constant step size h. There is no correction for the step: on a Gaussian
target with precision P the stationary variance is 1 / (P (1 - h P / 4)) even with exact gradients, and the recursion
diverges from h P = 4 on. The noise of the gradient adds to the variance.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import jax
import jax.numpy as jnp

from coreset_mcmc.core.errors import require_count, require_positive
from coreset_mcmc.core.types import Key, pytree, static
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.methods.contract import Trained
from coreset_mcmc.methods.subsampling.gradient_sampling import (
    Estimate,
    EstimateAt,
    TrainsByModeSearch,
    sample_from_mode,
)
from coreset_mcmc.methods.subsampling.mode import ModeSearch, ModeSearchState
from coreset_mcmc.posterior.problem import Problem


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
    """

    step_size: float = 2e-5
    subsample_size: int = static(default=500)
    mode: ModeSearch = field(default_factory=ModeSearch)

    name = "sgld"

    def __post_init__(self) -> None:
        require_positive("SGLD step_size", self.step_size)
        require_count("SGLD subsample_size", self.subsample_size, at_least=1, fix="The paper uses 500.")

    def finish(self, state: ModeSearchState, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        return sample_from_mode(Langevin(self.step_size), self.subsample_size, state, problem, num_chains, kernel)
