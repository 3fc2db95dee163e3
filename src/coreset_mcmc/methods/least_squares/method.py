"""Coreset weights by least squares on a window of draws: the paper's objective in a few solves.

Every draw theta_j gives a linear equation for the weights, sum_m w_m l_m(theta_j) = sum_n l_n(theta_j), both sides
centred over draws, which an exact coreset satisfies. Coreset MCMC takes one small gradient step for each few of them
and forgets them. Here a window of J draws is kept, and with centred log-likelihoods L (J, M) of the coreset rows and
centred sums T (J,) over all rows

    w  <-  argmin over w >= 0 of  |L w - T|^2 / J + damping |w - best|^2.

Its gradient without the damping is the estimate (4) of the gradient of KL(pi_w || pi), so the fixed points are the
same; only log-likelihoods are needed. Half the variance of T - L w over *fresh* draws of pi_w estimates the KL without
knowing the posterior. It is the merit function of a Levenberg-Marquardt iteration: weights that bring it down are
kept and the damping falls, otherwise the best weights so far are tried again with more damping, on more draws. It
says when to stop, too.

A differentiable model gets a hot start (:mod:`coreset_mcmc.methods.least_squares.start`): the mode of the full
posterior, rows chosen there by how much they matter unless somebody else has chosen them, a first window of draws from
a widened Laplace approximation, one solve. Other models, and those without a mode, keep the rows they were given and
start from the chains under the initial weights, which move nothing until their window has shaped the kernel.

A hot start also mends its choice of rows: after each round that did better, rows at weight zero make room for those
that the window misses (:mod:`coreset_mcmc.methods.least_squares.exchange`), unless the estimated KL is low enough
already.

With many rows the sums of a window come from second-order control variates
(:mod:`coreset_mcmc.methods.least_squares.taylor`) wherever their standard error is small beside the estimated KL. What
is left of passes over all rows is then a few Newton steps, whatever the number of draws.

From a hot start chains move by Hamiltonian trajectories that are shaped by the Laplace approximation, then by the best
window, and tune their step size in every round (:mod:`coreset_mcmc.methods.tuned_sampling`). Where they are not
accepted, and from a cold start, chains move by slice sampling, which needs no step size while the target moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import require, require_count, require_positive
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Key, Position, pytree, static
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.kernels.base import Kernel, init_chains
from coreset_mcmc.kernels.shape import shrunk_factor
from coreset_mcmc.kernels.slice import HitAndRunSlice
from coreset_mcmc.methods.contract import Trained, discrete_parts
from coreset_mcmc.methods.draws import Draws, collect_draws, trajectory_draws
from coreset_mcmc.methods.law import Law
from coreset_mcmc.methods.least_squares.equations import Window, along, measure, without_nonfinite
from coreset_mcmc.methods.least_squares.exchange import exchange_rows
from coreset_mcmc.methods.least_squares.nonnegative import Solution, nonnegative_ridge
from coreset_mcmc.methods.least_squares.start import WIDENING, ModeStart
from coreset_mcmc.methods.least_squares.state import LeastSquaresInfo, LeastSquaresState, Phase
from coreset_mcmc.methods.sampling import frozen_problem, sample_coreset
from coreset_mcmc.methods.tuned_sampling import TunedSampling
from coreset_mcmc.methods.with_kernel import MovesByKernel
from coreset_mcmc.posterior.problem import Problem

FIRST_DAMPING, LEAST_DAMPING, MOST_DAMPING = 1e-6, 1e-10, 1e2
NUM_SHAPING_ROUNDS = 2
"""First rounds of a cold start, which only shape the kernel and bring the chains to their target."""

NEAR, FAR = 1.0, 50.0
"""Estimates in nats: below the first, weights are near their best; above the second, they lead astray."""

IMPROVEMENT = 0.8
MAX_POOR_ROUNDS_NEAR, MAX_POOR_ROUNDS_FAR = 3, 6
"""Training ends near the posterior after three rounds in a row without an estimate below 0.8 of the best. Far from it
any improvement counts, and six rounds may fail, which is enough for the damping to go from its first value to its most.
"""


FEWEST_DRAWS, MOST_DRAWS = 400, 800
"""In a window, unless the user says how many."""

LEAST_ACCEPTANCE = 0.5
"""If fewer trajectories are accepted after their step size was tuned, the weights tried are not for them."""

FEWEST_TUNING = 40
"""Steps of each chain in which trajectories find their step size, in every round."""

TOLERATED_NOISE = 0.1
"""Sums from a sample serve if they add less than this share of the larger of estimated KL and tolerance to it."""

FIRST_TOLERATED_NOISE = 0.05
"""The same for the first window, in nats; there is no estimate yet."""


@pytree
@dataclass(frozen=True)
class LeastSquares(MovesByKernel):
    """Train coreset weights by damped non-negative least squares on windows of draws; nothing to tune.

    A round costs J draws of the kernel, and J passes over the data or over a sample of them.

    Args:
        kernel: moves each chain. ``None`` is Hamiltonian trajectories from a hot start on, and otherwise a hit-and-run
            slice kernel; both are shaped by the windows themselves.
        num_draws: J, draws in a window, over all chains. ``None`` is 400, or with many parameters as many as a
            quadratic in them has coefficients or the coreset has rows, whichever is less, up to 800.
        num_chains: chains among which they are divided.
        num_rounds: most rounds, besides the search for the mode.
        tolerance: stop when the estimated KL falls below this.
        hot_start: begin at the Laplace approximation if the model has gradients.
        discard: share of each chain's steps in a round that is thrown away, because the weights have just moved.
        max_newton_steps: after so many without a mode, go on without.
        subsample_size: rows behind control variates, which a hot start with four times as many rows or more uses
            instead of all of them where their error allows; ``None`` for all rows always.
        chooses_rows: whether a hot start chooses the rows of the coreset by their influence, in place of those of the
            problem. ``fit`` sets it to False for rows that its user has selected.
    """

    kernel: Kernel | None = None
    num_draws: int | None = static(default=None)
    num_chains: int = static(default=4)
    num_rounds: int = 20
    tolerance: float = 0.01
    hot_start: bool = static(default=True)
    discard: float = static(default=0.2)
    max_newton_steps: int = 50
    subsample_size: int | None = static(default=16_384)
    chooses_rows: bool = static(default=True)

    name = "least-squares"
    takes_few_steps = True
    needs_pilot = False

    def __post_init__(self) -> None:
        require_count("num_chains", self.num_chains, at_least=1, fix="Four chains are a good choice.")
        if self.num_draws is not None:
            require_count("num_draws", self.num_draws, at_least=4, fix="A few hundred are a good choice.")
            require(
                self.num_draws % self.num_chains == 0,
                "num_draws",
                got=self.num_draws,
                expected=f"a multiple of the {self.num_chains} chains",
                fix="Each chain makes an equal share of the draws.",
            )
        require(
            0 <= self.discard < 1, "discard", got=self.discard, expected="a share from 0 to below 1", fix="Use 0.2."
        )
        require_positive("tolerance", self.tolerance)
        if self.subsample_size is not None:
            require_count("subsample_size", self.subsample_size, at_least=2, fix="Use None for all rows.")
        for name in ("num_rounds", "max_newton_steps"):
            if isinstance(getattr(self, name), int):
                require_count(name, getattr(self, name), at_least=1, fix="Leave it out for the default.")

    @property
    def max_steps(self) -> int:
        return 1 + 3 * self.num_rounds + NUM_SHAPING_ROUNDS + self.max_newton_steps

    def window_size(self, problem: Problem) -> int:
        """J: enough equations for what they have to tell."""
        if self.num_draws is not None:
            return self.num_draws
        dimension = _dimension(problem.position)
        wanted = min(dimension * (dimension + 3) // 2, problem.coreset_size)
        return self.num_chains * math.ceil(min(max(wanted, FEWEST_DRAWS), MOST_DRAWS) / self.num_chains)

    def check(self, problem: Problem) -> None:
        target = problem.target(problem.initial_weights)
        self._kernel(np.eye(_dimension(problem.position))).check(problem.position, target)

    def adapted(self, problem: Problem, *, keeps_rows: bool) -> LeastSquares:
        del problem
        return replace(self, chooses_rows=False) if keeps_rows else self

    def starts_hot(self, problem: Problem) -> bool:
        return self.hot_start and problem.model.differentiable and not discrete_parts(problem.position)

    def samples_rows(self, problem: Problem) -> bool:
        """Whether there are so many rows that control variates pay."""
        return self.starts_hot(problem) and self._mode_start.samples_rows(problem)

    def phases(self, problem: Problem) -> tuple[int, ...]:
        """What training may go through; a hot start goes on cold only if it finds no mode or trajectories fail."""
        if not self.starts_hot(problem):
            return (Phase.COLD_ROUNDS,)
        first = [Phase.SAMPLE_MODE] if self._mode_start.begins_on_sample(problem) else []
        last = [Phase.EXCHANGE] if self.chooses_rows else []
        return (*first, Phase.MODE, Phase.COLD_ROUNDS, Phase.ROUNDS, *last)

    def phase_of(self, state: LeastSquaresState) -> jax.Array:
        return state.phase

    def expected_phases(self, problem: Problem) -> tuple[int, ...]:
        """What is worth compiling before it is known to be needed."""
        unlikely = {Phase.COLD_ROUNDS, Phase.EXCHANGE} if self.starts_hot(problem) else set()
        return tuple(phase for phase in self.phases(problem) if phase not in unlikely)

    def samples_by_trajectories(self, problem: Problem) -> bool:
        """Whether the model can be sampled with gradients, and nobody asked for another kernel."""
        return self.kernel is None and problem.model.differentiable and not discrete_parts(problem.position)

    def init(self, key: Key, problem: Problem) -> LeastSquaresState:
        del key
        weights = jnp.maximum(problem.initial_weights, 0.0)
        positions = jax.tree.map(lambda leaf: leaf[: self.num_chains], problem.initial_positions)
        num_draws = self.window_size(problem)
        window = Window(jnp.zeros((num_draws, problem.coreset_size)), jnp.zeros(num_draws))
        return LeastSquaresState(
            phase=jnp.asarray(self.phases(problem)[0], jnp.int32),
            search=self._mode_start.search.init(problem) if self.starts_hot(problem) else (),
            taylor=self._mode_start.no_taylor(problem) if self.samples_rows(problem) else (),
            indices=problem.indices,
            rows=problem.rows,
            weights=weights,
            best_weights=weights,
            best_estimate=jnp.asarray(jnp.inf),
            best_positions=positions,
            best_window=window,
            best_draws=jax.tree.map(lambda leaf: jnp.zeros((num_draws, *leaf.shape[1:]), leaf.dtype), positions),
            scale=jnp.eye(_dimension(problem.position)),
            damping=jnp.asarray(FIRST_DAMPING),
            round=jnp.zeros((), jnp.int32),
            num_poor=jnp.zeros((), jnp.int32),
            is_first=jnp.array(False),
            done=jnp.array(False),
        )

    def step(self, key: Key, state: LeastSquaresState, problem: Problem) -> tuple[LeastSquaresState, LeastSquaresInfo]:
        phases = self.phases(problem)
        steps = [partial(self.step_in, phase, key, state, problem) for phase in phases]
        return jax.lax.switch(jnp.searchsorted(jnp.asarray(phases), state.phase), steps)

    def step_in(
        self, phase: int, key: Key, state: LeastSquaresState, problem: Problem
    ) -> tuple[LeastSquaresState, LeastSquaresInfo]:
        """A step of which it is known what it does."""
        problem = replace(problem, indices=state.indices, rows=state.rows)
        if phase == Phase.SAMPLE_MODE:
            return self._sample_mode(state, problem)
        if phase == Phase.MODE:
            return self._newton_step(key, state, problem)
        if phase == Phase.EXCHANGE:
            return self._exchange(key, state, problem)
        return self._round(phase, key, state, problem)

    def describe(self, info: LeastSquaresInfo) -> str:
        if math.isfinite(info.best_estimate[-1]):
            return f"estimated KL {info.best_estimate[-1]:.3g}"
        is_searching = math.isfinite(info.newton_decrement[-1])
        return f"{info.newton_decrement[-1]:.2g} sd from the mode" if is_searching else "looking for the posterior"

    def finish(self, state: LeastSquaresState, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        problem = replace(problem, indices=jnp.asarray(state.indices), rows=jax.tree.map(jnp.asarray, state.rows))
        coreset = SelectedRows(np.asarray(state.indices), np.asarray(state.best_weights))
        if kernel is None and self.samples_by_trajectories(problem):
            return self._by_trajectories(problem, coreset, state.best_positions, state.scale, num_chains)
        chosen = kernel or self._kernel(jnp.asarray(state.scale))
        return sample_coreset(problem, coreset, state.best_positions, chosen, num_chains)

    def expected_sampler(self, problem: Problem, num_chains: int) -> Trained | None:
        """A sampler like the one that :meth:`finish` hands over, in all but its numbers."""
        if not self.samples_by_trajectories(problem):
            return None
        coreset = SelectedRows(np.asarray(problem.indices), np.asarray(problem.initial_weights))
        scale = np.eye(_dimension(problem.position))
        return self._by_trajectories(problem, coreset, problem.initial_positions, scale, num_chains)

    def _by_trajectories(
        self, problem: Problem, coreset: SelectedRows, positions: Position, scale: Any, num_chains: int
    ) -> Trained:
        sampler = TunedSampling(jnp.asarray(scale))
        return Trained(sampler, frozen_problem(problem, coreset, positions, num_chains), coreset, Law.CORESET)

    @property
    def _mode_start(self) -> ModeStart:
        return ModeStart(self.num_chains, self.max_newton_steps, self.subsample_size, self.chooses_rows)

    def _kernel(self, scale: Any) -> Kernel:
        return HitAndRunSlice(scale=scale, num_directions=scale.shape[0]) if self.kernel is None else self.kernel

    def _sample_mode(self, state: LeastSquaresState, problem: Problem) -> tuple[LeastSquaresState, LeastSquaresInfo]:
        """The mode of a sample, from where few steps on all rows remain."""
        search, num_evaluations = self._mode_start.from_sample(state.search, problem)
        moved = state._replace(phase=jnp.asarray(Phase.MODE, jnp.int32), search=search)
        return moved, self._nothing_learned(moved, jnp.asarray(jnp.inf), num_evaluations)

    def _nothing_learned(
        self, state: LeastSquaresState, decrement: jax.Array, num_evaluations: jax.Array
    ) -> LeastSquaresInfo:
        """The info of a step that tried no weights."""
        return LeastSquaresInfo(
            kl_estimate=jnp.asarray(jnp.nan),
            best_estimate=state.best_estimate,
            weight_change=jnp.asarray(jnp.nan),
            damping=state.damping,
            newton_decrement=decrement,
            num_evaluations=num_evaluations,
            status=jnp.zeros((), jnp.int32),
        )

    def _newton_step(
        self, key: Key, state: LeastSquaresState, problem: Problem
    ) -> tuple[LeastSquaresState, LeastSquaresInfo]:
        """One step to the mode; at the mode, a Gaussian for the first window, and control variates."""
        search, info = self._mode_start.search.step(state.search, problem)
        has_failed = (info.status != Status.OK.value) | (search.iteration >= self.max_newton_steps)
        after = jnp.where(search.has_converged, Phase.ROUNDS, jnp.where(has_failed, Phase.COLD_ROUNDS, Phase.MODE))
        searched = state._replace(search=search, phase=after.astype(jnp.int32))

        def at_the_mode() -> tuple[LeastSquaresState, jax.Array]:
            start = self._mode_start.at_the_mode(key, search, problem)
            moved = searched._replace(best_positions=start.positions, scale=start.scale, is_first=jnp.array(True))
            if start.taylor is not None:
                moved = moved._replace(taylor=start.taylor)
            if start.chosen is not None:
                indices, rows, weights = start.chosen
                moved = moved._replace(indices=indices, rows=rows, weights=weights, best_weights=weights)
            return moved, jnp.asarray(start.num_evaluations, jnp.int64)

        moved, num_evaluations = jax.lax.cond(
            search.has_converged, at_the_mode, lambda: (searched, jnp.zeros((), jnp.int64))
        )
        return moved, self._nothing_learned(moved, info.newton_decrement, info.num_evaluations + num_evaluations)

    def _draw(self, phase: int, key: Key, state: LeastSquaresState, problem: Problem) -> Draws:
        """A window's worth of positions: from the chains, or for the first window of a hot start from the Gaussian."""
        target, num_draws = problem.target(state.weights), self.window_size(problem)
        num_kept = num_draws // self.num_chains
        num_discarded = math.ceil(num_kept * self.discard / (1.0 - self.discard))
        is_hot = phase == Phase.ROUNDS

        def from_chains() -> Draws:
            if is_hot and self.kernel is None:
                num_tuning = max(num_discarded, FEWEST_TUNING)
                return trajectory_draws(
                    key, state.best_positions, target, state.scale, num_kept + num_tuning, num_tuning
                )
            kernel = self._kernel(state.scale)
            chains = init_chains(kernel, state.best_positions, target)
            return collect_draws(kernel, key, chains, target, num_kept + num_discarded, num_discarded)

        def from_gaussian() -> Draws:
            noise = jax.random.normal(key, (num_draws, state.scale.shape[0]))
            flat = state.search.position + WIDENING * noise @ state.scale.T
            positions = jax.vmap(ravel_pytree(problem.position)[1])(flat)
            nothing = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), jax.eval_shape(from_chains))
            return nothing._replace(positions=positions, acceptance_rate=jnp.ones(()))

        return jax.lax.cond(state.is_first, from_gaussian, from_chains) if is_hot else from_chains()

    def _round(
        self, phase: int, key: Key, state: LeastSquaresState, problem: Problem
    ) -> tuple[LeastSquaresState, LeastSquaresInfo]:
        """Draw from the weights to be tried, judge them, and solve for the next ones.

        The first window of a hot start is not drawn from the weights, so it judges nothing. Where trajectories are not
        accepted, slice sampling judges the same weights in a round of its own.
        """
        is_hot = phase == Phase.ROUNDS
        draws, is_first = self._draw(phase, key, state, problem), state.is_first

        def misfit(values: jax.Array, totals: jax.Array) -> jax.Array:
            return 0.5 * jnp.var(totals - values @ state.weights, ddof=1)

        def tolerated(values: jax.Array, totals: jax.Array) -> jax.Array:
            by_estimate = TOLERATED_NOISE * jnp.maximum(misfit(values, totals), self.tolerance)
            return jnp.where(is_first, FIRST_TOLERATED_NOISE, by_estimate)

        taylor = state.taylor if is_hot and self.samples_rows(problem) else None
        measured = measure(problem, taylor, draws.positions, tolerated)
        estimate = jnp.where(is_first, jnp.inf, misfit(*measured.window) + measured.noise)
        is_usable = jnp.isfinite(estimate) & jnp.all(jnp.isfinite(measured.window.values))
        window = without_nonfinite(measured.window)
        is_shaping = ~is_first & (state.round < NUM_SHAPING_ROUNDS)
        is_judged = ~is_first & ~is_shaping
        is_best = is_usable & (estimate < state.best_estimate)
        enough = jnp.where(state.best_estimate < NEAR, IMPROVEMENT, 1.0)
        is_poor = is_judged & ~(estimate < enough * state.best_estimate)
        num_poor = jnp.where(is_poor, state.num_poor + 1, 0)
        changed = jnp.clip(state.damping * jnp.where(is_best, 0.1, 100.0), LEAST_DAMPING, MOST_DAMPING)
        damping = jnp.where(is_judged, changed, state.damping)
        best_weights = jnp.where(is_best, state.weights, state.best_weights)
        best_estimate = jnp.where(is_best & is_judged, estimate, state.best_estimate)
        max_poor = jnp.where(best_estimate < NEAR, MAX_POOR_ROUNDS_NEAR, MAX_POOR_ROUNDS_FAR)
        has_ended = (best_estimate < self.tolerance) | (num_poor >= max_poor)
        is_over = has_ended | (state.round + 1 >= self.num_rounds + NUM_SHAPING_ROUNDS)

        may_exchange = is_hot and self.chooses_rows and problem.coreset_size < problem.data.size
        is_exchanging = is_best & is_judged & ~is_over & jnp.any(best_weights == 0) & may_exchange
        is_solving = ~(is_shaping | is_over | is_exchanging)

        def solve() -> Solution:
            both = jax.tree.map(lambda old, new: jnp.concatenate([old, new]), state.best_window, window)
            return _solved(both, best_weights, damping)

        def choose(condition: jax.Array, new: Any, old: Any) -> Any:
            return jax.tree.map(lambda one, other: jnp.where(condition, one, other), new, old)

        def renewed(new: Any, old: Any) -> Any:
            """The new window if it is the best; far from the posterior half of the draws before it stay.

            Draws of poor weights say where those lead astray, not what is right where the posterior is.
            """
            is_taken = self._is_second(problem) | (estimate < FAR) | (not is_hot)
            is_new = is_first | (is_best & is_taken)
            return jax.tree.map(lambda one, other: jnp.where(along(is_new, one), one, other), new, old)

        reshaped = choose(is_best, shrunk_factor(_flat(draws.positions)), state.scale)
        solved = jax.lax.cond(is_solving, solve, lambda: Solution(best_weights, damping))
        moved = state._replace(
            phase=jnp.where(is_exchanging, Phase.EXCHANGE, self._next_phase(phase, state, problem)).astype(jnp.int32),
            weights=solved.weights,
            best_weights=best_weights,
            best_estimate=best_estimate,
            best_positions=choose(is_best, draws.chains.position, state.best_positions),
            best_window=renewed(window, state.best_window),
            best_draws=renewed(draws.positions, state.best_draws),
            scale=reshaped if self.kernel is None else state.scale,
            damping=jnp.minimum(solved.ridge, MOST_DAMPING),
            round=state.round + jnp.where(is_first, NUM_SHAPING_ROUNDS, 1),
            num_poor=num_poor,
            is_first=jnp.array(False),
            done=is_over,
        )
        has_nothing = is_over & ~jnp.isfinite(best_estimate)
        num_drawn = draws.num_evaluations + jnp.where(is_first, 0, self.num_chains)
        info = LeastSquaresInfo(
            kl_estimate=jnp.where(is_first, jnp.nan, estimate),
            best_estimate=best_estimate,
            weight_change=jnp.where(is_solving, _relative_change(moved.weights, state.weights), jnp.nan),
            damping=damping,
            newton_decrement=jnp.asarray(jnp.nan),
            num_evaluations=problem.coreset_size * num_drawn + measured.num_evaluations,
            status=jnp.where(has_nothing, Status.GRADIENT_NOT_FINITE.value, Status.OK.value).astype(jnp.int32),
        )
        if not is_hot or self.kernel is not None:
            return moved, info
        is_lost = ~(draws.acceptance_rate > LEAST_ACCEPTANCE)
        again = state._replace(phase=jnp.asarray(Phase.COLD_ROUNDS, jnp.int32))
        nothing = self._nothing_learned(again, info.newton_decrement, info.num_evaluations)
        return choose(is_lost, (again, nothing), (moved, info))

    def _is_second(self, problem: Problem) -> jax.Array:
        """Draws (J,) of a window that are taken from the latest of two posteriors: every other step of all chains."""
        return jnp.arange(self.window_size(problem)) // self.num_chains % 2 == 1

    def _next_phase(self, phase: int, state: LeastSquaresState, problem: Problem) -> jax.Array:
        """Rounds go on as they are, but after one by slices trajectories are tried again if they were to begin with."""
        if phase == Phase.COLD_ROUNDS and self.starts_hot(problem):
            return jnp.where(state.search.has_converged, Phase.ROUNDS, Phase.COLD_ROUNDS)
        return jnp.asarray(phase)

    def _exchange(
        self, key: Key, state: LeastSquaresState, problem: Problem
    ) -> tuple[LeastSquaresState, LeastSquaresInfo]:
        """Rows without weight make room for rows that the best window misses, and a solve weighs them."""
        made = exchange_rows(
            key, problem, state.best_weights, state.best_window, state.best_draws, self._is_second(problem)
        )
        solved = _solved(made.window, state.best_weights, state.damping)
        moved = state._replace(
            phase=jnp.asarray(Phase.ROUNDS, jnp.int32),
            indices=made.indices,
            rows=made.rows,
            weights=solved.weights,
            best_window=made.window,
            damping=jnp.minimum(solved.ridge, MOST_DAMPING),
        )
        info = self._nothing_learned(moved, jnp.asarray(jnp.nan), jnp.asarray(made.num_evaluations, jnp.int64))
        return moved, info._replace(weight_change=_relative_change(moved.weights, state.best_weights))


def _solved(window: Window, best_weights: jax.Array, damping: jax.Array) -> Solution:
    """The weights to be tried next; the best ones again if there is no solution."""
    solved = nonnegative_ridge(window.values, window.totals, best_weights, damping)
    is_good = jnp.all(jnp.isfinite(solved.weights))
    return Solution(jnp.where(is_good, solved.weights, best_weights), solved.ridge)


def _relative_change(new: jax.Array, old: jax.Array) -> jax.Array:
    return jnp.linalg.norm(new - old) / jnp.linalg.norm(old)


def _dimension(position: Position) -> int:
    return sum(jnp.size(leaf) for leaf in jax.tree.leaves(position))


def _flat(positions: Position) -> jax.Array:
    return jax.vmap(lambda position: ravel_pytree(position)[0])(positions)
