"""What training by least squares carries from step to step, and what it reports."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.methods.least_squares.equations import Window
from coreset_mcmc.methods.least_squares.taylor import TaylorSums
from coreset_mcmc.posterior.newton import NewtonSearchState


class Phase:
    """What a step of training does."""

    SAMPLE_MODE, MODE, COLD_ROUNDS, ROUNDS, EXCHANGE = range(5)
    """Find the mode of a sample; one Newton step to that of all rows; a round by slice sampling, or a kernel of the
    user's; a round from a hot start; an exchange of rows.
    """


class LeastSquaresState(NamedTuple):
    """The minimum that the next round needs."""

    phase: jax.Array
    search: NewtonSearchState | None
    """The Newton search of a hot start."""
    taylor: TaylorSums | None
    """The control variates, if there are rows enough for them; of no use before the mode is found."""
    indices: jax.Array
    """Row numbers of the coreset (M,)."""
    rows: Batch
    """The rows themselves."""
    weights: jax.Array
    """To be tried in the next round."""
    best_weights: jax.Array
    best_estimate: jax.Array
    best_positions: Position
    """Where the chains were under the best weights; each round starts there."""
    best_window: Window
    best_draws: Position
    """The draws behind it, with a leading axis (J, ...)."""
    scale: jax.Array
    """A factor (d, d) of the covariance of the best window, which shapes whatever moves the chains."""
    damping: jax.Array
    round: jax.Array
    num_poor: jax.Array
    """Rounds in a row that brought the estimate down too little."""
    is_first: jax.Array
    """Whether the next window is the first of a hot start."""
    done: jax.Array


class LeastSquaresInfo(NamedTuple):
    """What one step of training reports."""

    kl_estimate: jax.Array
    """Half the variance of T - L w over fresh draws of the weights tried; NaN in a step that judges none."""
    best_estimate: jax.Array
    weight_change: jax.Array
    """How far the solve moved the weights, as a share of their size; NaN in a step without one."""
    damping: jax.Array
    newton_decrement: jax.Array
    """Distance to the mode of all rows; infinite while only that of a sample is known, NaN after the search."""
    num_evaluations: jax.Array
    status: jax.Array


Stepped = tuple[LeastSquaresState, LeastSquaresInfo]
"""What every step of training returns."""


def nothing_learned(state: LeastSquaresState, decrement: jax.Array, num_evaluations: jax.Array) -> LeastSquaresInfo:
    """The info of a step that tried no weights."""
    return LeastSquaresInfo(
        kl_estimate=jnp.asarray(jnp.nan),
        best_estimate=state.best_estimate,
        weight_change=jnp.asarray(jnp.nan),
        damping=state.damping,
        newton_decrement=decrement,
        num_evaluations=num_evaluations,
        status=jnp.zeros((), jnp.int32),
    )
