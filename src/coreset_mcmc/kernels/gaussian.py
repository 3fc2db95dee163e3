"""The artificial kernel of section 3.4, for the Gaussian location model only.

theta' = mu_w + sqrt(beta) (theta - mu_w) + sqrt(1 - beta) sigma_w xi. The paper prints the noise as (1 - beta) I,
which would leave N(mu_w, I) invariant instead of pi_w; the standard deviation sigma_w restores it.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.types import Key, Position, pytree
from coreset_mcmc.kernels.base import Kernel, KernelInfo, KernelState
from coreset_mcmc.models.gaussian_location import coreset_posterior
from coreset_mcmc.posterior.target import CoresetTarget


@pytree
@dataclass(frozen=True)
class GaussianAutoregression(Kernel):
    """An autoregression with lag-one correlation sqrt(beta) and exactly pi_w as its law.

    Args:
        beta: 0 gives independent draws, values near 1 mix slowly.
    """

    beta: float = 0.8

    reads_log_density = False

    def __post_init__(self) -> None:
        if isinstance(self.beta, int | float):
            require(
                0 <= self.beta < 1,
                "GaussianAutoregression beta",
                got=self.beta,
                expected="a number in [0, 1)",
                fix="Use 0 for independent draws.",
            )

    def check(self, position: Position, target: CoresetTarget) -> None:
        del position
        if target.model.name != "gaussian_location":
            raise InputError(
                "kernel GaussianAutoregression",
                got=f"model {target.model.name!r}",
                expected="the gaussian_location model, whose posterior is known",
                fix="Use HitAndRunSlice for other models.",
            )

    def step(self, key: Key, state: KernelState, target: CoresetTarget) -> tuple[KernelState, KernelInfo]:
        mean, variance = coreset_posterior(target.rows, target.weights)
        theta = state.position["theta"]
        noise = jax.random.normal(key, theta.shape, theta.dtype)
        moved = mean + jnp.sqrt(self.beta) * (theta - mean) + jnp.sqrt((1.0 - self.beta) * variance) * noise
        position = {"theta": moved}
        info = KernelInfo(
            acceptance_rate=jnp.ones((), theta.dtype),
            num_evaluations=jnp.ones((), jnp.int32),
            diverging=jnp.array(False),
        )
        return KernelState(position, target.log_density(position)), info
