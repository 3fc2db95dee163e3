"""What a fresh window says about the weights that it was drawn from, and what training does next.

Weights with the lowest estimated KL so far are the best, and the damping falls; otherwise it grows, and the best are
tried again. Rounds do not all judge: the first window of a hot start comes from a Gaussian and not from the weights,
and the first rounds of a cold start only shape the kernel and bring the chains to their target.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from coreset_mcmc.methods.least_squares.equations import MOST_DAMPING, Measured, half_variance
from coreset_mcmc.methods.least_squares.state import LeastSquaresState, known_expansion

FIRST_DAMPING, LEAST_DAMPING = 1e-6, 1e-10

NUM_SHAPING_ROUNDS = 2
"""First rounds of a cold start, which judge no weights. The first window of a hot start counts for as many."""

NEAR = 1.0
"""An estimate in nats below which weights are near their best; beside a Gaussian term all but stray ones are."""

IMPROVEMENT = 0.8
MAX_POOR_ROUNDS_NEAR, MAX_POOR_ROUNDS_FAR, MAX_POOR_ROUNDS_BESIDE_TERM = 3, 6, 2
"""Training ends near the posterior after three rounds in a row without an estimate below 0.8 of the best. Far from it
any improvement counts, and six rounds may fail, which is enough for the damping to go from its first value to its most.
Beside a Gaussian term windows are large and an estimate is known to a few hundredths: two such rounds are no chance.
"""


ASTRAY = 1e3
"""An estimate in nats that two rounds have not brought down: these rows and their Gaussian term are given up where
another way is left. On a curved ridge, as of group effects times their scale, no quadratic is of use.
"""


class Judgement(NamedTuple):
    """The outcome of one round."""

    estimate: float
    """Of the KL of the weights tried, noise of the sums included; infinite for the first window of a hot start."""
    is_best: bool
    """Whether these draws are the ones to go on from. While the kernel is shaped, those of any usable window are."""
    best_weights: np.ndarray
    best_estimate: float
    damping: float
    """Of the next solve."""
    num_poor: int
    """Rounds in a row that brought the estimate down too little, this one included."""
    is_over: bool
    """Whether training ends here."""
    is_exchanging: bool
    """Whether rows without weight make room for others before the next solve."""
    is_solving: bool
    """Whether new weights are found at once; otherwise the next round tries the best ones again."""


def judge(
    state: LeastSquaresState,
    measured: Measured,
    *,
    tolerance: Any,
    num_rounds: Any,
    may_exchange: bool,
    may_give_up: bool = False,
    around: float = 0.0,
) -> Judgement:
    """Judge ``state.weights`` by a window of their draws.

    Args:
        state: before the round.
        measured: the window, as it was measured.
        tolerance: training ends when the estimate falls below this.
        num_rounds: most rounds that judge.
        may_exchange: whether rows can be exchanged at all.
        may_give_up: whether another way is left where the first rounds lead far astray.
        around: the estimate with what is around the draws; NaN if rows say the same everywhere, which leaves none.
    """
    is_first, best_so_far = bool(state.is_first), float(state.best_estimate)
    estimate = np.inf if is_first else _estimate(measured, state.weights, around)
    is_usable = bool(np.isfinite(estimate) and np.all(np.isfinite(measured.window.values)))
    is_judged = not is_first and int(state.round) >= NUM_SHAPING_ROUNDS
    is_best = is_usable and estimate < best_so_far
    best_weights = state.weights if is_best else state.best_weights
    best_estimate = estimate if is_best and is_judged else best_so_far
    has_term = known_expansion(state) is not None
    near, most_poor_near = (ASTRAY, MAX_POOR_ROUNDS_BESIDE_TERM) if has_term else (NEAR, MAX_POOR_ROUNDS_NEAR)
    num_poor = int(state.num_poor) + 1 if is_judged and _is_poor(estimate, best_so_far, near) else 0
    is_given_up = may_give_up and int(state.round) > NUM_SHAPING_ROUNDS and not best_estimate < ASTRAY
    most_poor = most_poor_near if best_estimate < near else MAX_POOR_ROUNDS_FAR
    has_ended = best_estimate < tolerance or num_poor >= most_poor or is_given_up
    is_over = bool(has_ended or int(state.round) + 1 >= num_rounds + NUM_SHAPING_ROUNDS)
    is_exchanging = is_best and is_judged and not is_over and bool(np.any(best_weights == 0)) and may_exchange
    return Judgement(
        estimate=estimate,
        is_best=is_best,
        best_weights=best_weights,
        best_estimate=best_estimate,
        damping=_changed_damping(float(state.damping), is_best) if is_judged else float(state.damping),
        num_poor=num_poor,
        is_over=is_over,
        is_exchanging=is_exchanging,
        is_solving=(is_first or is_judged) and not is_over and not is_exchanging,
    )


def _estimate(measured: Measured, weights: np.ndarray, around: float) -> float:
    """The larger of the two; NaN if one of them is."""
    return float(np.maximum(half_variance(measured.window, weights) + measured.noise, around))


def _is_poor(estimate: float, best_estimate: float, near: float) -> bool:
    """Whether an estimate, which may be NaN, is too little of an improvement."""
    enough = IMPROVEMENT if best_estimate < near else 1.0
    return not estimate < enough * best_estimate


def _changed_damping(damping: float, is_best: bool) -> float:
    return float(np.clip(damping * (0.1 if is_best else 100.0), LEAST_DAMPING, MOST_DAMPING))
