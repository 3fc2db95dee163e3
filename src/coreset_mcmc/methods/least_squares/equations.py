"""Windows of draws as equations for the weights: log-likelihoods of the coreset rows, and sums over all rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Position
from coreset_mcmc.methods.least_squares.taylor import TaylorSums
from coreset_mcmc.methods.sums import centred, full_data_sums, log_likelihood_matrix
from coreset_mcmc.posterior.problem import Problem


class Window(NamedTuple):
    """Equations from draws of one coreset posterior."""

    values: jax.Array
    """L (J, M), centred."""
    totals: jax.Array
    """T (J,), centred."""


class Measured(NamedTuple):
    """A window and what it took."""

    window: Window
    noise: jax.Array
    """What the sampling of rows adds to the estimated KL on average; zero for sums over all rows."""
    num_evaluations: jax.Array


def measure(
    problem: Problem,
    taylor: TaylorSums | None,
    positions: Position,
    tolerated: Callable[[jax.Array, jax.Array], jax.Array],
) -> Measured:
    """A window at these positions: sums from a sample if its noise is tolerated, over all rows otherwise.

    ``tolerated(values, totals)`` is the noise in nats that may stay; without ``taylor`` there is no sample.
    """
    values = centred(log_likelihood_matrix(problem.model, positions, problem.rows))
    num_draws = values.shape[0]
    num_full = num_draws * problem.data.size

    def over_all_rows() -> tuple[jax.Array, jax.Array]:
        return full_data_sums(problem.model, positions, problem.data).total, jnp.zeros(())

    if taylor is None:
        totals, noise = over_all_rows()
        return Measured(Window(values, totals), noise, jnp.asarray(values.size + num_full, jnp.int64))
    sums = taylor.sums(problem.model, positions)
    noise = 0.5 * jnp.mean(sums.variance)
    is_good = noise <= tolerated(values, sums.total)
    totals, noise = jax.lax.cond(is_good, lambda: (sums.total, noise), over_all_rows)
    num_evaluations = values.size + taylor.num_evaluations(num_draws) + jnp.where(is_good, 0, num_full)
    return Measured(Window(values, totals), noise, num_evaluations.astype(jnp.int64))


def along(mask: jax.Array, values: jax.Array) -> jax.Array:
    """A mask, or numbers, of the leading axis, shaped to go with values."""
    return mask.reshape(-1, *[1] * (values.ndim - 1))


def without_nonfinite(window: Window) -> Window:
    """Equations that are not numbers say nothing: 0 w = 0."""
    is_finite = jnp.all(jnp.isfinite(window.values), axis=1) & jnp.isfinite(window.totals)
    return Window(jnp.where(is_finite[:, None], window.values, 0.0), jnp.where(is_finite, window.totals, 0.0))
