"""Rows without weight make room for rows that are missed.

Non-negative least squares leave some rows of a coreset at weight zero, while the draws of the coreset posterior say
what is missing: with the residual r_j = T_j - (L w)_j over a window, the slope of the objective along the weight of
any row n of the data is minus its covariance with r,

    - d/dw_n |L w - T|^2 / (2 J) = mean_j  l_n(theta_j) r_j   (l_n centred over draws).

Rows with a large positive covariance would bring the objective down. They are drawn by its square over the standard
deviation of l_n, which favours rows that explain much of the residual over the many that explain a little by chance,
and take the places of rows at zero. The coreset posterior does not change until the next solve. (Greedy constructions,
Hilbert coresets and sparse VI, choose one row at a time by the same slope; here it mends what random rows have missed,
such as the one outcome of a small group.)
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.data.array import ArrayData
from coreset_mcmc.data.shuffle import without_replacement
from coreset_mcmc.methods.least_squares.equations import Window, along, relative_change, solve
from coreset_mcmc.methods.least_squares.row_sampling import sample_rows
from coreset_mcmc.methods.least_squares.state import LeastSquaresState, Phase, Stepped, nothing_learned
from coreset_mcmc.methods.sums import centred, log_likelihood_matrix
from coreset_mcmc.posterior.problem import Problem

NUM_EXCHANGE_DRAWS = 128
"""Draws behind the covariances; each costs a pass over the candidates."""

MOST_CANDIDATES = 131_072
"""Rows that are looked at; uniform ones if there are more."""

MOST_EXCHANGED = 0.25
"""Of the rows of a coreset, at once."""


def exchange_step(key: Key, state: LeastSquaresState, problem: Problem, is_second: jax.Array) -> Stepped:
    """A step of training: rows without weight make room for rows that the best window misses, and a solve weighs them.

    ``is_second`` (J,) marks the draws of the window that may come from another posterior than the rest.
    """
    made = exchange_rows(key, problem, state.best_weights, state.best_window, state.best_draws, is_second)
    solved = solve(made.window, state.best_weights, state.damping)
    moved = state._replace(
        phase=jnp.asarray(Phase.ROUNDS, jnp.int32),
        indices=made.indices,
        rows=made.rows,
        weights=solved.weights,
        best_window=made.window,
        damping=solved.ridge,
    )
    info = nothing_learned(moved, jnp.asarray(jnp.nan), jnp.asarray(made.num_evaluations, jnp.int64))
    return moved, info._replace(weight_change=relative_change(moved.weights, state.best_weights))


class Exchanged(NamedTuple):
    """A coreset of the same size, and the window as its rows see it."""

    indices: jax.Array
    rows: Batch
    window: Window
    num_evaluations: int


def exchange_rows(
    key: Key, problem: Problem, weights: jax.Array, window: Window, positions: Position, is_second: jax.Array
) -> Exchanged:
    """Replace rows of weight zero.

    ``positions`` (J, ...) are the draws behind the window. They may come from two posteriors, those with ``is_second``
    (J,) from the second, so both sides of the equations are centred within each.
    """
    window = Window(*(centred_within(is_second, side, window) for side in window))
    candidate_key, sample_key = jax.random.split(key)
    num_draws, size = window.totals.shape[0], problem.data.size
    num_candidates = min(size, MOST_CANDIDATES)
    candidates = jnp.arange(size)
    if size > num_candidates:
        candidates = without_replacement(candidate_key, size, num_candidates)
    places = jnp.linspace(0, num_draws - 1, min(num_draws, NUM_EXCHANGE_DRAWS)).astype(jnp.int32)
    some = jax.tree.map(lambda leaf: leaf[places], positions)
    residual = (window.totals - window.values @ weights)[places]

    def score(batch: Batch) -> jax.Array:
        values = centred(log_likelihood_matrix(problem.model, some, batch))
        covariance = jnp.maximum(residual @ values / residual.size, 0.0)
        return covariance**2 / jnp.sqrt(jnp.mean(values**2, axis=0))

    looked_at = problem.data if size == num_candidates else ArrayData(problem.data.take(candidates))
    count = min(max(int(MOST_EXCHANGED * problem.coreset_size), 1), num_candidates)
    (sample,) = sample_rows(sample_key, [looked_at.map_over_rows(score)], [count])
    wanted = candidates[sample.indices].astype(problem.indices.dtype)
    proposed = _replaced(problem.indices, weights == 0, wanted)
    values = log_likelihood_matrix(problem.model, positions, problem.data.take(proposed))
    values = centred_within(is_second, values, window)
    is_good = jnp.all(jnp.isfinite(values), axis=0) & (proposed != problem.indices)
    indices = jnp.where(is_good, proposed, problem.indices)
    return Exchanged(
        indices=indices,
        rows=problem.data.take(indices),
        window=Window(jnp.where(is_good, values, window.values), window.totals),
        num_evaluations=residual.size * num_candidates + values.size,
    )


def centred_within(is_second: jax.Array, side: jax.Array, window: Window) -> jax.Array:
    """One side of the equations, (J,) or (J, M), centred within each kind; equations 0 w = 0 stay as they are."""
    says_something = jnp.any(window.values != 0, axis=1)
    groups = jnp.stack([says_something & ~is_second, says_something & is_second]).astype(side.dtype)
    means = groups @ side / along(jnp.maximum(jnp.sum(groups, axis=1), 1.0), side)
    whole = side - jnp.tensordot(groups.T, means, axes=1)
    return jnp.where(along(says_something, side), whole, 0.0)


def _replaced(indices: jax.Array, is_idle: jax.Array, wanted: jax.Array) -> jax.Array:
    """The wanted rows that are not there yet, in the places of idle ones, as far as there are such."""
    is_new = ~jnp.isin(wanted, indices)
    new_first = wanted[jnp.argsort(~is_new)]
    is_free = is_idle & ~jnp.isin(indices, wanted)
    rank = jnp.cumsum(is_free) - 1
    is_replaced = is_free & (rank < jnp.sum(is_new))
    return jnp.where(is_replaced, new_first[jnp.clip(rank, 0, wanted.size - 1)], indices)
