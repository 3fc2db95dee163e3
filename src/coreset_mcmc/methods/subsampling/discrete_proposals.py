"""Proposals for the spike-and-slab regression, whose indicators are discrete.

The paper moves everything at once: beta* ~ N(beta, 0.001 I), sigma^2* from a normal truncated to positive numbers, and
each gamma_i* by tossing a fair coin. All ten coins rarely fall where the posterior allows, and a step of 0.001 in
sigma^2 is small against its posterior deviation of about 4, so such chains hardly move. The default here gives
approximate Metropolis-Hastings a fair chance: a step either walks in beta and log sigma^2 or flips one indicator.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr

from coreset_mcmc.core.errors import InputError, require, require_positive
from coreset_mcmc.core.types import Key, Position, pytree, static
from coreset_mcmc.methods.subsampling.proposals import GaussianProposal, Proposal
from coreset_mcmc.models.model import Model, SpikeAndSlab

STEP_OF_LOG_VARIANCE = 1e-5
"""The posterior deviation of log sigma^2 is sqrt(2 / N), 0.006 at the paper's N; this is half of it, squared."""

PUBLISHED_STEP_OF_VARIANCE = 1e-6
"""The paper's text says 0.001; its experiments took that number as the standard deviation."""


@pytree
@dataclass(frozen=True)
class SpikeAndSlabProposal:
    """A random walk in the continuous parts of a spike-and-slab position, and new values of its indicators.

    Args:
        beta_variance: variance of the step of each coefficient.
        variance_variance: variance of the step of log sigma^2 (1e-5 if left out) or, as published, of sigma^2 itself
            (1e-6 if left out).
        flip_probability: how often to flip one random indicator instead of walking; not used as published.
        published: move everything at once as in the paper.
    """

    beta_variance: float = 0.001
    variance_variance: float | None = None
    flip_probability: float = 0.5
    published: bool = static(default=False)

    def __post_init__(self) -> None:
        require_positive("SpikeAndSlabProposal beta_variance", self.beta_variance)
        require_positive("SpikeAndSlabProposal variance_variance", self.variance_variance)
        if isinstance(self.flip_probability, int | float):
            require(
                0 < self.flip_probability < 1,
                "SpikeAndSlabProposal flip_probability",
                got=self.flip_probability,
                expected="a number between 0 and 1, both excluded",
                fix="A chain must be able to change both its continuous and its discrete parts.",
            )

    def check(self, position: Position, model: Model) -> None:
        del position
        if not isinstance(model.structure, SpikeAndSlab):
            raise InputError(
                "SpikeAndSlabProposal",
                got=f"model {model.name!r}",
                expected="a spike-and-slab regression such as models.sparse_regression",
                fix="Use GaussianProposal for models without discrete parts.",
            )

    def propose(self, key: Key, position: Position, model: Model) -> tuple[Position, jax.Array]:
        del model
        return self._everything(key, position) if self.published else self._walk_or_flip(key, position)

    def _walk_or_flip(self, key: Key, position: Position) -> tuple[Position, jax.Array]:
        """A step of log sigma^2 is symmetric in log sigma^2: in sigma^2 the ratio is that of the two Jacobians."""
        choice_key, walk_key, flip_key, variance_key = jax.random.split(key, 4)
        beta, gamma, variance = position["beta"], position["gamma"], position["variance"]
        is_flip = jax.random.bernoulli(choice_key, self.flip_probability)
        flipped = jnp.arange(gamma.size) == jax.random.randint(flip_key, (), 0, gamma.size)
        deviation = jnp.sqrt(STEP_OF_LOG_VARIANCE if self.variance_variance is None else self.variance_variance)
        growth = jnp.where(is_flip, 0.0, deviation * jax.random.normal(variance_key, (), variance.dtype))
        proposal = {
            "beta": jnp.where(is_flip, beta, self._step_of_beta(walk_key, beta)),
            "gamma": jnp.where(is_flip & flipped, 1 - gamma, gamma),
            "variance": variance * jnp.exp(growth),
        }
        return proposal, growth

    def _everything(self, key: Key, position: Position) -> tuple[Position, jax.Array]:
        """The coins and the walk in beta are symmetric. The truncated normal is divided by Phi(sigma^2 / deviation)."""
        beta_key, variance_key, gamma_key = jax.random.split(key, 3)
        gamma, variance = position["gamma"], position["variance"]
        step = PUBLISHED_STEP_OF_VARIANCE if self.variance_variance is None else self.variance_variance
        deviation = jnp.sqrt(jnp.asarray(step, variance.dtype))
        noise = jax.random.truncated_normal(variance_key, -variance / deviation, jnp.inf, dtype=variance.dtype)
        proposed = variance + deviation * noise
        proposal = {
            "beta": self._step_of_beta(beta_key, position["beta"]),
            "gamma": jax.random.bernoulli(gamma_key, 0.5, gamma.shape).astype(gamma.dtype),
            "variance": proposed,
        }
        return proposal, log_ndtr(variance / deviation) - log_ndtr(proposed / deviation)

    def _step_of_beta(self, key: Key, beta: jax.Array) -> jax.Array:
        return beta + jnp.sqrt(self.beta_variance) * jax.random.normal(key, beta.shape, beta.dtype)


def proposal_for(model: Model, proposal: Proposal | None) -> Proposal:
    """The given proposal, or one that can move the positions of the model."""
    if proposal is not None:
        return proposal
    return SpikeAndSlabProposal() if isinstance(model.structure, SpikeAndSlab) else GaussianProposal()
