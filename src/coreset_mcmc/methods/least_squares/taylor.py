"""Full-data sums at many positions from a few thousand rows: second-order control variates.

Around the mode c of the full posterior, with delta = theta - c,

    sum_n l_n(theta) = const + G' delta + delta' H delta / 2 + sum_n r_n(theta),

where G and H are the gradient and Hessian of the sum at c, known from the search for the mode, and r_n is what the
expansion of row n leaves. For posterior draws delta is of order N^-1/2, so the remainders are of order N^-3/2 and their
sum over all rows can be estimated from S of them with an error of order (N S)^-1/2: the more data, the better. A draw
then costs S rows instead of N.

The S rows are drawn without replacement by their remainders at a few draws of the Laplace approximation, found in one
pass (:mod:`coreset_mcmc.methods.least_squares.scores`, :mod:`coreset_mcmc.data.one_pass_sample`). Rare rows that
matter (the few positives of a logistic regression) are then in the sample for sure and add no error, and the standard
error says honestly when the expansion is no good. With factors f_s = 1 / pi_s the estimate of the whole sum is

    (G - G_S)' delta + delta' (H - H_S) delta / 2 + sum_s f_s l_s(theta),       G_S = sum_s f_s g_s, H_S likewise,

the log-likelihood of a weighted sample with its first two derivatives put right: nothing but log-likelihoods is left to
evaluate for a draw. (Control variates for subsampling MCMC: Quiroz et al. 2019, Baker et al. 2019; they expand for
every step of a chain, we for the sums of a window.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.trees import flattened
from coreset_mcmc.core.types import Batch, Position, pytree
from coreset_mcmc.data.array import ArrayData
from coreset_mcmc.methods.sums import DataSums, centred, log_likelihood_matrix
from coreset_mcmc.models.model import Model

NUM_VARIANCE_DRAWS = 16
"""Evenly spaced positions at which the variance of a window's sums is estimated; it takes derivatives of each row."""

EVALUATIONS_PER_REMAINDER = 3
"""The log-likelihood of a row, and its first and second derivative along one direction."""


@pytree
@dataclass(frozen=True)
class TaylorSums:
    """A quadratic, and a weighted sample of rows, which together stand for the log-likelihood of all rows."""

    centre: Any
    """c (d,), flattened."""
    gradient: jax.Array | np.ndarray
    """G - G_S (d,)."""
    hessian: jax.Array | np.ndarray
    """H - H_S (d, d)."""
    indices: jax.Array | np.ndarray
    """Sorted numbers of the rows (S,)."""
    rows: Batch
    """S rows."""
    probabilities: jax.Array | np.ndarray
    """pi (S,)."""

    def sums(self, model: Model, positions: Position) -> DataSums:
        """Centred sums (K,) over all rows, with the mean over positions of the variance that the sample adds."""
        delta = flattened(positions) - self.centre
        quadratic = delta @ self.gradient + 0.5 * jnp.sum((delta @ self.hessian) * delta, axis=1)

        def of_block(block: tuple[Batch, jax.Array]) -> jax.Array:
            rows, probabilities = block
            return centred(log_likelihood_matrix(model, positions, rows)) @ (1.0 / probabilities)

        total = ArrayData((self.rows, self.probabilities)).sum_over_rows(of_block)
        places = jnp.linspace(0, len(delta) - 1, min(len(delta), NUM_VARIANCE_DRAWS)).astype(jnp.int32)
        variance = jnp.mean(self._variances(model, positions, delta[places]))
        return DataSums(quadratic - jnp.mean(quadratic) + total, jnp.full_like(total, variance))

    def num_evaluations(self, num_draws: int) -> int:
        """Log-likelihoods of single rows behind the sums of so many draws."""
        return self.probabilities.size * (num_draws + EVALUATIONS_PER_REMAINDER * min(num_draws, NUM_VARIANCE_DRAWS))

    def _variances(self, model: Model, positions: Position, delta: jax.Array) -> jax.Array:
        """Hajek's variance (K,) of a sum over a sample without replacement; rows that were sure add nothing."""
        unravel = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], positions))[1]
        terms = centred(row_remainders(model, unravel, self.centre, self.rows, delta)) / self.probabilities
        chance = 1.0 - self.probabilities
        middle = terms @ chance / jnp.maximum(jnp.sum(chance), jnp.finfo(chance.dtype).tiny)
        count = self.probabilities.size
        return (terms - middle[:, None]) ** 2 @ chance * count / max(count - 1, 1)


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
        result: jax.Array = log_likelihood(centre + direction) - value - first - 0.5 * second
        return result

    result: jax.Array = jax.lax.map(of_one, delta)
    return result
