"""Exact draws of the full posterior with a coreset posterior as first stage (Christen and Fox 2005).

A kernel that is reversible for pi_w proposes: it takes ``num_inner`` steps, which touch coreset rows only. The proposal
is then accepted with probability

    min(1, exp(R(theta') - R(theta))),      R(theta) = sum_n l_n(theta) - sum_m w_m l_m(theta),

in which everything about the kernel has cancelled, because it is reversible (the surrogate transitions of Liu 2001).
The chain has the full posterior as its law whatever the weights are; a good coreset makes nearly every proposal pass, a
poor one is rejected often, and the acceptance rate says which. A draw of each chain costs two passes over the rows.

Differences of log-likelihoods are formed row by row before they are summed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Batch, Key, Position, pytree, static
from coreset_mcmc.data.inside import DataSource
from coreset_mcmc.kernels.base import Kernel, init_chains, step_chains
from coreset_mcmc.methods.contract import Sampler
from coreset_mcmc.methods.sampling import SamplingInfo
from coreset_mcmc.methods.sums import log_likelihood_matrix
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.target import CoresetTarget, finite_or_impossible


@pytree
@dataclass(frozen=True)
class ExactProblem:
    """All rows, the coreset posterior that proposes, and where each chain starts."""

    data: DataSource
    target: CoresetTarget
    initial_positions: Position


class DelayedAcceptanceState(NamedTuple):
    """Where the chains are."""

    position: Position
    log_density: jax.Array
    """(K,), of the coreset posterior."""
    done: jax.Array


@pytree
@dataclass(frozen=True)
class DelayedAcceptance(Sampler):
    """One step is ``num_inner`` steps of the kernel on the coreset and one decision on all rows.

    Args:
        kernel: reversible for the coreset posterior, e.g. slice sampling along random directions or HMC.
        num_inner: steps of the kernel between decisions.
    """

    kernel: Kernel
    num_inner: int = static(default=5)

    name = "delayed-acceptance"

    def init(self, key: Key, problem: ExactProblem) -> DelayedAcceptanceState:
        del key
        log_density = jax.vmap(problem.target.log_density)(problem.initial_positions)
        return DelayedAcceptanceState(problem.initial_positions, log_density, jnp.array(False))

    def init_evaluations(self, problem: ExactProblem) -> int:
        return _num_chains(problem.initial_positions) * int(problem.target.weights.shape[0])

    def step(
        self, key: Key, state: DelayedAcceptanceState, problem: ExactProblem
    ) -> tuple[DelayedAcceptanceState, SamplingInfo]:
        move_key, accept_key = jax.random.split(key)
        num_chains = _num_chains(state.position)

        def inner(carry: Any, step_key: Key) -> tuple[Any, Any]:
            return step_chains(self.kernel, step_key, carry, problem.target)

        chains = init_chains(self.kernel, state.position, problem.target)
        chains, infos = jax.lax.scan(inner, chains, jax.random.split(move_key, self.num_inner))
        gain = full_minus_coreset(problem.target.model, problem.data, problem.target, chains.position, state.position)
        is_accepted = jnp.log(jax.random.uniform(accept_key, (num_chains,))) < finite_or_impossible(gain)

        def choose(new: jax.Array, old: jax.Array) -> jax.Array:
            return jnp.where(is_accepted.reshape(-1, *[1] * (new.ndim - 1)), new, old)

        position = jax.tree.map(choose, chains.position, state.position)
        proposed = jax.vmap(problem.target.log_density)(chains.position)
        log_density = jnp.where(is_accepted, proposed, state.log_density)
        num_kernel = jnp.sum(infos.num_evaluations, axis=0)
        rows = problem.target.weights.shape[0]
        num_evaluations = rows * (jnp.sum(num_kernel, dtype=jnp.int64) + 4 * num_chains)
        info = SamplingInfo(
            position=position,
            log_density=log_density,
            acceptance_rate=jnp.exp(jnp.minimum(finite_or_impossible(gain), 0.0)),
            diverging=jnp.any(infos.diverging, axis=0),
            num_steps=num_kernel,
            num_evaluations=num_evaluations + 2 * num_chains * problem.data.size,
            status=jnp.asarray(Status.OK.value, jnp.int32),
        )
        return DelayedAcceptanceState(position, log_density, state.done), info

    def describe(self, info: SamplingInfo) -> str:
        return f"{100 * float(info.acceptance_rate.mean()):.0f} % accepted on all rows"


def full_minus_coreset(
    model: Model, data: DataSource, target: CoresetTarget, new: Position, old: Position
) -> jax.Array:
    """R(new_k) - R(old_k) for each of K pairs of positions; two passes over the rows for each."""

    def differences(batch: Batch) -> jax.Array:
        return log_likelihood_matrix(model, new, batch) - log_likelihood_matrix(model, old, batch)

    full = data.sum_over_rows(lambda batch: jnp.sum(differences(batch), axis=1))
    weighted = jnp.where(target.weights != 0, target.weights * differences(target.rows), 0.0)
    result: jax.Array = full - jnp.sum(weighted, axis=1)
    return result


def _num_chains(positions: Position) -> int:
    return int(jax.tree.leaves(positions)[0].shape[0])
