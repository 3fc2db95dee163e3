"""Linear equations for the weights, one from each draw.

A draw theta_j gives the equation

    sum_m w_m l_m(theta_j) = sum_n l_n(theta_j),

log-likelihoods of the M coreset rows on the left and the sum over all N rows of the data on the right, both sides
centred over draws. The weights of an exact coreset satisfy it wherever theta_j is. J draws of one coreset posterior,
and their equations L w = T, are a *window*. The sums T cost a pass over the data for each draw, or over a sample of the
rows where control variates are good enough.

Beside a Gaussian term (:mod:`coreset_mcmc.methods.least_squares.expansion`) both sides are what an expansion to second
order leaves of them: remainders of the rows on the left, of the sum on the right. All else is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.compilation import quick_compilation
from coreset_mcmc.core.trees import flat_positions, flattened, num_positions
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.methods.hopeless import hopeless_depth
from coreset_mcmc.methods.least_squares.curvature import RowCurvature, Within, solve_within
from coreset_mcmc.methods.least_squares.expansion import Expansion
from coreset_mcmc.methods.least_squares.nonnegative import NormalEquations, nonnegative_ridge
from coreset_mcmc.methods.least_squares.taylor import EVALUATIONS_PER_REMAINDER, TaylorSums, row_remainders
from coreset_mcmc.methods.sums import centred, log_likelihood_matrix
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.at_positions import summed_differences
from coreset_mcmc.posterior.problem import Problem

MOST_DAMPING = 1e2


class Window(NamedTuple):
    """The equations L w = T of J draws."""

    values: Any
    """L (J, M), centred."""
    totals: Any
    """T (J,), centred."""


class Measured(NamedTuple):
    """A window and what it took."""

    window: Window
    noise: float
    """What the sampling of rows adds to the estimated KL on average; zero for sums over all rows."""
    num_evaluations: int


def row_values(model: Model, centre: jax.Array | None, positions: Position, rows: Batch) -> jax.Array:
    """What rows (B) say at positions (K): log-likelihoods, or what expansions at the centre leave; (K, B), centred."""
    if centre is None:
        return centred(log_likelihood_matrix(model, positions, rows))
    unravel = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], positions))[1]
    return centred(row_remainders(model, unravel, centre, rows, flattened(positions) - centre))


def _values_and_sums(
    model: Model, taylor: TaylorSums, centre: jax.Array | None, positions: Position, rows: Batch
) -> tuple[jax.Array, jax.Array, jax.Array]:
    sums = taylor.sums(model, positions)
    return possible_values(model, centre, positions, rows), sums.total, 0.5 * jnp.mean(sums.variance)


def possible_values(model: Model, centre: jax.Array | None, positions: Position, rows: Batch) -> jax.Array:
    """The same, centred over the positions that all rows allow; NaN at the others."""
    if centre is None:
        values = log_likelihood_matrix(model, positions, rows)
    else:
        unravel = ravel_pytree(jax.tree.map(lambda leaf: leaf[0], positions))[1]
        values = row_remainders(model, unravel, centre, rows, flattened(positions) - centre)
    is_possible = jnp.all(jnp.isfinite(values), axis=1)
    allowed = jnp.where(is_possible[:, None], values, 0.0)
    share = is_possible / jnp.maximum(jnp.sum(is_possible), 1)
    return jnp.where(is_possible[:, None], allowed - share @ allowed, jnp.nan)


def values_at(model: Model, positions: Position, rows: Batch, expansion: Expansion | None = None) -> np.ndarray:
    """:func:`possible_values` of a few rows, compiled and on the host."""
    centre = None if expansion is None else expansion.centre
    return np.asarray(_compiled(possible_values, 0)(model, centre, positions, rows))


@cache
def _compiled(function: Callable[..., Any], *static: int) -> Any:
    """These run once in a round: compiled soon rather than fast."""
    return jax.jit(function, static_argnums=static, compiler_options=quick_compilation(1) or None)


def trace_measure(
    model: Model, taylor: TaylorSums | None, centre: np.ndarray | None, positions: Position, rows: Batch
) -> Any:
    """The program that :func:`measure` needs, traced."""
    if taylor is None:
        return _compiled(possible_values, 0).trace(model, centre, positions, rows)
    return _compiled(_values_and_sums, 0).trace(model, taylor, centre, positions, rows)


def measure(
    problem: Problem,
    taylor: TaylorSums | None,
    expansion: Expansion | None,
    positions: Position,
    tolerated: Callable[[Window], float],
) -> Measured:
    """A window at these positions: sums from a sample if its noise is tolerated, by a pass over all rows otherwise.

    ``tolerated(window)`` is the noise in nats that may stay; without ``taylor`` there is no sample.
    """
    num_draws, num_evaluations, rows = num_positions(positions), 0, problem.roomy(problem.rows)
    for_each_value = 1 if expansion is None else EVALUATIONS_PER_REMAINDER
    known = 0.0 if expansion is None else expansion.quadratic(flat_positions(positions))
    if taylor is None:
        values = values_at(problem.model, positions, rows, expansion)[:, : problem.coreset_size]
    else:
        centre = None if expansion is None else expansion.centre
        made = _compiled(_values_and_sums, 0)(problem.model, taylor, centre, positions, rows)
        values, totals, noise = (np.asarray(part) for part in made)
        values = values[:, : problem.coreset_size]
        window = _centred(values, totals - known)
        num_evaluations = taylor.num_evaluations(num_draws) + values.size * for_each_value
        if noise <= tolerated(window):
            return Measured(window, float(noise), num_evaluations)
    totals = summed_differences(problem.passes, problem.model, positions, "sums over all rows")
    window = _centred(values, totals - known)
    num_evaluations += num_draws * problem.data.size + (values.size * for_each_value if taylor is None else 0)
    return Measured(window, 0.0, num_evaluations)


def _centred(values: np.ndarray, totals: np.ndarray) -> Window:
    """Both sides centred over the draws that all rows allow; NaN on both sides of the others."""
    is_possible = np.isfinite(totals) & np.all(np.isfinite(values), axis=1)
    return Window(values if is_possible.all() else centred_over(is_possible, values), centred_over(is_possible, totals))


def centred_over(is_usable: np.ndarray, side: np.ndarray) -> np.ndarray:
    """One side of the equations, (J,) or (J, M), centred over some of them; NaN in the others."""
    mask = along(is_usable, side)
    mean = np.sum(np.where(mask, side, 0.0), axis=0) / max(int(is_usable.sum()), 1)
    return np.where(mask, side - mean, np.nan)


def half_variance(window: Window, weights: np.ndarray) -> float:
    """Half the variance of T - L w: for draws of pi_w that had no part in choosing w, an estimate of KL(pi_w || pi)."""
    if len(window.totals) < 2:
        return float("nan")
    with np.errstate(invalid="ignore", over="ignore"):
        return float(0.5 * np.var(window.totals - window.values @ weights, ddof=1))


def solve(window: Window, best_weights: np.ndarray, damping: float, curvature: RowCurvature | None = None) -> Within:
    """The weights to be tried next, not too far from the best; those themselves if there is no solution.

    Beside a Gaussian term rows may not curve more than all rows do, which ``curvature`` knows.
    """
    with np.errstate(all="ignore"):
        if curvature is None:
            alone = nonnegative_ridge(NormalEquations.of(window.values, window.totals), best_weights, damping)
            solved = Within(*alone, known=np.zeros((0, 0)))
        else:
            solved = solve_within(window.values, window.totals, best_weights, damping, curvature)
    is_good = bool(np.all(np.isfinite(solved.weights)))
    return Within(solved.weights if is_good else best_weights, min(solved.ridge, MOST_DAMPING), solved.known)


def relative_change(new: np.ndarray, old: np.ndarray) -> float:
    """How far weights have moved, as a share of their size."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return float(np.linalg.norm(new - old) / np.linalg.norm(old))


def along(mask: Any, values: Any) -> Any:
    """A mask, or numbers, of the leading axis, shaped to go with values."""
    return mask.reshape(-1, *[1] * (values.ndim - 1))


def without_nonfinite(window: Window) -> Window:
    """The window with zeros on both sides of every equation that holds a NaN or an infinity.

    Any weights solve 0 w = 0, so such a draw has no say in the solution.
    """
    is_finite = np.all(np.isfinite(window.values), axis=1) & np.isfinite(window.totals)
    return Window(np.where(is_finite[:, None], window.values, 0.0), np.where(is_finite, window.totals, 0.0))


def without_strays(window: Window, num_coordinates: int) -> Window:
    """The window without draws so far below its highest one that no posterior of all rows can care for them.

    Squares of a few such equations would outweigh all others: weights would be right where nobody goes. That is for
    draws of a Gaussian; draws of weights that lead astray must be heard. ``window`` is one of log-likelihoods; what an
    expansion leaves of them is not a height.
    """
    lowest = np.max(window.totals, initial=-np.inf, where=np.isfinite(window.totals))
    lowest -= hopeless_depth(num_coordinates)
    is_kept = np.isfinite(window.totals) & (window.totals >= lowest)
    if is_kept.all():
        return window
    return Window(centred_over(is_kept, window.values), centred_over(is_kept, window.totals))


def alternate_draws(num_draws: int, num_chains: int) -> np.ndarray:
    """Marks (J,) the draws of every other step of all chains.

    They are the ones that make room where a window takes in the draws of a second posterior and keeps half of its own.
    """
    result: np.ndarray = np.arange(num_draws) // num_chains % 2 == 1
    return result
