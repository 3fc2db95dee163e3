"""Full-data sums at many positions from a few thousand rows: second-order control variates.

Around the mode c of the full posterior, with delta = theta - c,

    sum_n l_n(theta) = const + G' delta + delta' H delta / 2 + sum_n r_n(theta),

where G and H are the gradient and Hessian of the sum at c, known from the search for the mode, and r_n is what the
expansion of row n leaves. For posterior draws delta is of order N^-1/2, so the remainders are of order N^-3/2 and their
sum over all rows can be estimated from S of them with an error of order (N S)^-1/2: the more data, the better. A draw
then costs S rows instead of N.

The S rows are drawn with probabilities that follow their remainders at a few draws of the Laplace approximation, found
in one pass, mixed with uniform ones. Rare rows that matter (the few positives of a logistic regression) are then in the
sample, and the standard error says honestly when the expansion is no good. (Control variates for subsampling MCMC:
Quiroz et al. 2019, Baker et al. 2019; they expand for every step of a chain, we for the sums of a window.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from coreset_mcmc.laplace import Derivatives
from coreset_mcmc.model import Model
from coreset_mcmc.problem import Problem
from coreset_mcmc.types import Batch, Key, Position, pytree
from coreset_mcmc.weights.gradient import DataSums, centred

NUM_SCORING_DRAWS = 4
UNIFORM_SHARE = 0.5
"""Share of the sampling probability that is the same for every row; no row's factor exceeds 2 N / S."""

EVALUATIONS_PER_REMAINDER = 3
"""The log-likelihood of a row, and its first and second derivative along one direction."""


@pytree
@dataclass(frozen=True)
class TaylorSums:
    """A quadratic for all rows, and a sample of rows for what it leaves."""

    centre: jax.Array
    """c (d,), flattened."""
    gradient: jax.Array
    """G (d,) of the log-likelihood of all rows."""
    hessian: jax.Array
    """H (d, d)."""
    rows: Batch
    """S rows."""
    factors: jax.Array
    """(S,), one over the expected number of times that each is drawn."""

    def sums(self, model: Model, positions: Position) -> DataSums:
        """Centred sums (K,) over all rows, with the variance that the sample adds to each."""
        flat = flattened(positions)
        delta = flat - self.centre
        quadratic = delta @ self.gradient + 0.5 * jnp.sum((delta @ self.hessian) * delta, axis=1)
        unravel = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], positions))[1]
        remainders = centred(row_remainders(model, unravel, self.centre, self.rows, delta))
        terms = remainders * self.factors
        total = jnp.sum(terms, axis=1)
        count = self.factors.size
        variance = (count * jnp.sum(terms**2, axis=1) - total**2) / max(count - 1, 1)
        return DataSums(quadratic - jnp.mean(quadratic) + total, variance)


def flattened(positions: Position) -> jax.Array:
    """Positions with a leading axis as rows (K, d)."""
    return jax.vmap(lambda position: ravel_pytree(position)[0])(positions)


def row_remainders(
    model: Model, unravel: Callable[[jax.Array], Position], centre: jax.Array, batch: Batch, delta: jax.Array
) -> jax.Array:
    """r (K, B): each row's log-likelihood at centre + delta_k without its expansion to second order at the centre."""

    def log_likelihood(flat: jax.Array) -> jax.Array:
        return model.log_likelihood(unravel(flat), batch)

    def of_one(direction: jax.Array) -> jax.Array:
        def slope(at: jax.Array) -> tuple[jax.Array, jax.Array]:
            return jax.jvp(log_likelihood, (at,), (direction,))

        (value, first), (_, second) = jax.jvp(slope, (centre,), (direction,))
        return log_likelihood(centre + direction) - value - first - 0.5 * second

    return jax.lax.map(of_one, delta)


def taylor_sums(
    key: Key, problem: Problem, centre: jax.Array, full: Derivatives, scoring: jax.Array, count: int
) -> TaylorSums:
    """Expand at ``centre``, where the full log-density has the derivatives ``full``, and draw ``count`` rows.

    ``scoring`` (J, d) are the displacements at which remainders decide which rows are drawn. Systematic sampling: one
    uniform number places an even comb on the cumulated probabilities.
    """
    model, unravel = problem.model, ravel_pytree(problem.position)[1]
    prior = jax.value_and_grad(lambda flat: model.log_prior(unravel(flat)))
    _, prior_gradient = prior(centre)
    prior_hessian = jax.jacfwd(lambda flat: prior(flat)[1])(centre)

    def score(batch: Batch) -> jax.Array:
        remainders = row_remainders(model, unravel, centre, batch, scoring)
        return jnp.sqrt(jnp.mean(remainders**2, axis=0))

    scores = problem.data.map_over_rows(score)
    scores = jnp.where(jnp.isfinite(scores), scores, 0.0)
    total = jnp.sum(scores)
    share = jnp.where(total > 0, UNIFORM_SHARE, 1.0)
    probabilities = share / problem.data.size + (1.0 - share) * scores / jnp.where(total > 0, total, 1.0)
    cumulated = jnp.cumsum(probabilities)
    comb = (jnp.arange(count) + jax.random.uniform(key)) / count * cumulated[-1]
    chosen = jnp.clip(jnp.searchsorted(cumulated, comb, method="sort"), 0, problem.data.size - 1)
    return TaylorSums(
        centre=centre,
        gradient=full.gradient - prior_gradient,
        hessian=full.hessian - prior_hessian,
        rows=problem.data.take(chosen),
        factors=1.0 / (count * probabilities[chosen]),
    )


def num_scoring_evaluations(size: int) -> int:
    """What finding the probabilities costs."""
    return size * NUM_SCORING_DRAWS * EVALUATIONS_PER_REMAINDER
