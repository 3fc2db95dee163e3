"""Sparse variational inference (Campbell and Beronov 2019): a greedy coreset that chooses its rows from all N.

It starts from the prior, with no rows. One addition draws S positions from the current coreset posterior and, with the
centred log-likelihoods v_n (S,) of each row and the residual e = sum_n v_n - sum_m w_m v_m, adds the row whose
direction explains most of it, the argmax of <v_n, e> / |v_n|. A row that is in already may win too, by the absolute
value: changing its weight would help more than any new row. Then nothing is added, and weights stay in their places.
Either way all weights are moved by projected Adam steps with the draws of K chains that move along, as in Coreset MCMC.

What differs from the original: chains instead of exact draws; the Adam rate is a share of the mean weight N/m, where
the original has an absolute number to tune; weight updates may use a minibatch of rows. The paper does not compare with
this method, but it is the ancestor of quasi-Newton coresets and Coreset MCMC.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from coreset_mcmc.core.errors import require, require_count, require_positive
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Batch, Key, Position, pytree, static
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.data.shuffle import without_replacement
from coreset_mcmc.kernels.base import Kernel, init_chains, restart_chains, step_chains
from coreset_mcmc.methods.contract import Trained
from coreset_mcmc.methods.coreset_mcmc.gradient import estimate_gradient
from coreset_mcmc.methods.coreset_mcmc.optimizers import Adam
from coreset_mcmc.methods.coreset_mcmc.projections import NonNegative
from coreset_mcmc.methods.draws import collect_draws, require_equal_shares
from coreset_mcmc.methods.sampling import sample_coreset
from coreset_mcmc.methods.sums import DataSums, centred, full_data_sums, log_likelihood_matrix, minibatch_sums
from coreset_mcmc.methods.with_kernel import MovesByKernel
from coreset_mcmc.posterior.problem import Problem
from coreset_mcmc.posterior.target import CoresetTarget

MAX_ADDITIONS = 100_000
"""Bound on the steps of a method that takes its coreset size from the problem; it is done long before."""

TIE = 1e-9
"""A row beats one that is in already only by more than rounding, so that copies of it are not added."""


class SparseVIState(NamedTuple):
    """M places, of which the first ``num_rows`` are taken; all others have weight 0."""

    indices: jax.Array
    weights: jax.Array
    num_rows: jax.Array
    chains: Any
    num_additions: jax.Array
    done: jax.Array


class SparseVIInfo(NamedTuple):
    """What one addition reports."""

    kl_estimate: jax.Array
    """Half the variance of the residual over the draws, before the addition: close to KL when KL is small."""
    chosen_row: jax.Array
    """The number of the row that was added, or that was in already."""
    num_rows: jax.Array
    gradient_norm: jax.Array
    """Of the last weight update."""
    acceptance_rate: jax.Array
    """Of the draws on which the row was chosen."""
    diverging: jax.Array
    num_evaluations: jax.Array
    status: jax.Array


class _Chosen(NamedTuple):
    row: jax.Array
    place: jax.Array
    is_new: jax.Array
    kl_estimate: jax.Array
    is_finite: jax.Array


class _Progress(NamedTuple):
    """What the weight updates of one addition carry along."""

    weights: jax.Array
    chains: Any
    optimizer: Any
    gradient_norm: jax.Array
    is_finite: jax.Array
    diverging: jax.Array
    num_evaluations: jax.Array
    """Evaluations of the log-density by the kernel."""


@pytree
@dataclass(frozen=True)
class SparseVI(MovesByKernel):
    """Choose rows greedily and train their weights after each choice.

    An addition costs S (2 N + M) log-likelihoods to choose a row, K (M + B) for each weight update with B rows, and
    those of the kernel: with the defaults, 1 400 for each row of the data. A ``subsample_size`` brings this down to
    400, at the price of noise in the weights that grows with N/B.

    Args:
        kernel: moves each chain. ``None`` is a hit-and-run slice kernel, which ``fit`` shapes in a pilot run.
        coreset_size: M, the number of additions. ``None`` takes the coreset size of the problem. Rows selected
            beforehand are ignored, but for the pilot run. Fewer than M rows are chosen when one is chosen again.
        num_draws: S, draws on which a row is chosen, over all chains.
        num_updates: weight updates after each addition.
        learning_rate: size of the first Adam step after an addition, as a share of the mean weight N/m of m rows; the
            i-th has 1/i of it. Large values overshoot: a posterior that is too narrow gives little gradient to return.
        num_chains: K, at least 2.
        subsample_size: rows in each weight update, or all rows if there are fewer; ``None`` for all of them.
    """

    kernel: Kernel | None = None
    coreset_size: int | None = static(default=None)
    num_draws: int = static(default=200)
    num_updates: int = 100
    learning_rate: float = 0.1
    num_chains: int = static(default=10)
    subsample_size: int | None = static(default=None)

    name = "sparse-vi"

    def __post_init__(self) -> None:
        if self.coreset_size is not None:
            require_count("coreset_size", self.coreset_size, at_least=1, fix="Leave it out for that of the problem.")
        require_count("num_chains", self.num_chains, at_least=2, fix="The gradient is a covariance over chains.")
        require_count("num_draws", self.num_draws, at_least=2, fix="Leave it out for 200.")
        require_equal_shares(self.num_draws, self.num_chains)
        require_positive("learning_rate", self.learning_rate)
        if self.subsample_size is not None:
            require_count("subsample_size", self.subsample_size, at_least=2, fix="Use None for all rows.")
        if isinstance(self.num_updates, int):
            require_count("num_updates", self.num_updates, at_least=1, fix="A hundred is the usual choice.")

    @property
    def max_steps(self) -> int:
        return MAX_ADDITIONS if self.coreset_size is None else self.coreset_size

    def adapted(self, problem: Problem, *, keeps_rows: bool) -> SparseVI:
        del keeps_rows
        return self if self.coreset_size is not None else self.resized(problem.coreset_size)

    def resized(self, coreset_size: int) -> SparseVI:
        return replace(self, coreset_size=coreset_size)

    def size_of(self, problem: Problem) -> int:
        """M for this problem."""
        return problem.coreset_size if self.coreset_size is None else self.coreset_size

    def check(self, problem: Problem) -> None:
        require(
            1 <= self.size_of(problem) <= problem.data.size,
            "coreset_size",
            got=self.size_of(problem),
            expected=f"from 1 to the {problem.data.size} rows of the data",
            fix="Use a smaller coreset.",
        )
        self.moving_kernel.check(problem.position, _empty_target(problem, self.size_of(problem)))

    def init_evaluations(self, problem: Problem) -> int:
        return self.num_chains * self.size_of(problem)

    def init(self, key: Key, problem: Problem) -> SparseVIState:
        del key
        size = self.size_of(problem)
        target = _empty_target(problem, size)
        positions = jax.tree.map(lambda leaf: leaf[: self.num_chains], problem.initial_positions)
        return SparseVIState(
            indices=jnp.zeros(size, jnp.int32),
            weights=target.weights,
            num_rows=jnp.zeros((), jnp.int32),
            chains=init_chains(self.moving_kernel, positions, target),
            num_additions=jnp.zeros((), jnp.int32),
            done=jnp.array(False),
        )

    def step(self, key: Key, state: SparseVIState, problem: Problem) -> tuple[SparseVIState, SparseVIInfo]:
        draw_key, update_key = jax.random.split(key)
        size = self.size_of(problem)
        target = CoresetTarget(problem.data.take(state.indices), state.weights, problem.model)
        draws = collect_draws(self.moving_kernel, draw_key, state.chains, target, self.num_draws // self.num_chains)
        chosen = _choose(problem, target, draws.positions, state)
        state = state._replace(
            indices=jnp.where(chosen.is_new, state.indices.at[chosen.place].set(chosen.row), state.indices),
            num_rows=state.num_rows + chosen.is_new,
            chains=draws.chains,
            num_additions=state.num_additions + 1,
        )
        trained = self._train(update_key, state, problem)
        evaluated = draws.num_evaluations + trained.num_evaluations
        rows_in_choice = self.num_draws * (2 * problem.data.size + size)
        rows_in_update = self.num_chains * (size * (1 + self.moving_kernel.caches_gradient) + self._num_rows(problem))
        is_lost = jnp.any(trained.chains.log_density == -jnp.inf)
        status = jnp.where(is_lost, Status.CHAIN_LOST.value, Status.OK.value)
        info = SparseVIInfo(
            kl_estimate=chosen.kl_estimate,
            chosen_row=chosen.row,
            num_rows=state.num_rows,
            gradient_norm=trained.gradient_norm,
            acceptance_rate=draws.acceptance_rate,
            diverging=draws.diverging + trained.diverging,
            num_evaluations=size * evaluated + rows_in_choice + self.num_updates * rows_in_update,
            status=jnp.where(chosen.is_finite & trained.is_finite, status, Status.GRADIENT_NOT_FINITE.value).astype(
                jnp.int32
            ),
        )
        state = state._replace(weights=trained.weights, chains=trained.chains, done=state.num_additions >= size)
        return state, info

    def describe(self, info: SparseVIInfo) -> str:
        return f"{info.num_rows[-1]} rows, estimated KL {info.kl_estimate[-1]:.3g}"

    def finish(self, state: SparseVIState, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        """The rows chosen; before the first choice one row of weight 0, which is the prior."""
        count = max(int(state.num_rows), 1)
        coreset = SelectedRows(np.asarray(state.indices)[:count], np.asarray(state.weights)[:count])
        return sample_coreset(problem, coreset, state.chains.position, kernel or self.moving_kernel, num_chains)

    def _num_rows(self, problem: Problem) -> int:
        """B, rows in each weight update."""
        return problem.data.size if self.subsample_size is None else min(self.subsample_size, problem.data.size)

    def _data_sums(self, key: Key, positions: Position, problem: Problem) -> DataSums:
        count = self._num_rows(problem)
        if count == problem.data.size:
            return full_data_sums(problem.model, positions, problem.data)
        rows = problem.data.take(without_replacement(key, problem.data.size, count))
        return minibatch_sums(problem.model, positions, rows, problem.data.size)

    def _train(self, key: Key, state: SparseVIState, problem: Problem) -> _Progress:
        """Projected Adam on the weights of the rows chosen so far, each step after a move of the chains."""
        rows = problem.data.take(state.indices)
        is_taken = jnp.arange(state.weights.shape[0]) < state.num_rows
        mean_weight: Any = problem.data.size / jnp.maximum(state.num_rows, 1)
        optimizer = Adam(self.learning_rate * mean_weight, decay=1.0)

        def target_of(weights: jax.Array) -> CoresetTarget:
            return CoresetTarget(rows, weights, problem.model)

        def update(number: jax.Array, progress: _Progress) -> _Progress:
            move_key, batch_key = jax.random.split(jax.random.fold_in(key, number))
            chains, moved = step_chains(self.moving_kernel, move_key, progress.chains, target_of(progress.weights))
            sums = self._data_sums(batch_key, chains.position, problem)
            values = log_likelihood_matrix(problem.model, chains.position, rows)
            gradient = jnp.where(is_taken, estimate_gradient(values, sums, progress.weights).gradient, 0.0)
            is_finite = jnp.all(jnp.isfinite(gradient))
            steps, memory = optimizer.update(jnp.where(is_finite, gradient, 0.0), progress.optimizer, progress.weights)
            weights = NonNegative().project(optax.apply_updates(progress.weights, steps), problem.data.size)
            return _Progress(
                weights=weights,
                chains=restart_chains(self.moving_kernel, chains, target_of(weights)),
                optimizer=memory,
                gradient_norm=jnp.where(is_finite, jnp.linalg.norm(gradient), jnp.inf),
                is_finite=progress.is_finite & is_finite,
                diverging=progress.diverging + jnp.sum(moved.diverging, dtype=jnp.int32),
                num_evaluations=progress.num_evaluations + jnp.sum(moved.num_evaluations, dtype=jnp.int64),
            )

        start = _Progress(
            weights=state.weights,
            chains=state.chains,
            optimizer=optimizer.init(state.weights),
            gradient_norm=jnp.zeros((), state.weights.dtype),
            is_finite=jnp.array(True),
            diverging=jnp.zeros((), jnp.int32),
            num_evaluations=jnp.zeros((), jnp.int64),
        )
        result: _Progress = jax.lax.fori_loop(0, self.num_updates, update, start)
        return result


def _empty_target(problem: Problem, size: int) -> CoresetTarget:
    """The prior, as a coreset of ``size`` places with weight 0."""
    return CoresetTarget(problem.data.take(jnp.zeros(size, jnp.int32)), jnp.zeros(size), problem.model)


def _alignment(values: jax.Array, residual: jax.Array) -> jax.Array:
    """<v, e> / |v| for the columns of centred log-likelihoods (S, B); -inf for a row that is the same everywhere."""
    norms = jnp.linalg.norm(values, axis=0)
    return jnp.where(norms > 0.0, residual @ values / jnp.where(norms > 0.0, norms, 1.0), -jnp.inf)


def _choose(problem: Problem, target: CoresetTarget, positions: Position, state: SparseVIState) -> _Chosen:
    """The row of all N that is most aligned with the residual, or a row that is in; two passes over the data."""

    def centred_values(batch: Batch) -> jax.Array:
        return centred(log_likelihood_matrix(problem.model, positions, batch))

    values = centred_values(target.rows)
    residual = full_data_sums(problem.model, positions, problem.data).total - values @ state.weights
    score, row = problem.data.argmax_over_rows(lambda batch: _alignment(centred_values(batch), residual))
    is_taken = jnp.arange(state.weights.shape[0]) < state.num_rows
    own_scores = jnp.where(is_taken, jnp.abs(_alignment(values, residual)), -jnp.inf)
    own_place = jnp.argmax(own_scores)
    row = jnp.where(own_scores[own_place] >= (1.0 - TIE) * score, state.indices[own_place], row)
    is_in = is_taken & (state.indices == row)
    place = jnp.where(jnp.any(is_in), jnp.argmax(is_in), state.num_rows).astype(jnp.int32)
    return _Chosen(
        row=row,
        place=place,
        is_new=~jnp.any(is_in),
        kl_estimate=0.5 * jnp.var(residual, ddof=1),
        is_finite=jnp.all(jnp.isfinite(residual)),
    )
