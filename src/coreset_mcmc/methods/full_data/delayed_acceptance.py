"""Exact draws of the full posterior with a coreset posterior as first stage (Christen and Fox 2005).

A kernel that is reversible for pi_w proposes: it takes ``num_inner`` steps, which touch coreset rows only. The proposal
is then accepted with probability

    min(1, exp(R(theta') - R(theta))),      R(theta) = sum_n l_n(theta) - sum_m w_m l_m(theta),

in which everything about the kernel has cancelled, because it is reversible (the surrogate transitions of Liu 2001).
The chain has the full posterior as its law whatever the weights are; a good coreset makes nearly every proposal pass, a
poor one is rejected often, and the acceptance rate says which. The proposals of all chains share one pass over the
rows, wherever those are, so a step runs on the host: a compiled program proposes, a pass decides.

From each row's log-likelihood its value at a fixed reference, the start of the first chain, is taken away before rows
are summed.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.status import Status
from coreset_mcmc.core.trees import first_position, num_positions
from coreset_mcmc.core.types import Batch, Key, Position, pytree, static
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.kernels.base import Kernel, init_chains, step_chains
from coreset_mcmc.methods.contract import Sampler
from coreset_mcmc.methods.sampling import SamplingInfo
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.target import CoresetTarget

DESCRIPTION = "deciding on all rows"


@dataclass(frozen=True)
class ExactProblem:
    """All rows, the coreset posterior that proposes, and where each chain starts."""

    data: Rows
    target: CoresetTarget
    initial_positions: Position

    @cached_property
    def reference(self) -> Position:
        return first_position(jax.tree.map(np.asarray, self.initial_positions))


class DelayedAcceptanceState(NamedTuple):
    """Where the chains are."""

    position: Position
    log_density: np.ndarray
    """(K,), of the coreset posterior."""
    excess: np.ndarray
    """(K,): R there, less that of the reference."""
    done: np.ndarray


class Proposals(NamedTuple):
    """Where the kernel has taken the chains, and how."""

    position: Position
    log_density: jax.Array
    on_coreset: jax.Array
    """(K,): sum_m w_m l_m there, less that of the reference."""
    diverging: jax.Array
    num_steps: jax.Array
    log_uniform: jax.Array
    """(K,): what decides."""


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
    on_host = True

    def init(self, key: Key, problem: ExactProblem) -> DelayedAcceptanceState:
        del key
        log_density, on_coreset = _at_start(problem.target, problem.initial_positions, problem.reference)
        on_all_rows = summed_over_rows(problem, problem.initial_positions)
        return DelayedAcceptanceState(
            jax.tree.map(np.asarray, problem.initial_positions),
            np.asarray(log_density),
            _less(on_all_rows, on_coreset),
            np.array(False),
        )

    def blank_info(self, problem: ExactProblem) -> SamplingInfo:
        numbers: Any = np.zeros(num_positions(problem.initial_positions))
        return SamplingInfo(
            position=jax.tree.map(np.asarray, problem.initial_positions),
            log_density=numbers,
            acceptance_rate=numbers,
            diverging=numbers.astype(bool),
            num_steps=numbers.astype(np.int32),
            num_evaluations=np.zeros((), np.int64),  # type: ignore[arg-type]
            status=np.zeros((), np.int32),  # type: ignore[arg-type]
        )

    def init_evaluations(self, problem: ExactProblem) -> int:
        num_chains, num_coreset_rows = num_positions(problem.initial_positions), _num_rows(problem.target)
        return num_chains * num_coreset_rows + (num_chains + 1) * (num_coreset_rows + problem.data.size)

    def step(
        self, key: Key, state: DelayedAcceptanceState, problem: ExactProblem
    ) -> tuple[DelayedAcceptanceState, SamplingInfo]:
        proposed = jax.device_get(
            _propose(self.kernel, self.num_inner, key, state.position, problem.target, problem.reference)
        )
        excess = _less(summed_over_rows(problem, proposed.position), proposed.on_coreset)
        gain = _less(excess, state.excess)
        gain = np.where(gain < np.inf, gain, -np.inf)
        is_accepted = proposed.log_uniform < gain

        def choose(new: Any, old: Any) -> Any:
            return np.where(is_accepted.reshape(-1, *[1] * (np.ndim(new) - 1)), new, old)

        position = jax.tree.map(choose, proposed.position, state.position)
        log_density = choose(proposed.log_density, state.log_density)
        num_chains, num_coreset_rows = len(gain), _num_rows(problem.target)
        num_on_coreset = int(np.sum(proposed.num_steps)) + 2 * num_chains + 1
        num_evaluations: Any = np.int64(num_coreset_rows * num_on_coreset + (num_chains + 1) * problem.data.size)
        acceptance_rate: Any = np.exp(np.minimum(gain, 0.0))
        status: Any = np.int32(Status.OK.value)
        info = SamplingInfo(
            position=position,
            log_density=log_density,
            acceptance_rate=acceptance_rate,
            diverging=proposed.diverging,
            num_steps=proposed.num_steps,
            num_evaluations=num_evaluations,
            status=status,
        )
        return DelayedAcceptanceState(position, log_density, choose(excess, state.excess), state.done), info

    def describe(self, info: SamplingInfo) -> str:
        return f"{100 * float(info.acceptance_rate.mean()):.0f} % accepted on all rows"


@partial(jax.jit, static_argnums=1)
def _propose(
    kernel: Kernel, num_inner: int, key: Key, positions: Position, target: CoresetTarget, reference: Position
) -> Proposals:
    move_key, accept_key = jax.random.split(key)

    def inner(carry: Any, step_key: Key) -> tuple[Any, Any]:
        return step_chains(kernel, step_key, carry, target)

    chains = init_chains(kernel, positions, target)
    chains, infos = jax.lax.scan(inner, chains, jax.random.split(move_key, num_inner))
    return Proposals(
        position=chains.position,
        log_density=chains.log_density,
        on_coreset=_on_coreset(target, chains.position, reference),
        diverging=jnp.any(infos.diverging, axis=0),
        num_steps=jnp.sum(infos.num_evaluations, axis=0),
        log_uniform=jnp.log(jax.random.uniform(accept_key, (num_positions(positions),))),
    )


@jax.jit
def _at_start(target: CoresetTarget, positions: Position, reference: Position) -> tuple[jax.Array, jax.Array]:
    """Log-densities of the coreset posterior, and sums over the coreset's rows as in :class:`Proposals`."""
    return jax.vmap(target.log_density)(positions), _on_coreset(target, positions, reference)


def _on_coreset(target: CoresetTarget, positions: Position, reference: Position) -> jax.Array:
    """What stands in for the sums over all rows, up to a constant: rows of the coreset, and its Gaussian term."""
    sums = _Differences(target.model)(target.rows, target.weights, positions, reference)
    return sums if target.term is None else sums + jax.vmap(target.term.log_density)(positions)


@dataclass(frozen=True)
class _Differences:
    """sum_n w_n (l_n(theta_k) - l_n(reference)) of a block for each of K positions, which are few.

    A row under which the reference is impossible enters as it is: that adds the same to all positions.
    """

    model: Model

    def __call__(self, batch: Batch, weights: jax.Array, positions: Position, reference: Position) -> jax.Array:
        at_reference = self.model.log_likelihood(reference, batch)
        at_reference = jnp.where(jnp.isfinite(at_reference), at_reference, 0.0)
        values = jax.vmap(lambda position: self.model.log_likelihood(position, batch))(positions) - at_reference
        return jnp.where(weights != 0, values, 0.0) @ weights


def summed_over_rows(problem: ExactProblem, positions: Position) -> np.ndarray:
    """sum_n l_n(theta_k), less that of the reference, for each of K positions: one pass over the rows."""
    model = problem.target.model
    result: np.ndarray = problem.data.sum(
        _Differences(model.compiled or model),
        jax.tree.map(np.asarray, positions),
        problem.reference,
        description=DESCRIPTION,
    )
    return result


def _less(one: Any, other: Any) -> np.ndarray:
    with np.errstate(invalid="ignore"):
        result: np.ndarray = np.asarray(one) - np.asarray(other)
    return result


def _num_rows(target: CoresetTarget) -> int:
    return int(target.weights.shape[0])
