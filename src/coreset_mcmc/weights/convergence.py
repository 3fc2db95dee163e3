"""When to stop moving the weights, without knowing the true posterior.

Half the variance of the residual T - L w over draws of pi_w estimates KL(pi_w || pi) near the optimum. At checks that
become rarer as training goes on, it is computed for the current weights from draws of the recent past and full-data
sums, so that minibatch noise does not enter. Training stops when the estimate is below a tolerance, or when doubling
the number of updates no longer lowers it by a tenth.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.data.source import DataSource
from coreset_mcmc.errors import require_count, require_positive
from coreset_mcmc.model import Model
from coreset_mcmc.target import CoresetTarget
from coreset_mcmc.types import Position, static
from coreset_mcmc.weights.gradient import centred, full_data_sums, log_likelihood_matrix

SPACING = 1.25
"""Each check comes when a quarter more updates have been made than at the last."""

IMPROVEMENT = 0.9
"""A new best estimate must be below this fraction of the old one to count."""

PATIENCE = 2.0
"""Stop when this many times the updates of the last improvement have been made."""


def half_variance(model: Model, positions: Position, data: DataSource, target: CoresetTarget) -> jax.Array:
    """Half the variance over J positions of (full-data sum - weighted coreset sum): the KL estimate.

    Costs J passes over the data.
    """
    residual = full_data_sums(model, positions, data).total - centred(
        log_likelihood_matrix(model, positions, target.rows)
    ) @ jnp.where(target.weights != 0, target.weights, 0.0)
    return 0.5 * jnp.var(residual, ddof=1)


class ConvergenceState(NamedTuple):
    window: Position
    """Positions (num_draws, ...) of the recent past."""
    next_check: jax.Array
    last_check: jax.Array
    best: jax.Array
    best_update: jax.Array
    estimate: jax.Array
    """The KL estimate at the last check; NaN before the first."""
    num_checks: jax.Array
    has_converged: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Convergence:
    """Stop by the estimated KL.

    Args:
        tolerance: stop at once when the estimate falls below this.
        min_updates: no check before this many updates.
        num_draws: draws in each estimate; each costs one pass over the data.
    """

    tolerance: float = 0.01
    min_updates: int = static(default=500)
    num_draws: int = static(default=64)

    def __post_init__(self) -> None:
        require_positive("Convergence tolerance", self.tolerance)
        require_count("Convergence min_updates", self.min_updates, at_least=2, fix="Leave it out for 500.")
        require_count("Convergence num_draws", self.num_draws, at_least=2, fix="Leave it out for 64.")

    def init(self, positions: Position) -> ConvergenceState:
        window = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf[:1], (self.num_draws, *leaf.shape[1:])), positions)
        none = jnp.zeros((), jnp.int32)
        return ConvergenceState(
            window=window,
            next_check=jnp.asarray(self.min_updates, jnp.int32),
            last_check=none,
            best=jnp.asarray(jnp.inf),
            best_update=none,
            estimate=jnp.asarray(jnp.nan),
            num_checks=none,
            has_converged=jnp.array(False),
        )

    def update(
        self,
        state: ConvergenceState,
        num_updates: jax.Array,
        positions: Position,
        data: DataSource,
        target: CoresetTarget,
    ) -> ConvergenceState:
        """Remember the positions of the K chains and, when due, check."""
        state = state._replace(window=self._remember(state, num_updates, positions))
        return jax.lax.cond(
            num_updates >= state.next_check,
            lambda: self._check(state, num_updates, data, target),
            lambda: state,
        )

    def _remember(self, state: ConvergenceState, num_updates: jax.Array, positions: Position) -> Position:
        """Fill the window evenly between two checks, chain after chain."""
        num_chains = jax.tree.leaves(positions)[0].shape[0]
        stride = jnp.maximum((state.next_check - state.last_check) // self.num_draws, 1)
        moment = (num_updates - state.last_check) // stride
        slot, chain = moment % self.num_draws, moment % num_chains
        return jax.tree.map(lambda window, leaf: window.at[slot].set(leaf[chain]), state.window, positions)

    def _check(
        self, state: ConvergenceState, num_updates: jax.Array, data: DataSource, target: CoresetTarget
    ) -> ConvergenceState:
        estimate = half_variance(target.model, state.window, data, target)
        is_better = estimate < IMPROVEMENT * state.best
        best_update = jnp.where(is_better, num_updates, state.best_update)
        is_stalled = num_updates >= PATIENCE * best_update
        return ConvergenceState(
            window=state.window,
            next_check=(num_updates * SPACING).astype(jnp.int32) + 1,
            last_check=num_updates,
            best=jnp.where(is_better, estimate, state.best),
            best_update=best_update,
            estimate=estimate,
            num_checks=state.num_checks + 1,
            has_converged=(estimate < self.tolerance) | is_stalled,
        )
