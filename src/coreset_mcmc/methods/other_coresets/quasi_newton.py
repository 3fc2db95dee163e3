"""Quasi-Newton coresets (Naik, Rousseau and Campbell 2022), the strongest coreset baseline of Section 4 of the paper.

One iteration draws S positions from the current coreset posterior and takes a regularised Newton step on the weights.
With centred log-likelihoods L (S, M) of the coreset rows and centred sums T (S,) over all N rows,

    gradient = L' (L w - T) / S,    G = L' L / S,    direction = -(G + tau I)^-1 gradient,
    w <- max(0, w + gamma direction).

Both the gradient and G are means over the draws: with one of them left a sum the direction is S times too long, or too
short. On the same draws the gradient is affine in the weights, gradient(w + delta) = gradient(w) + G delta, so a trial
of the line search costs O(M) and no log-likelihood.

The search starts at gamma = 1. As long as every component of w + gamma direction is negative, gamma is divided by 1.5:
projected, such a step would end at the prior. Then it is divided on until the slope along the direction at the
projected point is between 0 and 0.9 of what it was: neither overshot nor hardly moved. No untested step is taken: after
``max_trials`` failures the weights stay for this iteration, and the next one looks again with new draws.

What differs from the experiments of the paper: chains continue from the last draw of the iteration before, instead of
going back; a part of the draws may be discarded; the guard against all-negative steps holds in every iteration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from coreset_mcmc.core.errors import require, require_count, require_positive
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Key, pytree, static
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.kernels.base import Kernel, init_chains, restart_chains
from coreset_mcmc.methods.contract import Trained
from coreset_mcmc.methods.coreset_mcmc.projections import NonNegative
from coreset_mcmc.methods.draws import collect_draws, require_equal_shares
from coreset_mcmc.methods.sampling import sample_coreset
from coreset_mcmc.methods.sums import centred, full_data_sums, log_likelihood_matrix
from coreset_mcmc.methods.with_kernel import MovesByKernel
from coreset_mcmc.posterior.problem import Problem

SHRINKAGE = 1.5
MAX_SLOPE_RATIO = 0.9
MAX_GUARD_SHRINKAGES = 100
"""1.5^-100 is below the rounding of any weight: only weights that are all zero can still step below zero."""


class QuasiNewtonState(NamedTuple):
    """The minimum that the next iteration needs."""

    weights: jax.Array
    chains: Any
    step_size: jax.Array
    """The last gamma that a line search found; 1 before any did."""
    iteration: jax.Array
    done: jax.Array


class QuasiNewtonInfo(NamedTuple):
    """What one iteration reports."""

    gradient_norm: jax.Array
    step_size: jax.Array
    """The gamma of this update; 0 if the line search found none."""
    kl_estimate: jax.Array
    """Half the variance over the draws of the residual T - L w, before the update: close to KL when KL is small."""
    acceptance_rate: jax.Array
    diverging: jax.Array
    num_evaluations: jax.Array
    status: jax.Array


class _Quadratic(NamedTuple):
    """The objective on fixed draws, seen along one direction."""

    weights: jax.Array
    direction: jax.Array
    slope: jax.Array
    """gradient' direction."""
    bend: jax.Array
    """G direction (M,)."""

    def at(self, step_size: jax.Array) -> jax.Array:
        return self.weights + step_size * self.direction

    def slope_ratio(self, step_size: jax.Array) -> jax.Array:
        """gradient(projected point)' direction, as a share of what it is at the start."""
        delta = NonNegative().project(self.at(step_size), 0) - self.weights
        return 1.0 + delta @ self.bend / self.slope


@pytree
@dataclass(frozen=True)
class QuasiNewton(MovesByKernel):
    """Train coreset weights by quasi-Newton steps, each on many draws and all rows.

    An iteration costs S (N + M) log-likelihoods besides those of the kernel. Memory is bounded: log-likelihoods of a
    block of rows under all S draws, never N x S.

    Args:
        kernel: moves each chain. ``None`` is a hit-and-run slice kernel, which ``fit`` shapes in a pilot run.
        num_draws: draws in each iteration, over all chains.
        num_iterations: weight updates.
        regularization: tau, added to the diagonal of G.
        num_line_searches: how many of the first iterations search a step size; later ones use the last one found.
        max_trials: step sizes tried in one search.
        discard: share of each iteration's draws, the first ones of each chain, that is thrown away as burn-in.
        num_chains: chains among which the draws are divided.
    """

    kernel: Kernel | None = None
    num_draws: int = static(default=1_000)
    num_iterations: int = 50
    regularization: float = 0.01
    num_line_searches: int = 10
    max_trials: int = 20
    discard: float = static(default=0.0)
    num_chains: int = static(default=1)

    name = "quasi-newton"

    def __post_init__(self) -> None:
        require_count("num_chains", self.num_chains, at_least=1, fix="One chain is enough.")
        require_count("num_draws", self.num_draws, at_least=2, fix="A few times the coreset size is a good choice.")
        require_equal_shares(self.num_draws, self.num_chains)
        require(
            0 <= self.discard < 1 and self.num_kept >= 2,
            "discard",
            got=self.discard,
            expected="a share from 0 to below 1 that leaves at least two draws",
            fix="Use 0 to keep every draw.",
        )
        require_positive(
            "regularization", self.regularization, fix="G alone may be singular; 0.01 is the usual choice."
        )
        if isinstance(self.num_iterations, int):
            require_count("num_iterations", self.num_iterations, at_least=1, fix="Pass how many updates to make.")
        if isinstance(self.num_line_searches, int):
            require_count("num_line_searches", self.num_line_searches, at_least=0, fix="Use 0 for steps of size 1.")
        if isinstance(self.max_trials, int):
            require_count("max_trials", self.max_trials, at_least=1, fix="Leave it out for 20.")

    @property
    def max_steps(self) -> int:
        return self.num_iterations

    @property
    def num_kept(self) -> int:
        """S, draws that enter an update."""
        return self.num_draws - self.num_chains * self._num_discarded

    @property
    def _num_discarded(self) -> int:
        """Draws of each chain that are thrown away."""
        return math.floor(self.discard * (self.num_draws // self.num_chains))

    def check(self, problem: Problem) -> None:
        self.moving_kernel.check(problem.position, problem.target(problem.initial_weights))

    def init_evaluations(self, problem: Problem) -> int:
        return self.num_chains * problem.coreset_size

    def init(self, key: Key, problem: Problem) -> QuasiNewtonState:
        del key
        weights = NonNegative().project(problem.initial_weights, problem.data.size)
        positions = jax.tree.map(lambda leaf: leaf[: self.num_chains], problem.initial_positions)
        return QuasiNewtonState(
            weights=weights,
            chains=init_chains(self.moving_kernel, positions, problem.target(weights)),
            step_size=jnp.ones((), weights.dtype),
            iteration=jnp.zeros((), jnp.int32),
            done=jnp.array(False),
        )

    def step(self, key: Key, state: QuasiNewtonState, problem: Problem) -> tuple[QuasiNewtonState, QuasiNewtonInfo]:
        num_steps = self.num_draws // self.num_chains
        target = problem.target(state.weights)
        draws = collect_draws(self.moving_kernel, key, state.chains, target, num_steps, self._num_discarded)
        totals = full_data_sums(problem.model, draws.positions, problem.data).total
        values = centred(log_likelihood_matrix(problem.model, draws.positions, problem.rows))
        residual = values @ state.weights - totals
        gradient = residual @ values / self.num_kept
        is_finite = jnp.all(jnp.isfinite(gradient))
        direction = regularised_newton_direction(values, residual, self.regularization)
        bend = (values @ direction) @ values / self.num_kept
        line = _Quadratic(state.weights, direction, gradient @ direction, bend)
        applied, remembered = self._step_size(state, line)
        weights = NonNegative().project(line.at(applied), problem.data.size)
        weights = jnp.where(is_finite, weights, state.weights)
        chains = restart_chains(self.moving_kernel, draws.chains, problem.target(weights))
        is_lost = jnp.any(chains.log_density == -jnp.inf)
        status = jnp.where(is_lost, Status.CHAIN_LOST.value, Status.OK.value)
        size, coreset_size = problem.data.size, problem.coreset_size
        info = QuasiNewtonInfo(
            gradient_norm=jnp.where(is_finite, jnp.linalg.norm(gradient), jnp.inf),
            step_size=applied,
            kl_estimate=0.5 * jnp.var(residual, ddof=1),
            acceptance_rate=draws.acceptance_rate,
            diverging=draws.diverging,
            num_evaluations=coreset_size * (draws.num_evaluations + self.num_chains)
            + self.num_kept * (size + coreset_size),
            status=jnp.where(is_finite, status, Status.GRADIENT_NOT_FINITE.value).astype(jnp.int32),
        )
        iteration = state.iteration + 1
        return QuasiNewtonState(weights, chains, remembered, iteration, iteration >= self.num_iterations), info

    def describe(self, info: QuasiNewtonInfo) -> str:
        return f"estimated KL {info.kl_estimate[-1]:.3g}"

    def finish(self, state: QuasiNewtonState, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        coreset = SelectedRows(np.asarray(problem.indices), np.asarray(state.weights))
        return sample_coreset(problem, coreset, state.chains.position, kernel or self.moving_kernel, num_chains)

    def _step_size(self, state: QuasiNewtonState, line: _Quadratic) -> tuple[jax.Array, jax.Array]:
        """The step size of this update, and the one that later iterations go on with."""
        is_searching = state.iteration < self.num_line_searches
        first = jnp.where(is_searching, 1.0, state.step_size)
        first = _not_all_negative(line, first)
        found, is_found = line_search(line, first, self.max_trials)
        remembered = jnp.where(is_searching & is_found, found, state.step_size)
        return jnp.where(is_searching, jnp.where(is_found, found, 0.0), first), remembered


def regularised_newton_direction(
    values: jax.Array, residual: jax.Array, regularization: jax.Array | float
) -> jax.Array:
    """-(L'L/S + tau I)^-1 L'r/S as the least-squares problem min |L x + r|^2 / S + tau |x|^2.

    Its QR factorisation works with the square root of the condition number of the matrix that it solves.
    """
    num_draws, coreset_size = values.shape
    root = math.sqrt(num_draws)
    ridge = jnp.sqrt(regularization) * jnp.eye(coreset_size, dtype=values.dtype)
    orthogonal, triangular = jnp.linalg.qr(jnp.concatenate([values / root, ridge]))
    return solve_triangular(triangular, -(residual / root) @ orthogonal[:num_draws])


def _not_all_negative(line: _Quadratic, step_size: jax.Array) -> jax.Array:
    """Shrink a step that would bring every weight below zero."""

    def is_all_negative(carry: tuple[jax.Array, jax.Array]) -> jax.Array:
        step_size, count = carry
        return jnp.all(line.at(step_size) < 0) & (count < MAX_GUARD_SHRINKAGES)

    none = jnp.zeros((), jnp.int32)
    return jax.lax.while_loop(is_all_negative, lambda carry: (carry[0] / SHRINKAGE, carry[1] + 1), (step_size, none))[0]


def line_search(line: _Quadratic, first: jax.Array, max_trials: jax.Array | int) -> tuple[jax.Array, jax.Array]:
    """The first of ``first``, ``first`` / 1.5, ... that passes the test, and whether any did."""

    def go_on(carry: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        _, is_found, count = carry
        return ~is_found & (count < max_trials)

    def try_one(carry: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        step_size, _, count = carry
        ratio = line.slope_ratio(step_size)
        is_found = (ratio > 0.0) & (ratio < MAX_SLOPE_RATIO)
        return jnp.where(is_found, step_size, step_size / SHRINKAGE), is_found, count + 1

    start = (first, jnp.array(False), jnp.zeros((), jnp.int32))
    step_size, is_found, _ = jax.lax.while_loop(go_on, try_one, start)
    return step_size, is_found
