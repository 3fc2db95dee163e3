"""The log-density of the coreset posterior: the one thing a kernel sees.

pi_w(theta) is proportional to exp(sum_m w_m l_m(theta)) pi_0(theta), section 2 of the paper. Rows and weights are
arguments of the compiled program, so moving the weights never compiles again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Batch, Position, pytree, static
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.gaussian_term import GaussianTerm


def weighted_sum(weights: jax.Array, log_likelihoods: jax.Array) -> jax.Array:
    """Sum of w_m l_m over rows with a non-zero weight, so that 0 * (-inf) does not turn into NaN."""
    return jnp.dot(weights, jnp.where(weights != 0, log_likelihoods, 0.0))


def finite_or_impossible(log_density: jax.Array) -> jax.Array:
    """NaN and +inf become -inf: a kernel never moves there, and every comparison with them is well defined."""
    return jnp.where(log_density < jnp.inf, log_density, -jnp.inf)


def move(position: Position, distance: jax.Array, direction: Position) -> Position:
    """``position + distance * direction``, leaf by leaf."""
    return jax.tree.map(lambda leaf, step: leaf + distance * step, position, direction)


@pytree
@dataclass(frozen=True)
class CoresetTarget:
    """The unnormalised coreset posterior with given rows and weights, and with a Gaussian term if it has one."""

    rows: Batch
    weights: jax.Array
    model: Model = static()
    term: GaussianTerm | None = None

    def log_density(self, position: Position) -> jax.Array:
        """log pi_0(theta) + sum_m w_m l_m(theta), with NaN read as -inf."""
        log_likelihoods = self.model.log_likelihood(position, self.rows)
        total = self.model.log_prior(position) + weighted_sum(self.weights, log_likelihoods)
        return finite_or_impossible(total if self.term is None else total + self.term.log_density(position))

    def along(self, position: Position, direction: Position) -> Callable[[jax.Array], jax.Array]:
        """The log-density on the line ``position + t * direction`` as a function of the scalar t.

        With a linear predictor each call costs O(M); otherwise it is a full evaluation.
        """
        split = self.model.linear_predictor
        if split is None:
            return lambda t: self.log_density(move(position, t, direction))
        predicted, slope = jax.jvp(lambda at: split.predictor(at, self.rows), (position,), (direction,))
        gaussian = None if self.term is None else self.term.along(position, direction)

        def on_line(t: jax.Array) -> jax.Array:
            here = move(position, t, direction)
            log_likelihoods = split.log_likelihood(here, move(predicted, t, slope), self.rows)
            total = self.model.log_prior(here) + weighted_sum(self.weights, log_likelihoods)
            return finite_or_impossible(total if gaussian is None else total + gaussian(t))

        return on_line
