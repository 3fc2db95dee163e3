"""The mode of the full posterior, and the Gaussian there.

The mode is found by Newton's method with Levenberg damping: a step solves (A + damping I) x = b in coordinates scaled
to a unit diagonal, where A is the Hessian of minus the log-density with its eigenvalues made positive, so that every
step points uphill even where the log-density is not concave. A step that does not rise is not taken and the damping
grows, twice as fast after each failure in a row (Nielsen 1999). Far starts are then a matter of a few dozen passes
over the data, whose density and derivatives come from :mod:`coreset_mcmc.posterior.full`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import require_count, require_positive
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import pytree
from coreset_mcmc.posterior.full import Derivatives, derivatives, full_log_density, num_derivative_evaluations
from coreset_mcmc.posterior.problem import Problem

ROUNDING = 1e-12
"""A step may lower the log-density by this fraction of its size: sums over many rows are not more exact than that."""

SMALLEST_CURVATURE = 1e-12
"""Relative to the diagonal of the Hessian; below it a direction counts as flat."""

INITIAL_DAMPING = 1e-3


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


def newton_decrement(at: Derivatives) -> jax.Array:
    """sqrt(g' (-H)^-1 g), infinite unless the Hessian is negative definite."""
    curvature = _scaled_curvature(at)
    is_peaked = jnp.min(curvature.spectrum) > SMALLEST_CURVATURE
    decrement = jnp.sqrt(jnp.sum(curvature.slopes**2 / jnp.where(is_peaked, curvature.spectrum, 1.0)))
    return jnp.where(is_peaked & jnp.isfinite(decrement), decrement, jnp.inf)


class _Curvature(NamedTuple):
    """The local quadratic in coordinates in which minus the Hessian has a unit diagonal, along its eigenvectors."""

    scale: jax.Array
    """(d,): a step x in the scaled coordinates is ``scale * x`` in the original ones."""
    slopes: jax.Array
    """(d,): the gradient along each eigenvector."""
    spectrum: jax.Array
    """(d,): eigenvalues of the scaled minus Hessian."""
    vectors: jax.Array
    """(d, d): its eigenvectors, in columns."""


def _scaled_curvature(at: Derivatives) -> _Curvature:
    diagonal = jnp.abs(jnp.diag(at.hessian))
    scale = 1.0 / jnp.sqrt(jnp.maximum(diagonal, SMALLEST_CURVATURE * jnp.maximum(jnp.max(diagonal), 1.0)))
    spectrum, vectors = jnp.linalg.eigh(-at.hessian * scale[:, None] * scale)
    return _Curvature(scale, (scale * at.gradient) @ vectors, spectrum, vectors)


def _uphill_step(at: Derivatives, damping: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The damped step, and by how much the local quadratic rises along it."""
    scale, slopes, spectrum, vectors = _scaled_curvature(at)
    along = slopes / (jnp.maximum(jnp.abs(spectrum), SMALLEST_CURVATURE) + damping)
    return scale * (vectors @ along), jnp.sum(slopes * along - 0.5 * spectrum * along**2)


def _damping_change(gain_ratio: jax.Array) -> jax.Array:
    """Less damping after a step that rose as predicted, more after one that rose much less."""
    return jnp.where(gain_ratio > 0.75, 0.1, jnp.where(gain_ratio < 0.25, 2.0, 0.5))
