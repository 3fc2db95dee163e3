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

Beside a Gaussian term rows stand for remainders, of which none is large beside the others, and the draws of one window
are as good as those of the next, for all posteriors that are tried are close to the Gaussian. There the rows with the
largest correlation come in, several times for the same window. In between a rough solve is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.randomness import generator_of
from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.data.one_pass_sample import places_by_score
from coreset_mcmc.data.rows import Resident
from coreset_mcmc.methods.least_squares.equations import (
    Window,
    along,
    relative_change,
    row_values,
    solve,
    values_at,
)
from coreset_mcmc.methods.least_squares.expansion import Expansion
from coreset_mcmc.methods.least_squares.guards import kept_above_zero
from coreset_mcmc.methods.least_squares.slope import Directions, directions_of, slope_beside
from coreset_mcmc.methods.least_squares.state import (
    LeastSquaresState,
    Phase,
    Stepped,
    curvature_of,
    in_phase,
    known_expansion,
    nothing_learned,
    with_known,
)
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.problem import Problem

NUM_EXCHANGE_DRAWS = 128
"""Draws behind the covariances; each costs an evaluation of every candidate.

Candidates are the rows of the resident sample: all rows if they are few; beside a Gaussian term those of the sample
behind control variates.
"""

NUM_CORRELATED_DRAWS, MOST_CANDIDATES, MOST_REPEATS = 512, 16_384, 4
"""Beside a Gaussian term: draws behind the correlations, rows that are looked at, and how often rows are exchanged for
one window.
"""

MOST_EXCHANGED = 0.25
"""Of the rows of a coreset, at once."""


@dataclass(frozen=True)
class _Missed:
    """The score (B,) of rows of a block, given draws, what the window leaves there and the centre of expansions."""

    model: Model

    def __call__(
        self, batch: Batch, weights: jax.Array, draws: Position, residual: jax.Array, centre: jax.Array | None
    ) -> jax.Array:
        del weights
        values = row_values(self.model, centre, draws, batch)
        covariance = jnp.maximum(residual @ values / residual.size, 0.0)
        spread = jnp.sqrt(jnp.mean(values**2, axis=0))
        return covariance**2 / spread if centre is None else jnp.where(spread == 0, 0.0, covariance / spread)


def exchange_step(key: Key, state: LeastSquaresState, problem: Problem, is_second: np.ndarray) -> Stepped:
    """A step of training: rows without weight make room for rows that the best window misses, and a solve weighs them.

    Training may come back to the best weights, so their rows stay. Weights that no round has judged are no such thing:
    the solve takes their place. ``is_second`` (J,) marks the draws of the window that may come from another posterior
    than the rest.
    """
    is_judged, expansion = bool(np.isfinite(state.best_estimate)), known_expansion(state)
    directions = directions_of(expansion, state.best_draws) if is_judged else None
    num_evaluations, moved = 0, state._replace(weights=state.best_weights)

    def solved(moved: LeastSquaresState, *, is_rough: bool) -> LeastSquaresState:
        """With weights for its rows."""
        window = moved.best_window if directions is None else directions.without(moved.best_window)
        curvature = curvature_of(moved, replace(problem, indices=moved.indices, rows=moved.rows), is_rough=is_rough)
        made = solve(window, moved.weights, float(state.damping), curvature)
        weights = kept_above_zero(made.weights, state.is_guard)
        return with_known(moved, made.known)._replace(
            weights=weights,
            slope=slope_beside(weights, moved.best_window, directions, state.slope),
            best_weights=state.best_weights if is_judged else weights,
            damping=np.asarray(made.ridge),
        )

    for _ in range(MOST_REPEATS if expansion is not None else 1):
        made = exchange_rows(
            key,
            replace(problem, indices=moved.indices, rows=moved.rows),
            moved.weights,
            moved.best_window,
            state.best_draws,
            is_second,
            is_kept=moved.best_weights != 0,
            directions=directions,
            expansion=expansion,
            candidates=candidates_for(state, problem),
        )
        num_evaluations += made.num_evaluations
        is_same = np.array_equal(made.indices, moved.indices)
        moved = moved._replace(indices=made.indices, rows=made.rows, best_window=made.window)
        moved = solved(moved, is_rough=expansion is not None)
        if is_same or not np.any(moved.weights == 0):
            break
    if expansion is not None:
        moved = solved(moved, is_rough=False)
    moved = in_phase(moved, Phase.ROUNDS)
    info = nothing_learned(moved, np.nan, num_evaluations)
    change = relative_change(moved.weights, state.best_weights)
    return moved, info._replace(weight_change=np.asarray(change))


class Exchanged(NamedTuple):
    """A coreset of the same size, and the window as its rows see it."""

    indices: np.ndarray
    rows: Batch
    window: Window
    num_evaluations: int


def candidates_for(state: LeastSquaresState, problem: Problem) -> Resident:
    """Rows that may come in: beside a Gaussian term those with large remainders, if a sample of them is known.

    Of many only some: correlations with many draws are dear.
    """
    resident = problem.passes.resident
    if known_expansion(state) is None:
        return resident
    if state.taylor is not None:
        resident = Resident(np.asarray(state.taylor.indices), state.taylor.rows)
    count = len(resident.indices)
    places = np.linspace(0, count - 1, min(count, MOST_CANDIDATES)).astype(np.int64)
    return Resident(resident.indices[places], jax.tree.map(lambda leaf: np.asarray(leaf)[places], resident.rows))


def exchange_rows(
    key: Key,
    problem: Problem,
    weights: np.ndarray,
    window: Window,
    positions: Position,
    is_second: np.ndarray,
    *,
    is_kept: np.ndarray | None = None,
    directions: Directions | None = None,
    expansion: Expansion | None = None,
    candidates: Resident | None = None,
) -> Exchanged:
    """Replace rows of weight zero by candidates, which are those of the resident sample by default.

    Rows with ``is_kept`` (M,) stay in any case. What a slope along ``directions`` explains is not missed.
    ``positions`` (J, ...) are the draws behind the window. They may come from two posteriors, those with ``is_second``
    (J,) from the second, so both sides of the equations are centred within each.
    """
    window = Window(*(centred_within(is_second, side, window) for side in window))
    resident, indices = candidates or problem.passes.resident, np.asarray(problem.indices)
    num_draws, num_candidates = window.totals.shape[0], len(resident.indices)
    most = NUM_EXCHANGE_DRAWS if expansion is None else NUM_CORRELATED_DRAWS
    says_something = np.any(window.values != 0, axis=1)
    heard = np.flatnonzero(says_something) if says_something.any() else np.arange(num_draws)
    places = heard[np.linspace(0, len(heard) - 1, min(num_draws, most)).astype(np.int32)]
    some = jax.tree.map(lambda leaf: np.asarray(leaf)[places], positions)
    residual = window.totals - window.values @ weights
    residual = (residual if directions is None else directions.take_from(residual))[places]
    few = problem.passes.weighted(resident.rows, np.ones(num_candidates))
    centre = None if expansion is None else expansion.centre
    found = few.values(_Missed(problem.model), some, residual, centre, description="looking for rows")
    count = min(max(int(MOST_EXCHANGED * problem.coreset_size), 1), num_candidates)
    scores = np.concatenate(list(found))
    scores = np.where(np.isnan(scores), np.inf, scores)  # a row that is impossible somewhere is wanted most
    wanted = np.sort(np.argsort(-scores, kind="stable")[:count])
    if expansion is None:
        wanted = places_by_score(scores, count, seed=int(generator_of(key).integers(2**63)))
    is_idle = weights == 0 if is_kept is None else (weights == 0) & ~is_kept
    source = _replaced(indices, is_idle, resident.indices[wanted], wanted)
    is_new = source >= 0

    def proposed(old: Any, new: Any) -> np.ndarray:
        return np.where(along(is_new, np.asarray(old)), np.asarray(new)[source], np.asarray(old))

    rows = jax.tree.map(proposed, problem.rows, resident.rows)
    values = centred_within(is_second, values_at(problem.model, positions, rows, expansion), window)
    is_good = is_new & np.all(np.isfinite(values), axis=0)  # where the window says something
    return Exchanged(
        indices=np.where(is_good, resident.indices[source], indices),
        rows=jax.tree.map(lambda new, old: np.where(along(is_good, new), new, np.asarray(old)), rows, problem.rows),
        window=Window(np.where(is_good, values, window.values), window.totals),
        num_evaluations=residual.size * num_candidates + values.size,
    )


def centred_within(is_second: np.ndarray, side: np.ndarray, window: Window) -> np.ndarray:
    """One side of the equations, (J,) or (J, M), centred within each kind; equations 0 w = 0 stay as they are."""
    says_something = np.any(window.values != 0, axis=1)
    groups = np.stack([says_something & ~is_second, says_something & is_second]).astype(side.dtype)
    heard = np.where(along(says_something, side), side, 0.0)
    with np.errstate(invalid="ignore"):  # rows that are impossible somewhere are left out afterwards
        means = groups @ heard / along(np.maximum(np.sum(groups, axis=1), 1.0), side)
        whole = heard - np.tensordot(groups.T, means, axes=1)
    return np.where(along(says_something, side), whole, 0.0)


def _replaced(indices: np.ndarray, is_idle: np.ndarray, wanted: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """For each place of the coreset the candidate that takes it, or -1 where the row stays.

    Wanted rows that are not there yet take the places of idle ones, as far as there are such.
    """
    new = candidates[~np.isin(wanted, indices)]
    free = np.flatnonzero(is_idle & ~np.isin(indices, wanted))[: len(new)]
    source = np.full(len(indices), -1, np.int64)
    source[free] = new[: len(free)]
    return source
