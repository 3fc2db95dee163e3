"""QNC that ends when its own estimate no longer falls.

Each iteration estimates the KL of the weights it begins with, from draws that may not have caught up with them. So
nothing ends before ``num_at_least`` iterations, and the smallest estimate is not taken for the best weights: it may be
that of a chain that hardly moved.
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
"""Iterations without a fall after which there is nothing to wait for."""
FALL = 0.9


class PatientState(NamedTuple):
    """Where the search is, and when its estimate fell last."""

    now: QuasiNewtonState
    last_fall: jax.Array
    """The estimate at the last clear fall, which the next one has to undercut."""
    fell_at: jax.Array
    """The iteration of that."""
    done: jax.Array


@pytree
@dataclass(frozen=True)
class PatientQuasiNewton(QuasiNewton):
    """As many iterations as help, from ``num_at_least`` to ``num_iterations``."""

    num_at_least: int = 50

    def init(self, key: Key, problem: Problem) -> Any:
        now = QuasiNewton.init(self, key, problem)
        return PatientState(now, jnp.full((), jnp.inf, now.weights.dtype), now.iteration, now.done)

    def step(self, key: Key, state: Any, problem: Problem) -> tuple[Any, QuasiNewtonInfo]:
        now, info = QuasiNewton.step(self, key, state.now, problem)
        has_fallen = info.kl_estimate < FALL * state.last_fall
        last_fall = jnp.where(has_fallen, info.kl_estimate, state.last_fall)
        fell_at = jnp.where(has_fallen, now.iteration, state.fell_at)
        is_over = (now.iteration >= self.num_at_least) & (now.iteration - fell_at >= PATIENCE)
        return PatientState(now, last_fall, fell_at, now.done | is_over), info

    def finish(self, state: Any, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        return QuasiNewton.finish(self, state.now, problem, kernel=kernel, num_chains=num_chains)
