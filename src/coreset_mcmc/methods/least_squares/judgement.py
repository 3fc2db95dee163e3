"""What a fresh window says about the weights that it was drawn from, and what training does next.

Weights with the lowest estimated KL so far are the best, and the damping falls; otherwise it grows, and the best are
tried again. Rounds do not all judge: the first window of a hot start comes from a Gaussian and not from the weights,
and the first rounds of a cold start only shape the kernel and bring the chains to their target.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.methods.least_squares.equations import MOST_DAMPING, Measured, half_variance
from coreset_mcmc.methods.least_squares.state import LeastSquaresState

FIRST_DAMPING, LEAST_DAMPING = 1e-6, 1e-10

NUM_SHAPING_ROUNDS = 2
"""First rounds of a cold start, which judge no weights. The first window of a hot start counts for as many."""

NEAR = 1.0
"""An estimate in nats below which weights are near their best."""

IMPROVEMENT = 0.8
MAX_POOR_ROUNDS_NEAR, MAX_POOR_ROUNDS_FAR = 3, 6
"""Training ends near the posterior after three rounds in a row without an estimate below 0.8 of the best. Far from it
any improvement counts, and six rounds may fail, which is enough for the damping to go from its first value to its most.
"""


class Judgement(NamedTuple):
    """The outcome of one round."""

    estimate: jax.Array
    """Of the KL of the weights tried, noise of the sums included; infinite for the first window of a hot start."""
    is_best: jax.Array
    """Whether these draws are the ones to go on from. While the kernel is shaped, those of any usable window are."""
    best_weights: jax.Array
    best_estimate: jax.Array
    damping: jax.Array
    """Of the next solve."""
    num_poor: jax.Array
    """Rounds in a row that brought the estimate down too little, this one included."""
    is_over: jax.Array
    """Whether training ends here."""
    is_exchanging: jax.Array
    """Whether rows without weight make room for others before the next solve."""
    is_solving: jax.Array
    """Whether new weights are found at once; otherwise the next round tries the best ones again."""


def judge(
    state: LeastSquaresState, measured: Measured, *, tolerance: Any, num_rounds: Any, may_exchange: bool
) -> Judgement:
    """Judge ``state.weights`` by a window of their draws.

    Args:
        state: before the round.
        measured: the window, as it was measured.
        tolerance: training ends when the estimate falls below this.
        num_rounds: most rounds that judge.
        may_exchange: whether rows can be exchanged at all.
    """
    estimate = jnp.where(state.is_first, jnp.inf, half_variance(measured.window, state.weights) + measured.noise)
    is_usable = jnp.isfinite(estimate) & jnp.all(jnp.isfinite(measured.window.values))
    is_judged = ~state.is_first & (state.round >= NUM_SHAPING_ROUNDS)
    is_best = is_usable & (estimate < state.best_estimate)
    best_weights = jnp.where(is_best, state.weights, state.best_weights)
    best_estimate = jnp.where(is_best & is_judged, estimate, state.best_estimate)
    num_poor = jnp.where(is_judged & _is_poor(estimate, state.best_estimate), state.num_poor + 1, 0)
    has_ended = (best_estimate < tolerance) | _is_stuck(num_poor, best_estimate)
    is_over = has_ended | (state.round + 1 >= num_rounds + NUM_SHAPING_ROUNDS)
    is_exchanging = is_best & is_judged & ~is_over & jnp.any(best_weights == 0) & may_exchange
    return Judgement(
        estimate=estimate,
        is_best=is_best,
        best_weights=best_weights,
        best_estimate=best_estimate,
        damping=jnp.where(is_judged, _changed_damping(state.damping, is_best), state.damping),
        num_poor=num_poor,
        is_over=is_over,
        is_exchanging=is_exchanging,
        is_solving=(state.is_first | is_judged) & ~is_over & ~is_exchanging,
    )


def _is_poor(estimate: jax.Array, best_estimate: jax.Array) -> jax.Array:
    """Whether an estimate, which may be NaN, is too little of an improvement."""
    enough = jnp.where(best_estimate < NEAR, IMPROVEMENT, 1.0)
    return ~(estimate < enough * best_estimate)


def _is_stuck(num_poor: jax.Array, best_estimate: jax.Array) -> jax.Array:
    return num_poor >= jnp.where(best_estimate < NEAR, MAX_POOR_ROUNDS_NEAR, MAX_POOR_ROUNDS_FAR)


def _changed_damping(damping: jax.Array, is_best: jax.Array) -> jax.Array:
    return jnp.clip(damping * jnp.where(is_best, 0.1, 100.0), LEAST_DAMPING, MOST_DAMPING)
