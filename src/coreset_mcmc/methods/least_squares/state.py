"""What training by least squares carries from step to step, and what it reports."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.methods.least_squares.equations import Window


class Phase:
    """What a step of training does."""

    SAMPLE_MODE, MODE, COLD_ROUNDS, ROUNDS, EXCHANGE = range(5)


class LeastSquaresState(NamedTuple):
    """The minimum that the next round needs."""

    phase: jax.Array
    search: Any
    """The Newton search of a hot start; empty without one."""
    taylor: Any
    """The control variates; empty without them, and of no use before the mode is found."""
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
