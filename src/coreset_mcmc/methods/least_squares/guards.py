"""Rows that bound the support come into the coreset and stay there.

A draw of the coreset posterior that some row of the data forbids says that the coreset posterior reaches beyond the
support of the full one: no weights of the rows at hand can mend that, only the row that forbids it. Such a row is found
on the line from a draw that all rows allow (:mod:`coreset_mcmc.posterior.support`), takes the place of the row with the
least weight, and is a *guard* from then on: its weight never falls to zero, for at weight zero a row forbids nothing. A
millionth of a row is as good an edge as a whole one, and changes nothing else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.trees import num_positions
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.methods.least_squares.equations import Window, centred_over, values_at, without_nonfinite
from coreset_mcmc.methods.least_squares.judgement import FIRST_DAMPING
from coreset_mcmc.methods.least_squares.state import LeastSquaresState, known_expansion
from coreset_mcmc.posterior.problem import Problem
from coreset_mcmc.posterior.support import NUM_LINES, NUM_PASSES, NUM_POINTS, bounding_rows

LEAST_WEIGHT = 1e-6

MOST_GUARDS = 0.5
"""Of the rows of a coreset."""


class Guarded(NamedTuple):
    """A state whose coreset forbids what it did not forbid before, and what it took to find the rows."""

    state: LeastSquaresState
    num_evaluations: int


def kept_above_zero(weights: np.ndarray, is_guard: np.ndarray) -> np.ndarray:
    """Weights with those of guards at least at their least."""
    return np.where(is_guard, np.maximum(weights, LEAST_WEIGHT), weights)


def guarded(state: LeastSquaresState, problem: Problem, positions: Position, is_possible: np.ndarray) -> Guarded | None:
    """The state with guards against the draws (J, ...) that are not possible; None if there are none to be had.

    ``is_possible`` (J,) marks the draws that all rows allow. If there are none, the starts are: they have been tried.
    """
    if np.sum(state.is_guard) >= max(MOST_GUARDS * problem.coreset_size, 1):
        return None
    allowed = _at(positions, is_possible) if is_possible.any() else problem.initial_positions
    found = bounding_rows(problem.passes, problem.model, allowed, _at(positions, ~is_possible))
    num_evaluations = NUM_PASSES * NUM_LINES * NUM_POINTS * problem.data.size
    new = [bound.row for bound in found if not _guards_already(state, bound.row)]
    if not new:
        return None
    indices, is_guard, weights = _with_rows(state, np.asarray(new, np.int64))
    rows = _taken(problem, state, indices)
    own = replace(problem, indices=indices, rows=rows)
    moved = state._replace(
        indices=indices,
        rows=rows,
        is_guard=is_guard,
        is_whole=state.is_whole & (indices == state.indices),
        weights=weights,
        best_weights=weights,
        best_slope=state.slope,
        best_estimate=np.asarray(np.inf),
        best_window=_window_of(state, own),
        best_positions=_starts(allowed, num_positions(state.best_positions)),
        damping=np.asarray(FIRST_DAMPING),
        num_poor=np.zeros((), np.int32),
    )
    return Guarded(moved, num_evaluations)


def _at(positions: Position, is_chosen: np.ndarray) -> Position:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[is_chosen], positions)


def _guards_already(state: LeastSquaresState, row: int) -> bool:
    """Whether a row stands guard, or has had weight all along: then it is not what the coreset lacks."""
    return bool(np.any((state.indices == row) & (state.weights > 0)))


def _with_rows(state: LeastSquaresState, new: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Row numbers, guards and weights once these rows have taken the places of those with the least weight.

    A row that is there already, at weight zero, stays in its place.
    """
    indices, is_guard, weights = state.indices.copy(), state.is_guard.copy(), np.array(state.weights)
    for row in new:
        there = np.flatnonzero(indices == row)
        order = np.lexsort((weights, is_guard))
        place = there[0] if len(there) else order[0]
        indices[place], is_guard[place] = row, True
    return indices, is_guard, kept_above_zero(weights, is_guard)


def _taken(problem: Problem, state: LeastSquaresState, indices: np.ndarray) -> Batch:
    """The rows at these numbers; only those that are new are read."""
    is_new = indices != state.indices
    read = problem.passes.take(indices[is_new])

    def mixed(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        result = np.array(old)
        result[is_new] = new
        return result

    return jax.tree.map(mixed, state.rows, read)


def _window_of(state: LeastSquaresState, problem: Problem) -> Window:
    """The equations of the best draws as the new rows see them; those that said nothing say nothing still."""
    says_something = np.any(state.best_window.values != 0, axis=1)
    values = values_at(problem.model, state.best_draws, problem.rows, known_expansion(state))
    is_usable = says_something & np.all(np.isfinite(values), axis=1)
    totals = np.where(is_usable, state.best_window.totals, np.nan)
    return without_nonfinite(Window(*(centred_over(is_usable, side) for side in (values, totals))))


def _starts(allowed: Position, count: int) -> Position:
    """Where chains go on: evenly spaced among positions that all rows allow."""
    places = np.linspace(0, num_positions(allowed) - 1, count).astype(int)
    return jax.tree.map(lambda leaf: np.asarray(leaf)[places], allowed)
