"""QNC that ends when its own estimate no longer falls, and keeps the weights for which that was smallest.

Each iteration estimates the KL of the weights it begins with. Once no estimate has been a tenth below the smallest for
:data:`PATIENCE` iterations there is nothing to wait for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Key, pytree
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.methods import QuasiNewton
from coreset_mcmc.methods.contract import Trained
from coreset_mcmc.methods.other_coresets.quasi_newton import QuasiNewtonInfo, QuasiNewtonState
from coreset_mcmc.posterior.problem import Problem

PATIENCE = 20
"""Iterations."""
FALL = 0.9


class PatientState(NamedTuple):
    """Where the search is, and the best it has seen."""

    now: QuasiNewtonState
    weights: jax.Array
    """Those of the smallest estimate."""
    smallest: jax.Array
    last_fall: jax.Array
    """The estimate at the last clear fall, which the next one has to undercut."""
    fell_at: jax.Array
    """The iteration of that."""
    done: jax.Array


@pytree
@dataclass(frozen=True)
class PatientQuasiNewton(QuasiNewton):
    """As many iterations as help, up to ``num_iterations``."""

    def init(self, key: Key, problem: Problem) -> Any:
        now = QuasiNewton.init(self, key, problem)
        endless = jnp.full((), jnp.inf, now.weights.dtype)
        return PatientState(now, now.weights, endless, endless, now.iteration, now.done)

    def step(self, key: Key, state: Any, problem: Problem) -> tuple[Any, QuasiNewtonInfo]:
        now, info = QuasiNewton.step(self, key, state.now, problem)
        is_smallest = info.kl_estimate < state.smallest
        has_fallen = info.kl_estimate < FALL * state.last_fall
        fell_at = jnp.where(has_fallen, now.iteration, state.fell_at)
        made = PatientState(
            now,
            jnp.where(is_smallest, state.now.weights, state.weights),
            jnp.where(is_smallest, info.kl_estimate, state.smallest),
            jnp.where(has_fallen, info.kl_estimate, state.last_fall),
            fell_at,
            now.done | (now.iteration - fell_at >= PATIENCE),
        )
        return made, info

    def finish(self, state: Any, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        best = state.now._replace(weights=state.weights)
        return QuasiNewton.finish(self, best, problem, kernel=kernel, num_chains=num_chains)
