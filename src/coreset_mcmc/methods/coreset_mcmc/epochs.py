"""Training in epochs of doubling length, without knowing the true posterior.

Three things go wrong with one long run of an adaptive optimiser. The first gradients are larger than the last by many
orders of magnitude and, remembered, throttle the steps for thousands of updates; the last iterate carries the noise
of its gradients; and nothing says when to stop. So each epoch restarts the optimiser where the last one ended, averages
the iterates of its second half, and ends with a check. Half the variance over draws of pi_w of the residual T - L w
estimates KL(pi_w || pi) near the optimum; it is computed from full-data sums, so minibatch noise does not enter. The
better of the average and the last iterate goes on. Training stops when the estimate is below a tolerance, or when an
epoch, twice as long as the one before, no longer brings it below three fifths; far from the optimum, where slow
progress says little, two such epochs in a row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.errors import require_count, require_positive
from coreset_mcmc.core.types import Position, pytree, static
from coreset_mcmc.methods.sums import half_variances
from coreset_mcmc.posterior.problem import Problem

IMPROVEMENT = 0.6
"""An epoch goes on to another one if it brought the estimate below this fraction of the best before it.

Noise of the iterates falls like one over the square root of the length, to 0.7 for a doubled epoch: no better than
that means that the optimum for these rows is near, and that only more rows would help.
"""

NEAR = 5.0
"""Nats. Above this estimate one stalled epoch is not enough: a sparse regression went from 361 to 225 in one epoch, and
on to 0.3 in later ones.
"""


class EpochState(NamedTuple):
    """Where training is within its epoch, and the best weights so far."""

    window: Position
    """Positions (num_draws, ...) of the second half of the epoch so far."""
    average: jax.Array
    """Mean weights of the second half of the epoch so far."""
    first_update: jax.Array
    length: jax.Array
    best_weights: jax.Array
    best_estimate: jax.Array
    num_checks: jax.Array
    num_stalled: jax.Array
    """Checks in a row without enough progress."""
    has_converged: jax.Array


@pytree
@dataclass(frozen=True)
class DoublingEpochs:
    """Restart the optimiser, average its iterates and check the estimated KL after 250, 500, 1000, ... updates.

    Args:
        tolerance: stop when the estimated KL falls below this.
        first_length: updates in the first epoch.
        num_draws: draws in each check; each costs one pass over the data.
    """

    tolerance: float = 0.01
    first_length: int = static(default=250)
    num_draws: int = static(default=128)

    def __post_init__(self) -> None:
        require_positive("DoublingEpochs tolerance", self.tolerance)
        require_count("DoublingEpochs first_length", self.first_length, at_least=2, fix="Leave it out for 250.")
        require_count("DoublingEpochs num_draws", self.num_draws, at_least=2, fix="Leave it out for 128.")

    def init(self, weights: jax.Array, positions: Position) -> EpochState:
        window = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:1], (self.num_draws, *leaf.shape[1:])), positions)
        none = jnp.zeros((), jnp.int32)
        return EpochState(
            window=window,
            average=weights,
            first_update=none,
            length=jnp.asarray(self.first_length, jnp.int32),
            best_weights=weights,
            best_estimate=jnp.asarray(jnp.nan, weights.dtype),
            num_checks=none,
            num_stalled=none,
            has_converged=jnp.array(False),
        )

    def observe(
        self, state: EpochState, num_updates: jax.Array, weights: jax.Array, positions: Position
    ) -> tuple[EpochState, jax.Array]:
        """Remember the weights and one chain's position; say whether the epoch is over."""
        age = num_updates - state.first_update
        half = state.length // 2
        place = jnp.maximum(age - half - 1, 0)
        average = jnp.where(place == 0, weights, state.average + (weights - state.average) / (place + 1.0))
        slot = place * self.num_draws // (state.length - half)
        num_chains = jax.tree.leaves(positions)[0].shape[0]
        window = jax.tree.map(lambda kept, leaf: kept.at[slot].set(leaf[slot % num_chains]), state.window, positions)
        return state._replace(window=window, average=average), age >= state.length

    def finish(
        self, state: EpochState, num_updates: jax.Array, weights: jax.Array, problem: Problem
    ) -> tuple[EpochState, jax.Array]:
        """Check the average and the last iterate, and return the weights that the next epoch starts from."""
        candidates = jnp.stack([state.average, weights])
        estimates = half_variances(problem, state.window, candidates)
        estimates = jnp.where(jnp.isnan(estimates), jnp.inf, estimates)
        chosen = jnp.argmin(estimates)
        estimate, weights = estimates[chosen], candidates[chosen]
        is_first = state.num_checks == 0
        is_best = is_first | (estimate < state.best_estimate)
        is_stalled = ~is_first & ~(estimate < IMPROVEMENT * state.best_estimate)
        num_stalled = jnp.where(is_stalled, state.num_stalled + 1, 0)
        best_estimate = jnp.where(is_best, estimate, state.best_estimate)
        is_hopeless = is_stalled & ((best_estimate < NEAR) | (num_stalled >= 2))
        finished = state._replace(
            first_update=num_updates,
            length=2 * state.length,
            best_weights=jnp.where(is_best, weights, state.best_weights),
            best_estimate=best_estimate,
            num_checks=state.num_checks + 1,
            num_stalled=num_stalled,
            has_converged=(estimate < self.tolerance) | is_hopeless,
        )
        return finished, finished.best_weights
