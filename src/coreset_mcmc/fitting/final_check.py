"""The estimated KL of the final weights, from draws that training has not seen."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.core.types import Position
from coreset_mcmc.driver.cost import Cost
from coreset_mcmc.methods.contract import Trained
from coreset_mcmc.methods.law import Law
from coreset_mcmc.methods.sums import half_variances
from coreset_mcmc.posterior.problem import Problem, make_problem

FEWEST_DRAWS, MOST_DRAWS, EVALUATIONS = 25, 200, 50_000_000
"""Draws in the estimate; each costs one pass over the data, so there are fewer with very many rows."""

_half_variances = jax.jit(half_variances)


class Check(NamedTuple):
    """The estimate in nats, NaN where draws are not those of a coreset posterior, and what it took."""

    kl_estimate: float
    cost: Cost


def check_coreset(problem: Problem, trained: Trained, draws: Position) -> Check:
    """Half the variance of the difference of log-likelihoods over draws (draw, chain, ...) of the coreset."""
    if trained.law is not Law.CORESET or trained.coreset is None:
        return Check(float("nan"), Cost.of())
    began = time.perf_counter()
    num_draws = _num_draws(problem)

    def spread(leaf: np.ndarray) -> jax.Array:
        """Evenly spaced draws, chain after chain; repeated if there are too few, so that the shape never changes."""
        kept = leaf.reshape(-1, *leaf.shape[2:])
        return jnp.asarray(kept[np.linspace(0, len(kept) - 1, num_draws).astype(int)])

    final = make_problem(problem.model, problem.data, trained.coreset, problem.initial_positions)
    estimate = float(_half_variances(final, jax.tree.map(spread, draws), final.initial_weights[None, :])[0])
    num_evaluations = num_draws * (final.data.size + final.coreset_size)
    return Check(estimate, Cost(time.perf_counter() - began, 0.0, num_draws, num_evaluations, "total reached"))


@double_precision
def trace_check(problem: Problem) -> Callable[[], None]:
    """Trace the check of a coreset as large as the problem's; returns what compiles it, in any thread."""
    num_draws = _num_draws(problem)
    starts = problem.initial_positions
    draws = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((num_draws, *leaf.shape[1:]), leaf.dtype), starts)
    weights = jax.ShapeDtypeStruct((1, problem.coreset_size), problem.initial_weights.dtype)
    traced = _half_variances.trace(problem, draws, weights)

    @double_precision
    def compile_it() -> None:
        traced.lower().compile()

    return compile_it


def _num_draws(problem: Problem) -> int:
    return int(np.clip(EVALUATIONS // problem.data.size, FEWEST_DRAWS, MOST_DRAWS))
