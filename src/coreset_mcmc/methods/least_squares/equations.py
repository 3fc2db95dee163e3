"""Linear equations for the weights, one from each draw.

A draw theta_j gives the equation

    sum_m w_m l_m(theta_j) = sum_n l_n(theta_j),

log-likelihoods of the M coreset rows on the left and the sum over all N rows of the data on the right, both sides
centred over draws. The weights of an exact coreset satisfy it wherever theta_j is. J draws of one coreset posterior,
and their equations L w = T, are a *window*. The sums T cost a pass over the data for each draw, or over a sample of the
rows where control variates are good enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Position
from coreset_mcmc.methods.least_squares.nonnegative import Solution, nonnegative_ridge
from coreset_mcmc.methods.least_squares.taylor import TaylorSums
from coreset_mcmc.methods.sums import centred, full_data_sums, log_likelihood_matrix
from coreset_mcmc.posterior.problem import Problem

MOST_DAMPING = 1e2


class Window(NamedTuple):
    """The equations L w = T of J draws."""

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
    problem: Problem, taylor: TaylorSums | None, positions: Position, tolerated: Callable[[Window], jax.Array]
) -> Measured:
    """A window at these positions: sums from a sample if its noise is tolerated, over all rows otherwise.

    ``tolerated(window)`` is the noise in nats that may stay; without ``taylor`` there is no sample.
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
    is_good = noise <= tolerated(Window(values, sums.total))
    totals, noise = jax.lax.cond(is_good, lambda: (sums.total, noise), over_all_rows)
    num_evaluations = values.size + taylor.num_evaluations(num_draws) + jnp.where(is_good, 0, num_full)
    return Measured(Window(values, totals), noise, num_evaluations.astype(jnp.int64))


def half_variance(window: Window, weights: jax.Array) -> jax.Array:
    """Half the variance of T - L w: for draws of pi_w that had no part in choosing w, an estimate of KL(pi_w || pi)."""
    return 0.5 * jnp.var(window.totals - window.values @ weights, ddof=1)


def solve(window: Window, best_weights: jax.Array, damping: jax.Array) -> Solution:
    """The weights to be tried next, not too far from the best; those themselves if there is no solution."""
    solved = nonnegative_ridge(window.values, window.totals, best_weights, damping)
    is_good = jnp.all(jnp.isfinite(solved.weights))
    return Solution(jnp.where(is_good, solved.weights, best_weights), jnp.minimum(solved.ridge, MOST_DAMPING))


def relative_change(new: jax.Array, old: jax.Array) -> jax.Array:
    """How far weights have moved, as a share of their size."""
    result: jax.Array = jnp.linalg.norm(new - old) / jnp.linalg.norm(old)
    return result


def along(mask: jax.Array, values: jax.Array) -> jax.Array:
    """A mask, or numbers, of the leading axis, shaped to go with values."""
    return mask.reshape(-1, *[1] * (values.ndim - 1))


def without_nonfinite(window: Window) -> Window:
    """The window with zeros on both sides of every equation that holds a NaN or an infinity.

    Any weights solve 0 w = 0, so such a draw has no say in the solution.
    """
    is_finite = jnp.all(jnp.isfinite(window.values), axis=1) & jnp.isfinite(window.totals)
    return Window(jnp.where(is_finite[:, None], window.values, 0.0), jnp.where(is_finite, window.totals, 0.0))


def alternate_draws(num_draws: int, num_chains: int) -> jax.Array:
    """Marks (J,) the draws of every other step of all chains.

    They are the ones that make room where a window takes in the draws of a second posterior and keeps half of its own.
    """
    return jnp.arange(num_draws) // num_chains % 2 == 1
