"""The contract of a Metropolis-Hastings proposal, and the Gaussian random walk.

Approximate Metropolis-Hastings (Korattikara et al. 2014; Bardenet et al. 2017) decides from a subsample of the rows
whether to move from theta to theta*. Where theta* comes from is the business of a proposal: it returns theta* together
with log Q(theta | theta*) - log Q(theta* | theta), which is zero when the proposal is symmetric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import require, require_positive
from coreset_mcmc.core.types import Key, Position, pytree
from coreset_mcmc.kernels.base import check_continuous
from coreset_mcmc.kernels.shape import check_factor
from coreset_mcmc.models.model import Model


class Proposal(Protocol):
    """Where a chain might go next. An implementation is a dataclass decorated with ``@pytree``."""

    def propose(self, key: Key, position: Position, model: Model) -> tuple[Position, jax.Array]:
        """A proposal theta* with the structure and types of ``position``, and the log ratio, a scalar:

        log Q(theta | theta*) - log Q(theta* | theta).

        Added to the log ratio of the target's densities it gives the log of the probability of acceptance. A proposal
        outside the support of the prior is no error: its log prior is -inf, and it is refused without looking at a row.
        """

    def check(self, position: Position, model: Model) -> None:
        """Raise an :class:`~coreset_mcmc.core.errors.InputError` if such positions cannot be moved."""


@pytree
@dataclass(frozen=True)
class GaussianProposal:
    """theta* ~ N(theta, v I) or N(theta, v L L'), a symmetric random walk on continuous positions.

    Args:
        variance: v, the *variance* (not the standard deviation): a number, or one for each flattened coordinate. The
            paper uses 0.01 for linear and Poisson regression and 0.001 for logistic regression.
        scale: L (d, d), such as a factor of a covariance of the posterior; 2.38^2 / d is a good variance then.
    """

    variance: float | jax.Array = 0.01
    scale: Any = None

    def __post_init__(self) -> None:
        require_positive("GaussianProposal variance", self.variance)
        if isinstance(self.variance, np.ndarray):
            require(
                bool(np.all(self.variance > 0)),
                "GaussianProposal variance",
                got=self.variance,
                expected="positive numbers",
                fix="Pass variances, not logarithms of them.",
            )

    def check(self, position: Position, model: Model) -> None:
        del model
        check_continuous("GaussianProposal", position)
        size = ravel_pytree(position)[0].size
        shape = np.shape(self.variance)
        require(
            shape in ((), (size,)),
            "GaussianProposal variance",
            got=f"shape {shape}",
            expected=f"a number, or one for each of the {size} coordinates of a position",
            fix="Coordinates are counted in the order of the flattened position.",
        )
        if self.scale is not None:
            check_factor("GaussianProposal scale", self.scale, position)

    def propose(self, key: Key, position: Position, model: Model) -> tuple[Position, jax.Array]:
        del model
        flat, unravel = ravel_pytree(position)
        noise = jax.random.normal(key, flat.shape, flat.dtype)
        step = jnp.sqrt(jnp.asarray(self.variance, flat.dtype)) * noise
        step = step if self.scale is None else self.scale @ step
        return unravel(flat + step), jnp.zeros((), flat.dtype)
