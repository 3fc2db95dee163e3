"""Coreset MCMC (Algorithm 1 of the paper).

One iteration moves each of K chains under the current weights, then, when due, moves the weights down an estimate of
the KL gradient made from those same chain states, and projects. This is the printed recursion shifted by half a step:
chains that start at one point are distinct when the first gradient is formed. (The printed algorithm omits the
projection; equation (5) has it.)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import require, require_count
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Key, pytree, static
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.kernels.base import Kernel, init_chains, restart_chains, step_chains
from coreset_mcmc.methods.contract import Trained
from coreset_mcmc.methods.coreset_mcmc.epochs import DoublingEpochs
from coreset_mcmc.methods.coreset_mcmc.gradient import GradientEstimate, estimate_gradient
from coreset_mcmc.methods.coreset_mcmc.hot_dog import HotDoG
from coreset_mcmc.methods.coreset_mcmc.hot_start import HotStart
from coreset_mcmc.methods.coreset_mcmc.minibatch import Minibatches, WithoutReplacement
from coreset_mcmc.methods.coreset_mcmc.optimizers import Optimizer, as_optimizer
from coreset_mcmc.methods.coreset_mcmc.projections import FeasibleSet, NonNegative
from coreset_mcmc.methods.sampling import sample_coreset
from coreset_mcmc.methods.sums import DataSums, full_data_sums, log_likelihood_matrix, minibatch_sums
from coreset_mcmc.methods.with_kernel import MovesByKernel
from coreset_mcmc.posterior.problem import Problem


class CoresetMCMCState(NamedTuple):
    """The minimum that the next iteration needs."""

    weights: jax.Array
    chains: Any
    optimizer: Any
    minibatches: Any
    hot_start: Any
    epochs: Any
    iteration: jax.Array
    num_updates: jax.Array
    done: jax.Array


class CoresetMCMCInfo(NamedTuple):
    """What one iteration reports."""

    gradient_norm: jax.Array
    """NaN in an iteration without a weight update."""
    kl_estimate: jax.Array
    """The estimate for the best weights so far, from checks at the end of epochs; NaN before the first."""
    log_density: jax.Array
    """(K,), under the weights that moved the chains."""
    acceptance_rate: jax.Array
    diverging: jax.Array
    num_evaluations: jax.Array
    """Log-likelihoods of single rows evaluated in this iteration, over all chains."""
    status: jax.Array


class _Update(NamedTuple):
    state: CoresetMCMCState
    gradient_norm: jax.Array
    status: jax.Array
    num_evaluations: jax.Array


@pytree
@dataclass(frozen=True)
class CoresetMCMC(MovesByKernel):
    """Train coreset weights with the draws of K chains.

    Args:
        kernel: moves each chain; any kernel that leaves pi_w invariant. ``None`` is a hit-and-run slice kernel, which
            ``fit`` shapes in a pilot run.
        optimizer: an optimiser of ours or of optax.
        feasible_set: the set that the weights are projected onto.
        num_chains: K, at least 2.
        subsample_size: S, rows in each gradient estimate; ``None`` for all of them.
        num_iterations: weight updates.
        burn_in: iterations with the weights held first, or a :class:`HotStart` test that decides; ``None`` for none.
        delay: kernel steps for each weight update.
        minibatches: how the S rows are drawn.
        epochs: restart, average and stop by the estimated KL; ``None`` runs all of ``num_iterations`` in one go.
    """

    kernel: Kernel | None = None
    optimizer: Optimizer = HotDoG()
    feasible_set: FeasibleSet = NonNegative()
    num_chains: int = static(default=2)
    subsample_size: int | None = static(default=None)
    num_iterations: int = 25_000
    burn_in: int | HotStart | None = None
    delay: int = static(default=1)
    minibatches: Minibatches = WithoutReplacement()
    epochs: DoublingEpochs | None = None

    name = "coreset-mcmc"

    def __post_init__(self) -> None:
        object.__setattr__(self, "optimizer", as_optimizer(self.optimizer))
        require_count(
            "num_chains",
            self.num_chains,
            at_least=2,
            fix="The gradient estimate is a covariance over chains, so it needs at least two.",
        )
        require_count("delay", self.delay, at_least=1, fix="Use 1 to update the weights after every step.")
        if self.subsample_size is not None:
            require_count("subsample_size", self.subsample_size, at_least=1, fix="Use None for all rows.")
        if isinstance(self.num_iterations, int):
            require_count("num_iterations", self.num_iterations, at_least=1, fix="Pass how many updates to make.")
        if isinstance(self.burn_in, int):
            require_count("burn_in", self.burn_in, at_least=0, fix="Use 0 for none, or HotStart() to decide.")
            object.__setattr__(self, "burn_in", self.burn_in or None)

    @property
    def max_steps(self) -> int:
        """Iterations if nothing stops training early."""
        held = self.burn_in.max_iterations if isinstance(self.burn_in, HotStart) else self.burn_in or 0
        return held + self.num_iterations * self.delay

    def check(self, problem: Problem) -> None:
        """Raise an InputError if this method cannot work on this problem."""
        size = problem.data.size
        require(
            self.subsample_size is None or self.subsample_size <= size,
            "subsample_size",
            got=self.subsample_size,
            expected=f"at most the {size} rows of the data",
            fix="Use None for all rows.",
        )
        require(
            self.subsample_size is None or self.subsample_size > 1 or size == 1,
            "subsample_size",
            got=self.subsample_size,
            expected="at least 2 rows",
            fix="One row gives no estimate of its own noise; a few times the coreset size is a good choice.",
        )
        self.moving_kernel.check(problem.position, problem.target(problem.initial_weights))

    def init_evaluations(self, problem: Problem) -> int:
        return self.num_chains * problem.coreset_size

    def init(self, key: Key, problem: Problem) -> CoresetMCMCState:
        weights = self.feasible_set.project(problem.initial_weights, problem.data.size)
        positions = jax.tree.map(lambda leaf: leaf[: self.num_chains], problem.initial_positions)
        return CoresetMCMCState(
            weights=weights,
            chains=init_chains(self.moving_kernel, positions, problem.target(weights)),
            optimizer=self.optimizer.init(weights),
            minibatches=self.minibatches.init(key),
            hot_start=self.burn_in.init(self.num_chains, weights.dtype) if isinstance(self.burn_in, HotStart) else (),
            epochs=self.epochs.init(weights, positions) if self.epochs is not None else (),
            iteration=jnp.zeros((), jnp.int32),
            num_updates=jnp.zeros((), jnp.int32),
            done=jnp.array(False),
        )

    def step(self, key: Key, state: CoresetMCMCState, problem: Problem) -> tuple[CoresetMCMCState, CoresetMCMCInfo]:
        move_key, batch_key = jax.random.split(key)
        chains, kernel_info = step_chains(self.moving_kernel, move_key, state.chains, problem.target(state.weights))
        log_density = chains.log_density
        state = state._replace(chains=chains, iteration=state.iteration + 1)
        state, is_due = self._is_update_due(state, log_density)

        def keep() -> _Update:
            return _Update(state, jnp.asarray(jnp.nan, state.weights.dtype), _status(log_density), _none())

        def update() -> _Update:
            return self._update_weights(batch_key, state, problem)

        updated = update() if is_due is None else jax.lax.cond(is_due, update, keep)
        kernel_evaluations = problem.coreset_size * jnp.sum(
            kernel_info.num_evaluations, dtype=updated.num_evaluations.dtype
        )
        info = CoresetMCMCInfo(
            gradient_norm=updated.gradient_norm,
            kl_estimate=self._kl_estimate(updated.state),
            log_density=log_density,
            acceptance_rate=jnp.mean(kernel_info.acceptance_rate),
            diverging=jnp.sum(kernel_info.diverging),
            num_evaluations=updated.num_evaluations + kernel_evaluations,
            status=updated.status,
        )
        return updated.state, info

    def finish(self, state: CoresetMCMCState, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        coreset = SelectedRows(np.asarray(problem.indices), np.asarray(self.final_weights(state)))
        return sample_coreset(problem, coreset, state.chains.position, kernel or self.moving_kernel, num_chains)

    def final_weights(self, state: CoresetMCMCState) -> jax.Array:
        """The best weights that a check has seen, or the current ones if there was none."""
        if self.epochs is None:
            return state.weights
        return jnp.where(state.epochs.num_checks > 0, state.epochs.best_weights, state.weights)

    def shortfall(self, state: CoresetMCMCState) -> str:
        return self.burn_in.shortfall(state.hot_start) if isinstance(self.burn_in, HotStart) else ""

    def describe(self, info: CoresetMCMCInfo) -> str:
        """A live sign of convergence for the progress bar, from the info of the latest iterations."""
        estimate = info.kl_estimate[-1]
        if math.isfinite(estimate):
            return f"estimated KL {estimate:.3g}"
        norm = info.gradient_norm[-1]
        return f"gradient norm {norm:.2g}" if math.isfinite(norm) else "holding the weights"

    def _is_update_due(
        self, state: CoresetMCMCState, log_density: jax.Array
    ) -> tuple[CoresetMCMCState, jax.Array | None]:
        """Whether the weights move in this iteration; None if they always do, which saves a costly branch."""
        if self.burn_in is None and self.delay == 1:
            return state, None
        if isinstance(self.burn_in, HotStart):
            dimension = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], state.chains.position))[0].size
            hot_start = self.burn_in.update(state.hot_start, log_density, dimension)
            since = state.iteration - hot_start.num_iterations
            return state._replace(hot_start=hot_start), hot_start.is_over & (since % self.delay == 0)
        since = state.iteration - (0 if self.burn_in is None else self.burn_in)
        return state, (since > 0) & (since % self.delay == 0)

    def _update_weights(self, key: Key, state: CoresetMCMCState, problem: Problem) -> _Update:
        """Gradient, optimiser, projection; then the chains' cached log-densities under the new weights."""
        minibatches, sums, num_rows = self._data_sums(key, state, problem)
        values = log_likelihood_matrix(problem.model, state.chains.position, problem.rows)
        estimate = estimate_gradient(values, sums, state.weights)
        is_finite = jnp.all(jnp.isfinite(estimate.gradient))
        gradient = jnp.where(is_finite, estimate.gradient, 0.0)
        steps, optimizer = self.optimizer.update(gradient, state.optimizer, state.weights)
        weights = self.feasible_set.project(optax.apply_updates(state.weights, steps), problem.data.size)
        moved = state._replace(
            weights=weights, optimizer=optimizer, minibatches=minibatches, num_updates=state.num_updates + 1
        )
        moved, num_checked = self._end_epoch(moved, problem)
        chains = restart_chains(self.moving_kernel, moved.chains, problem.target(moved.weights))
        num_evaluations = self.num_chains * (problem.coreset_size * (1 + self.moving_kernel.caches_gradient) + num_rows)
        return _Update(
            moved._replace(chains=chains, done=moved.done | (moved.num_updates >= self.num_iterations)),
            _norm(estimate, is_finite),
            jnp.where(is_finite, _status(chains.log_density), Status.GRADIENT_NOT_FINITE.value).astype(jnp.int32),
            _none() + num_evaluations + num_checked,
        )

    def _data_sums(self, key: Key, state: CoresetMCMCState, problem: Problem) -> tuple[Any, DataSums, int]:
        size = problem.data.size
        if self.subsample_size is None or self.subsample_size == size:
            sums = full_data_sums(problem.model, state.chains.position, problem.data)
            return state.minibatches, sums, size
        minibatches, rows = self.minibatches.next(key, state.minibatches, size, self.subsample_size)
        sums = minibatch_sums(problem.model, state.chains.position, problem.data.take(rows), size)
        return minibatches, sums, self.subsample_size

    def _end_epoch(self, state: CoresetMCMCState, problem: Problem) -> tuple[CoresetMCMCState, Any]:
        """At the end of an epoch: check, restart the optimiser from the best weights, perhaps stop."""
        schedule = self.epochs
        if schedule is None:
            return state, 0
        epochs, is_over = schedule.observe(state.epochs, state.num_updates, state.weights, state.chains.position)

        def finish() -> CoresetMCMCState:
            finished, weights = schedule.finish(epochs, state.num_updates, state.weights, problem)
            return state._replace(
                weights=weights,
                optimizer=self.optimizer.init(weights),
                epochs=finished,
                done=state.done | finished.has_converged,
            )

        rows_in_check = schedule.num_draws * (problem.data.size + problem.coreset_size)
        ended = jax.lax.cond(is_over, finish, lambda: state._replace(epochs=epochs))
        return ended, is_over.astype(_none().dtype) * rows_in_check

    def _kl_estimate(self, state: CoresetMCMCState) -> jax.Array:
        if self.epochs is None:
            return jnp.asarray(jnp.nan, state.weights.dtype)
        result: jax.Array = state.epochs.best_estimate
        return result


def _none() -> jax.Array:
    """A zero count of evaluations, wide enough for many passes over many rows."""
    return jnp.zeros((), jnp.int64)


def _norm(estimate: GradientEstimate, is_finite: jax.Array) -> jax.Array:
    return jnp.where(is_finite, jnp.linalg.norm(estimate.gradient), jnp.inf)


def _status(log_density: jax.Array) -> jax.Array:
    is_lost = jnp.any(log_density == -jnp.inf)
    return jnp.where(is_lost, Status.CHAIN_LOST.value, Status.OK.value).astype(jnp.int32)
