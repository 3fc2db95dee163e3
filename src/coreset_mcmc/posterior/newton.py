"""The mode of the full posterior, and the Gaussian there.

The mode is found by Newton's method with Levenberg damping: a step solves (A + damping I) x = b in coordinates scaled
to a unit diagonal, where A is the Hessian of minus the log-density with its eigenvalues made positive, so that every
step points uphill even where the log-density is not concave. A step that does not rise is not taken and the damping
grows, twice as fast after each failure in a row (Nielsen 1999). Far starts are then a matter of a few dozen passes
over the data.

Density and derivatives come from :mod:`coreset_mcmc.posterior.full` where all rows are arrays of a compiled program,
from :mod:`coreset_mcmc.posterior.by_passes` where each evaluation is a pass over rows that may be anywhere. Values and
derivatives are evaluated together: nearly every step rises, and a pass is dear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy.linalg import LinAlgError, cho_factor, cho_solve, cholesky

from coreset_mcmc.core.errors import require_count, require_positive
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import pytree
from coreset_mcmc.posterior.full import derivatives, num_derivative_evaluations
from coreset_mcmc.posterior.problem import Problem
from coreset_mcmc.posterior.second_order import Derivatives

Array = Any
"""A NumPy array on the host, a JAX array inside a compiled program: the same algebra serves both."""

ROUNDING = 1e-12
"""A step may lower the log-density by this fraction of its size: sums over many rows are not more exact than that."""

SMALLEST_CURVATURE = 1e-12
"""Relative to the diagonal of the Hessian; below it a direction counts as flat."""

MANY_DIMENSIONS = 200
"""From here on a Cholesky factor is tried before eigenvectors."""

SMALLEST_DIAGONAL = 1e-200
"""Of the Hessian. Above it a parameter is measured by its own curvature, whatever that of the others: one may be in
micrometres and another in megametres. Below it there is none.
"""

INITIAL_DAMPING = 1e-3


@pytree
@dataclass(frozen=True)
class LaplaceApproximation:
    """N(mean, L L') for the flattened position, with the curvature of the full log-density at its mode."""

    mean: Array
    """(d,)"""
    scale_factor: Array
    """L (d, d), lower triangular."""
    log_density_at_mode: Array

    def draws(self, noise: Array) -> Array:
        """Flat positions (n, d) from standard normal noise (n, d)."""
        return self.mean + noise @ self.scale_factor.T


class NewtonSearchState(NamedTuple):
    """The highest position so far and what is known about it."""

    position: Array
    """(d,), flattened."""
    derivatives: Derivatives
    damping: Array
    growth: Array
    """What the damping is multiplied with if the next step fails."""
    iteration: Array
    has_converged: Array


class Proposal(NamedTuple):
    """Where a search may go next."""

    position: Array
    """(d,), flattened."""
    rise: Array
    """By how much the local quadratic is higher there."""


class NewtonSearchInfo(NamedTuple):
    """What one iteration reports."""

    newton_decrement: Array
    """How far the mode is by the local quadratic, in posterior standard deviations; infinite if there is no peak."""
    log_density: Array
    num_evaluations: Array
    status: Array


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

    def init(self, problem: Problem, start: Array | None = None) -> NewtonSearchState:
        """Begin at a flat position, by default the first start of the problem.

        Nothing is evaluated yet: with a zero gradient and the lowest of all values the first step stays where it is
        and evaluates the derivatives there, so that they are compiled once.
        """
        return self.begin(ravel_pytree(problem.position)[0] if start is None else start)

    def begin(self, flat: Array) -> NewtonSearchState:
        """Begin at a flat position, on the host or in a program, whichever its array belongs to."""
        xp = flat.__array_namespace__()
        lowest = xp.asarray(xp.finfo(flat.dtype).min)
        return NewtonSearchState(
            position=flat,
            derivatives=Derivatives(lowest, xp.zeros_like(flat), xp.zeros((flat.size, flat.size), dtype=flat.dtype)),
            damping=xp.asarray(INITIAL_DAMPING, dtype=flat.dtype),
            growth=xp.asarray(2.0, dtype=flat.dtype),
            iteration=xp.zeros((), dtype=xp.int32),
            has_converged=xp.asarray(False),
        )

    def step(self, state: NewtonSearchState, problem: Problem) -> tuple[NewtonSearchState, NewtonSearchInfo]:
        """Try one step, inside a compiled program that holds all rows."""
        proposal = self.propose(state)
        moved, info = self.judge(state, proposal, derivatives(problem, proposal.position))
        return moved, info._replace(num_evaluations=jnp.asarray(num_derivative_evaluations(problem), jnp.int64))

    def propose(self, state: NewtonSearchState) -> Proposal:
        """Where to go next.

        A step decomposes two matrices, one here and one in :meth:`judge`, which needs the outcome of the first. Two
        such calls at the same time, each for a batch of matrices, can wait for each other's threads for ever.
        """
        step, rise = _uphill_step(state.derivatives, state.damping)
        return Proposal(state.position + step, rise)

    def judge(
        self, state: NewtonSearchState, proposal: Proposal, there: Derivatives
    ) -> tuple[NewtonSearchState, NewtonSearchInfo]:
        """Go there if it is higher; otherwise stay and be more careful. Evaluations are for the caller to count."""
        xp = state.position.__array_namespace__()
        at = state.derivatives
        value = there.value
        slack = ROUNDING * xp.abs(at.value)
        rises = value - at.value > -slack
        gain_ratio = (value - at.value + slack) / (proposal.rise + slack)
        reached = Derivatives(*(xp.where(rises, new, old) for new, old in zip(there, at, strict=True)))
        decrement = newton_decrement(reached)
        moved = NewtonSearchState(
            position=xp.where(rises, proposal.position, state.position),
            derivatives=reached,
            damping=xp.where(rises, state.damping * _damping_change(xp, gain_ratio), state.damping * state.growth),
            growth=xp.where(rises, 2.0, 2.0 * state.growth),
            iteration=state.iteration + 1,
            has_converged=decrement < self.tolerance,
        )
        nothing = xp.zeros((), dtype=xp.int64)
        return moved, NewtonSearchInfo(decrement, reached.value, nothing, self._status(moved, decrement))

    def _status(self, state: NewtonSearchState, decrement: Array) -> Array:
        xp = state.position.__array_namespace__()
        is_finite = xp.all(xp.isfinite(state.derivatives.gradient)) & xp.all(xp.isfinite(state.derivatives.hessian))
        has_failed = ~state.has_converged & (state.iteration >= self.max_iterations)
        is_peaked = xp.isfinite(decrement)
        failure = xp.where(is_peaked, Status.MODE_NOT_FOUND.value, Status.HESSIAN_NOT_NEGATIVE_DEFINITE.value)
        status = xp.where(has_failed, failure, Status.OK.value)
        return xp.where(is_finite, status, Status.DERIVATIVES_NOT_FINITE.value).astype(xp.int32)


def find_mode(
    problem: Problem, search: NewtonSearch, start: NewtonSearchState | None = None
) -> tuple[NewtonSearchState, NewtonSearchInfo]:
    """Iterate until the mode is found or the search fails; the info tells how it ended and counts all evaluations.

    A search that has begun goes on from ``start``.
    """

    def go_on(carry: tuple[NewtonSearchState, NewtonSearchInfo]) -> Array:
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
    """The Gaussian with the curvature where the search is; NaN in its scale if that is not a peak.

    Its mean is where the local quadratic has its peak, a last step ahead that is not evaluated.
    """
    xp = state.position.__array_namespace__()
    scale, slopes, spectrum, vectors = _scaled_curvature(state.derivatives)
    is_peaked = xp.min(spectrum) > 0
    spectrum = xp.where(is_peaked, spectrum, 1.0)
    upper = xp.linalg.qr((scale[:, None] * vectors / xp.sqrt(spectrum)).T)[1]
    factor = xp.where(is_peaked, (upper * xp.sign(xp.diagonal(upper))[:, None]).T, xp.nan)
    along = slopes / spectrum
    mean = state.position + xp.where(is_peaked, scale * (vectors @ along), 0.0)
    rise = 0.5 * xp.sum(xp.where(is_peaked, slopes * along, 0.0))
    return LaplaceApproximation(mean, factor, state.derivatives.value + rise)


def newton_decrement(at: Derivatives) -> Array:
    """sqrt(g' (-H)^-1 g), infinite unless the Hessian is negative definite."""
    if _has_many_dimensions(at):
        peak = _peak(at)
        decrement = np.float64(np.inf) if peak is None else np.sqrt(peak.slope @ peak.step(0.0))
        return decrement if np.isfinite(decrement) else np.float64(np.inf)
    xp = at.gradient.__array_namespace__()
    curvature = _scaled_curvature(at)
    is_peaked = xp.min(curvature.spectrum) > SMALLEST_CURVATURE
    decrement = xp.sqrt(xp.sum(curvature.slopes**2 / xp.where(is_peaked, curvature.spectrum, 1.0)))
    return xp.where(is_peaked & xp.isfinite(decrement), decrement, xp.inf)


def held(at: Derivatives, is_held: Array) -> Derivatives:
    """Derivatives of the same density with some parameters (d,) held: no slope, and a curvature of their own."""
    xp = at.gradient.__array_namespace__()
    own = xp.abs(xp.diagonal(at.hessian))
    own = xp.where(is_held, xp.where(own > 0, own, 1.0), 0.0)
    return at._replace(
        gradient=xp.where(is_held, 0.0, at.gradient),
        hessian=xp.where(is_held[:, None] | is_held, 0.0, at.hessian) - own * xp.eye(own.shape[0]),
    )


class _Curvature(NamedTuple):
    """The local quadratic in coordinates in which minus the Hessian has a unit diagonal, along its eigenvectors."""

    scale: Array
    """(d,): a step x in the scaled coordinates is ``scale * x`` in the original ones."""
    slopes: Array
    """(d,): the gradient along each eigenvector."""
    spectrum: Array
    """(d,): eigenvalues of the scaled minus Hessian."""
    vectors: Array
    """(d, d): its eigenvectors, in columns."""


def _scaled(at: Derivatives) -> tuple[Array, Array, Array]:
    """The scale (d,), minus the Hessian in scaled coordinates, zeros if it is not finite, and whether it is."""
    xp = at.gradient.__array_namespace__()
    is_finite = xp.all(xp.isfinite(at.hessian))
    hessian = xp.where(is_finite, at.hessian, 0.0)
    diagonal = xp.abs(xp.diagonal(hessian))
    is_curved = diagonal > SMALLEST_DIAGONAL
    flat = SMALLEST_CURVATURE * xp.maximum(xp.max(diagonal), 1.0)
    scale = 1.0 / xp.sqrt(xp.where(is_curved, diagonal, flat))
    return scale, -hessian * scale[:, None] * scale, is_finite


def _scaled_curvature(at: Derivatives) -> _Curvature:
    """NaN in all numbers unless those of the Hessian are finite."""
    xp = at.gradient.__array_namespace__()
    scale, matrix, is_finite = _scaled(at)
    spectrum, vectors = xp.linalg.eigh(matrix)
    spectrum = xp.where(is_finite, spectrum, xp.nan)
    return _Curvature(scale, (scale * at.gradient) @ vectors, spectrum, vectors)


class _Peak(NamedTuple):
    """A local quadratic that has a peak, in the coordinates of :class:`_Curvature`, on the host."""

    scale: np.ndarray
    slope: np.ndarray
    """The scaled gradient (d,)."""
    matrix: np.ndarray
    """The scaled minus Hessian (d, d)."""

    def step(self, damping: Array | float) -> np.ndarray:
        """To its peak, or less far, in scaled coordinates."""
        damped = self.matrix.copy()
        damped[np.diag_indices(len(damped))] += damping
        factor = cho_factor(damped, overwrite_a=True, check_finite=False)
        result: np.ndarray = cho_solve(factor, self.slope, check_finite=False)
        return result


def _has_many_dimensions(at: Derivatives) -> bool:
    """Whether a Cholesky factor is worth a try, which takes a tenth of the time of eigenvectors."""
    return isinstance(at.hessian, np.ndarray) and len(at.hessian) >= MANY_DIMENSIONS


def _peak(at: Derivatives) -> _Peak | None:
    """None unless the Hessian is negative definite."""
    scale, matrix, is_finite = _scaled(at)
    try:
        cholesky(matrix - SMALLEST_CURVATURE * np.eye(len(matrix)), overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    return _Peak(scale, scale * at.gradient, matrix) if is_finite else None


def _uphill_step(at: Derivatives, damping: Array) -> tuple[Array, Array]:
    """The damped step, and by how much the local quadratic rises along it."""
    peak = _peak(at) if _has_many_dimensions(at) else None
    if peak is not None:
        step = peak.step(damping)
        return peak.scale * step, peak.slope @ step - 0.5 * step @ (peak.matrix @ step)
    xp = at.gradient.__array_namespace__()
    scale, slopes, spectrum, vectors = _scaled_curvature(at)
    along = slopes / (xp.maximum(xp.abs(spectrum), SMALLEST_CURVATURE) + damping)
    return scale * (vectors @ along), xp.sum(slopes * along - 0.5 * spectrum * along**2)


def _damping_change(xp: Any, gain_ratio: Array) -> Array:
    """Less damping after a step that rose as predicted, more after one that rose much less."""
    return xp.where(gain_ratio > 0.75, 0.1, xp.where(gain_ratio < 0.25, 2.0, 0.5))
