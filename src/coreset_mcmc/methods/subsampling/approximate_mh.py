"""Metropolis-Hastings whose decisions rest on a sequential test of a subsample of the rows.

What Austerity MH and Confidence MH share: the proposal, the threshold, the chains and the counts. Nothing about the
current position is cached between steps except a log-density for the record: each step evaluates the rows it sees under
both positions, so each row counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Key, Position, pytree, static
from coreset_mcmc.data.inside import DataSource
from coreset_mcmc.data.shuffle import without_replacement
from coreset_mcmc.methods.contract import Sampler
from coreset_mcmc.methods.sampling import SamplingInfo
from coreset_mcmc.methods.subsampling.proposals import Proposal
from coreset_mcmc.methods.subsampling.sequential import SequentialTest, decide
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.problem import Problem
from coreset_mcmc.posterior.target import finite_or_impossible


@pytree
@dataclass(frozen=True)
class SubsamplingProblem:
    """All the data, and where each chain starts."""

    data: DataSource
    initial_positions: Position
    model: Model = static()

    @property
    def num_chains(self) -> int:
        return int(jax.tree.leaves(self.initial_positions)[0].shape[0])


def subsampling_problem(problem: Problem, positions: Position, num_chains: int) -> SubsamplingProblem:
    """``num_chains`` starts from ``positions``, which has a leading chain axis of any length."""
    available = jax.tree.leaves(positions)[0].shape[0]
    starts = jax.tree.map(lambda leaf: leaf[jnp.arange(num_chains) % available], positions)
    return SubsamplingProblem(problem.data, starts, problem.model)


class ApproximateMHState(NamedTuple):
    """The chains, and the one number about all rows that a bound on changes needs."""

    position: Position
    log_density: jax.Array
    """(K,), an estimate from the rows last seen at this position."""
    row_maximum: jax.Array
    """The largest row statistic of the model's bound on changes; 0 if the test uses none."""
    done: jax.Array


@pytree
@dataclass(frozen=True)
class ApproximateMH(Sampler):
    """Draws by Metropolis-Hastings with a sequential test in place of the full likelihood ratio.

    ``log_density`` of a draw is not the log posterior, which would take all rows: it is log prior + (N / n) times the
    log-likelihood of the n rows that the step saw, at the position kept. A step that saw none repeats the last one.
    ``num_steps`` is n. ``acceptance_rate`` is 0 or 1, the decision. ``diverging`` marks a draw at a position under
    which some row seen is impossible (log-likelihood -inf or NaN); such rows are left out of the estimate.
    """

    proposal: Proposal
    test: SequentialTest
    uses_model_bound: bool = static(default=False)

    name = "sampling"

    def init(self, key: Key, problem: SubsamplingProblem) -> ApproximateMHState:
        rows = problem.data.take(without_replacement(key, problem.data.size, self._first_rows(problem)))

        def estimate(position: Position) -> jax.Array:
            values = finite_or_impossible(problem.model.log_likelihood(position, rows))
            mean = jnp.mean(values, where=values > -jnp.inf)
            return problem.model.log_prior(position) + problem.data.size * jnp.where(jnp.isnan(mean), 0.0, mean)

        row_maximum = jnp.zeros(())
        if self.uses_model_bound and problem.model.change_bound is not None:
            statistic = problem.model.change_bound.row_statistic
            row_maximum = problem.data.max_over_rows(lambda batch: jnp.max(statistic(batch)))
        return ApproximateMHState(
            problem.initial_positions, jax.vmap(estimate)(problem.initial_positions), row_maximum, jnp.array(False)
        )

    def init_evaluations(self, problem: SubsamplingProblem) -> int:
        """The rows of the first log-density; the statistic of the model's bound is no likelihood."""
        return problem.num_chains * self._first_rows(problem)

    def step(
        self, key: Key, state: ApproximateMHState, problem: SubsamplingProblem
    ) -> tuple[ApproximateMHState, SamplingInfo]:
        def move(chain: tuple[Key, Position, jax.Array]) -> _Move:
            return self._move(*chain, state.row_maximum, problem)

        chains = (jax.random.split(key, problem.num_chains), state.position, state.log_density)
        # A vectorised loop runs until its slowest chain has decided; on a CPU one chain after the other is faster.
        moves = jax.lax.map(move, chains) if jax.default_backend() == "cpu" else jax.vmap(move)(chains)
        info = SamplingInfo(
            position=moves.position,
            log_density=moves.log_density,
            acceptance_rate=moves.is_accepted.astype(moves.log_density.dtype),
            diverging=~moves.is_possible,
            num_steps=moves.num_rows,
            num_evaluations=2 * jnp.sum(moves.num_rows, dtype=jnp.int64),
            status=jnp.asarray(Status.OK.value, jnp.int32),
        )
        return state._replace(position=moves.position, log_density=moves.log_density), info

    def describe(self, info: SamplingInfo) -> str:
        """The progress bar shows what decides about the speed."""
        return f"{info.num_steps.mean():.4g} rows a step, {100 * info.acceptance_rate.mean():.0f} % accepted"

    def _move(
        self, key: Key, position: Position, log_density: jax.Array, row_maximum: jax.Array, problem: SubsamplingProblem
    ) -> _Move:
        propose_key, accept_key, order_key = jax.random.split(key, 3)
        model, size = problem.model, problem.data.size
        proposal, log_ratio = self.proposal.propose(propose_key, position, model)
        log_uniform = -jax.random.exponential(accept_key, dtype=log_density.dtype)
        bound = jnp.zeros_like(log_density)
        if self.uses_model_bound and model.change_bound is not None:
            bound = model.change_bound.bound(row_maximum, position, proposal)
        threshold = acceptance_threshold(model, position, proposal, log_ratio, log_uniform, size)
        decision = decide(order_key, self.test, model, problem.data, position, proposal, threshold, bound)
        kept = jax.tree.map(lambda new, old: jnp.where(decision.is_accepted, new, old), proposal, position)
        has_seen = decision.num_rows > 0
        estimate = model.log_prior(kept) + size * decision.total / jnp.maximum(decision.num_rows, 1)
        return _Move(
            position=kept,
            log_density=jnp.where(has_seen, estimate, log_density),
            is_accepted=decision.is_accepted,
            is_possible=decision.is_possible,
            num_rows=decision.num_rows,
        )

    def _first_rows(self, problem: SubsamplingProblem) -> int:
        return min(self.test.block_width, problem.data.size)


class _Move(NamedTuple):
    position: Position
    log_density: jax.Array
    is_accepted: jax.Array
    is_possible: jax.Array
    num_rows: jax.Array


def acceptance_threshold(
    model: Model,
    position: Position,
    proposal: Position,
    log_ratio: jax.Array,
    log_uniform: jax.Array,
    size: int,
) -> jax.Array:
    """What the mean change over all rows must exceed: everything in the acceptance rule that needs no row.

    +inf if the proposal has no prior density or could not have come back.
    """
    log_prior_change = finite_or_impossible(model.log_prior(proposal)) - model.log_prior(position)
    return (log_uniform - finite_or_impossible(log_prior_change + log_ratio)) / size
