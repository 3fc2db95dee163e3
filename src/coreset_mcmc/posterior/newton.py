"""The Gaussian at the mode of the full posterior, in memory that does not grow with the data.

Log-density, gradient and Hessian are sums over rows, so each block of rows is differentiated on its own and only the
sums are kept. :func:`full_log_density` can be differentiated once, in reverse mode, under the same bound.

The mode is found by Newton's method with Levenberg damping: a step solves (A + damping I) x = b in coordinates scaled
to a unit diagonal, where A is the Hessian of minus the log-density with its eigenvalues made positive, so that every
step points uphill even where the log-density is not concave. A step that does not rise is not taken and the damping
grows, twice as fast after each failure in a row (Nielsen 1999). Far starts are then a matter of a few dozen passes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import require_count, require_positive
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Batch, Position, pytree
from coreset_mcmc.data.source import DataSource
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.problem import Problem
from coreset_mcmc.posterior.target import finite_or_impossible

ROUNDING = 1e-12
"""A step may lower the log-density by this fraction of its size: sums over many rows are not more exact than that."""

SMALLEST_CURVATURE = 1e-12
"""Relative to the diagonal of the Hessian; below it a direction counts as flat."""

INITIAL_DAMPING = 1e-3


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def full_log_density(model: Model, data: DataSource, position: Position) -> jax.Array:
    """log pi_0(theta) + sum_n l_n(theta) over all rows, with NaN read as -inf."""
    return finite_or_impossible(model.log_prior(position) + data.sum_over_rows(_block_sum(model, position)))


def value_and_gradient(model: Model, data: DataSource, position: Position) -> tuple[jax.Array, Position]:
    """The full log-density and its gradient, each block of rows differentiated on its own."""

    def of_block(batch: Batch) -> tuple[jax.Array, Position]:
        return jax.value_and_grad(lambda at: jnp.sum(model.log_likelihood(at, batch)))(position)

    prior = jax.value_and_grad(model.log_prior)(position)
    value, gradient = jax.tree.map(jnp.add, prior, data.sum_over_rows(of_block))
    return finite_or_impossible(value), gradient


def _forward(model: Model, data: DataSource, position: Position) -> tuple[jax.Array, Position]:
    return value_and_gradient(model, data, position)


def _backward(model: Model, gradient: Position, cotangent: jax.Array) -> tuple[None, Position]:
    del model
    return None, jax.tree.map(lambda leaf: cotangent * leaf, gradient)


full_log_density.defvjp(_forward, _backward)


def full_log_densities(model: Model, data: DataSource, positions: Position) -> jax.Array:
    """The full log-density (K,) at each of K positions with a leading axis, in one pass over the rows."""

    def of_block(batch: Batch) -> jax.Array:
        return jax.vmap(lambda position: _block_sum(model, position)(batch))(positions)

    return finite_or_impossible(jax.vmap(model.log_prior)(positions) + data.sum_over_rows(of_block))


def _block_sum(model: Model, position: Position) -> Any:
    return lambda batch: jnp.sum(model.log_likelihood(position, batch))


class Derivatives(NamedTuple):
    """The full log-density at a flat position, to second order."""

    value: jax.Array
    gradient: jax.Array
    """(d,)"""
    hessian: jax.Array
    """(d, d)"""


def derivatives(problem: Problem, flat: jax.Array) -> Derivatives:
    """Value, gradient and Hessian of the full log-density with respect to the flattened position."""
    unravel = ravel_pytree(problem.position)[1]

    def to_second_order(function: Any) -> Derivatives:
        def first_order(at: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
            value, gradient = jax.value_and_grad(function)(at)
            return gradient, (value, gradient)

        hessian, (value, gradient) = jax.jacfwd(first_order, has_aux=True)(flat)
        return Derivatives(value, gradient, hessian)

    def of_block(batch: Batch) -> Derivatives:
        return to_second_order(lambda at: _block_sum(problem.model, unravel(at))(batch))

    prior = to_second_order(lambda at: problem.model.log_prior(unravel(at)))
    total: Derivatives = jax.tree.map(jnp.add, prior, problem.data.sum_over_rows(of_block))
    return total._replace(value=finite_or_impossible(total.value))


@pytree
@dataclass(frozen=True)
class LaplaceApproximation:
    """N(mean, L L') for the flattened position, with the curvature of the full log-density at its mode."""

    mean: jax.Array
    """(d,)"""
    scale_factor: jax.Array
    """L (d, d), lower triangular."""
    log_density_at_mode: jax.Array

    def draws(self, noise: jax.Array) -> jax.Array:
        """Flat positions (n, d) from standard normal noise (n, d)."""
        return self.mean + noise @ self.scale_factor.T


class NewtonSearchState(NamedTuple):
    """The highest position so far and what is known about it."""

    position: jax.Array
    """(d,), flattened."""
    derivatives: Derivatives
    damping: jax.Array
    growth: jax.Array
    """What the damping is multiplied with if the next step fails."""
    iteration: jax.Array
    has_converged: jax.Array


class NewtonSearchInfo(NamedTuple):
    """What one iteration reports."""

    newton_decrement: jax.Array
    """How far the mode is by the local quadratic, in posterior standard deviations; infinite if there is no peak."""
    log_density: jax.Array
    num_evaluations: jax.Array
    status: jax.Array


@pytree
@dataclass(frozen=True)
class NewtonSearch:
    """Damped Newton iterations from the first start of a problem.

    Args:
        max_iterations: give up after this many.
        tolerance: stop when the Newton decrement, the distance to the mode in posterior standard deviations, is below.
    """

    max_iterations: int = 200
    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        if isinstance(self.max_iterations, int):
            require_count("max_iterations", self.max_iterations, at_least=1, fix="Leave it out for 200.")
        require_positive("tolerance", self.tolerance)

    def init(self, problem: Problem, start: jax.Array | None = None) -> NewtonSearchState:
        """Begin at a flat position, by default the first start of the problem.

        Nothing is evaluated yet: with a zero gradient and the lowest of all values the first step stays where it is
        and evaluates the derivatives there, so that they are compiled once.
        """
        flat = ravel_pytree(problem.position)[0] if start is None else start
        lowest = jnp.asarray(jnp.finfo(flat.dtype).min)
        return NewtonSearchState(
            position=flat,
            derivatives=Derivatives(lowest, jnp.zeros_like(flat), jnp.zeros((flat.size, flat.size), flat.dtype)),
            damping=jnp.asarray(INITIAL_DAMPING, flat.dtype),
            growth=jnp.asarray(2.0, flat.dtype),
            iteration=jnp.zeros((), jnp.int32),
            has_converged=jnp.array(False),
        )

    def step(self, state: NewtonSearchState, problem: Problem) -> tuple[NewtonSearchState, NewtonSearchInfo]:
        """Try one step; its derivatives are evaluated only if it rises."""
        at, unravel = state.derivatives, ravel_pytree(problem.position)[1]
        step, predicted = _uphill_step(at, state.damping)
        candidate = state.position + step
        value = full_log_density(problem.model, problem.data, unravel(candidate))
        slack = ROUNDING * jnp.abs(at.value)
        rises = value - at.value > -slack
        gain_ratio = (value - at.value + slack) / (predicted + slack)
        position = jnp.where(rises, candidate, state.position)
        reached = jax.lax.cond(rises, lambda: derivatives(problem, candidate), lambda: at)
        decrement = newton_decrement(reached)
        moved = NewtonSearchState(
            position=position,
            derivatives=reached,
            damping=jnp.where(rises, state.damping * _damping_change(gain_ratio), state.damping * state.growth),
            growth=jnp.where(rises, 2.0, 2.0 * state.growth),
            iteration=state.iteration + 1,
            has_converged=decrement < self.tolerance,
        )
        num_evaluations = problem.data.size + rises.astype(jnp.int64) * num_derivative_evaluations(problem)
        return moved, NewtonSearchInfo(decrement, reached.value, num_evaluations, self._status(moved))

    def _status(self, state: NewtonSearchState) -> jax.Array:
        is_finite = jnp.all(jnp.isfinite(state.derivatives.gradient)) & jnp.all(jnp.isfinite(state.derivatives.hessian))
        has_failed = ~state.has_converged & (state.iteration >= self.max_iterations)
        is_peaked = jnp.isfinite(newton_decrement(state.derivatives))
        failure = jnp.where(is_peaked, Status.MODE_NOT_FOUND.value, Status.HESSIAN_NOT_NEGATIVE_DEFINITE.value)
        status = jnp.where(has_failed, failure, Status.OK.value)
        return jnp.where(is_finite, status, Status.DERIVATIVES_NOT_FINITE.value).astype(jnp.int32)


def find_mode(
    problem: Problem, search: NewtonSearch, start: NewtonSearchState | None = None
) -> tuple[NewtonSearchState, NewtonSearchInfo]:
    """Iterate until the mode is found or the search fails; the info tells how it ended and counts all evaluations.

    A search that has begun goes on from ``start``.
    """

    def go_on(carry: tuple[NewtonSearchState, NewtonSearchInfo]) -> jax.Array:
        state, info = carry
        return ~state.has_converged & (info.status == Status.OK.value)

    def one_step(carry: tuple[NewtonSearchState, NewtonSearchInfo]) -> tuple[NewtonSearchState, NewtonSearchInfo]:
        state, info = search.step(carry[0], problem)
        return state, info._replace(num_evaluations=info.num_evaluations + carry[1].num_evaluations)

    start = search.init(problem) if start is None else start
    info = NewtonSearchInfo(
        jnp.asarray(jnp.inf),
        start.derivatives.value,
        jnp.zeros((), jnp.int64),
        jnp.zeros((), jnp.int32),
    )
    found: tuple[NewtonSearchState, NewtonSearchInfo] = jax.lax.while_loop(go_on, one_step, (start, info))
    return found


def approximation_at(state: NewtonSearchState) -> LaplaceApproximation:
    """The Gaussian with the curvature where the search is; NaN in its scale if that is not a peak."""
    scale, _, spectrum, vectors = _scaled_curvature(state.derivatives)
    root = scale[:, None] * vectors / jnp.sqrt(spectrum)
    return LaplaceApproximation(state.position, jnp.linalg.cholesky(root @ root.T), state.derivatives.value)


def num_derivative_evaluations(problem: Problem) -> int:
    """A gradient of each row, and d products of its Hessian with a vector, each about as dear as a gradient."""
    dimension = sum(leaf.size for leaf in jax.tree.leaves(problem.position))
    return problem.data.size * (1 + dimension)


def newton_decrement(at: Derivatives) -> jax.Array:
    """sqrt(g' (-H)^-1 g), infinite unless the Hessian is negative definite."""
    _, slopes, spectrum, _ = _scaled_curvature(at)
    is_peaked = jnp.min(spectrum) > SMALLEST_CURVATURE
    decrement = jnp.sqrt(jnp.sum(slopes**2 / jnp.where(is_peaked, spectrum, 1.0)))
    return jnp.where(is_peaked & jnp.isfinite(decrement), decrement, jnp.inf)


def _scaled_curvature(at: Derivatives) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Scales of the coordinates; then slopes along, values and vectors of, the spectrum of the scaled minus Hessian."""
    diagonal = jnp.abs(jnp.diag(at.hessian))
    scale = 1.0 / jnp.sqrt(jnp.maximum(diagonal, SMALLEST_CURVATURE * jnp.maximum(jnp.max(diagonal), 1.0)))
    spectrum, vectors = jnp.linalg.eigh(-at.hessian * scale[:, None] * scale)
    return scale, (scale * at.gradient) @ vectors, spectrum, vectors


def _uphill_step(at: Derivatives, damping: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The damped step, and by how much the local quadratic rises along it."""
    scale, slopes, spectrum, vectors = _scaled_curvature(at)
    along = slopes / (jnp.maximum(jnp.abs(spectrum), SMALLEST_CURVATURE) + damping)
    return scale * (vectors @ along), jnp.sum(slopes * along - 0.5 * spectrum * along**2)


def _damping_change(gain_ratio: jax.Array) -> jax.Array:
    """Less damping after a step that rose as predicted, more after one that rose much less."""
    return jnp.where(gain_ratio > 0.75, 0.1, jnp.where(gain_ratio < 0.25, 2.0, 0.5))
