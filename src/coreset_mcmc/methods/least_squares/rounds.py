"""One round of training: draw a window, measure its equations, judge the weights, solve for the next ones."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.randomness import fold_in, generator_of
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.trees import flat_positions, positions_of
from coreset_mcmc.core.types import Key, Position
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.kernels.ellipses import Shape
from coreset_mcmc.kernels.shape import shrunk_factor_on_host
from coreset_mcmc.methods.contract import discrete_parts
from coreset_mcmc.methods.host_sampling import HostSampling, host_draws, is_python
from coreset_mcmc.methods.least_squares.drawing import WindowDrawing
from coreset_mcmc.methods.least_squares.equations import (
    Measured,
    Window,
    along,
    alternate_draws,
    half_variance,
    measure,
    relative_change,
    solve,
    without_nonfinite,
    without_strays,
)
from coreset_mcmc.methods.least_squares.guards import Guarded, guarded, kept_above_zero
from coreset_mcmc.methods.least_squares.judgement import NUM_SHAPING_ROUNDS, Judgement, judge
from coreset_mcmc.methods.least_squares.slope import directions_of, pulled, slope_beside
from coreset_mcmc.methods.least_squares.state import (
    LeastSquaresInfo,
    LeastSquaresState,
    Phase,
    Stepped,
    curvature_of,
    gaussian_of,
    in_phase,
    known_expansion,
    nothing_learned,
    with_known,
)
from coreset_mcmc.methods.least_squares.surroundings import look_around
from coreset_mcmc.methods.least_squares.whole import with_whole_rows
from coreset_mcmc.methods.least_squares.width import as_wide_as
from coreset_mcmc.posterior.problem import Problem
from coreset_mcmc.posterior.target import CoresetTarget

FAR = 50.0
"""An estimate in nats above which the weights lead astray."""

LEAST_ACCEPTANCE = 0.5
"""If fewer trajectories are accepted after their step size was tuned, the weights tried are not for them."""

AGREEING = 2.0
"""An estimate with satellites that is larger by more than this factor, and not below the tolerance, disagrees."""

MOST_GUARD_STEPS = 20
"""Rounds that may end with other rows because draws were beyond the support, besides those that judge."""

TOLERATED_NOISE = 0.1
"""Sums from a sample serve if they add less than this share of the larger of estimated KL and tolerance to it."""

FIRST_TOLERATED_NOISE = 0.05
"""The same for the first window, in nats, where there is no estimate yet; beside a Gaussian term, that of no rows."""


class _Drawn(NamedTuple):
    """J positions, and where the chains are that made them; those are the best ones if there were no chains."""

    positions: Position
    ends: Position
    acceptance_rate: float
    num_evaluations: int


class _Doubt(NamedTuple):
    """A window as it is judged, and the estimated KL with what is around its draws: zero if that was not looked at."""

    measured: Measured
    positions: Position
    around: float


@dataclass(frozen=True)
class Rounds:
    """How rounds go; the arguments are those of :class:`~coreset_mcmc.methods.LeastSquares`."""

    kernel: Kernel | None
    num_draws: int
    num_chains: int
    discard: float
    num_rounds: Any
    tolerance: Any
    chooses_rows: bool
    widening: float
    """Of the draws of the first window."""
    may_give_up: bool
    """Whether another way is left where the first rounds lead far astray."""

    def drawing(self, phase: int) -> WindowDrawing:
        """How chains move in a phase."""
        by_trajectories = phase == Phase.ROUNDS and self.kernel is None
        return WindowDrawing(self.kernel, self.num_draws, self.num_chains, self.discard, by_trajectories)

    def step(self, key: Key, state: LeastSquaresState, problem: Problem) -> Stepped:
        """Draw, measure, judge, solve, advance; where trajectories fail, the same round again by slices."""
        phase = int(state.phase)
        drawn = self._from_gaussian(key, state, problem) if state.is_first else self._from_chains(key, state, problem)
        num_drawn = problem.coreset_size * drawn.num_evaluations
        if self.drawing(phase).by_trajectories and not drawn.acceptance_rate > LEAST_ACCEPTANCE:
            again = in_phase(state, Phase.COLD_ROUNDS)
            return again, nothing_learned(again, np.nan, num_drawn)
        measured = self._measured(phase, drawn.positions, state, problem)
        better = None if state.is_first else self._guarded(state, problem, drawn, measured)
        if better is not None:
            num_evaluations = num_drawn + measured.num_evaluations + better.num_evaluations
            return better.state, nothing_learned(better.state, np.nan, num_evaluations)
        doubt = self._doubted(key, phase, state, drawn, measured, problem)
        measured, drawn = doubt.measured, drawn._replace(positions=doubt.positions)
        judged = measured._replace(window=pulled(measured.window, state.slope, drawn.positions))
        judgement = judge(
            state,
            judged,
            tolerance=self.tolerance,
            num_rounds=self.num_rounds,
            may_exchange=phase == Phase.ROUNDS and self.chooses_rows and problem.coreset_size < problem.data.size,
            may_give_up=self.may_give_up,
            around=doubt.around,
        )
        window = measured.window
        if state.is_first and known_expansion(state) is None:
            window = without_strays(window, state.scale.shape[0])
        window = without_nonfinite(window)
        state = with_whole_rows(state, window) if state.is_first else state
        precedes = state.is_first and self.chooses_rows and known_expansion(state) is not None
        tried = next_weights(state, judgement, window, drawn.positions, problem, precedes_exchange=bool(precedes))
        moved = self._advanced(phase, state, drawn, window, judgement, tried)
        has_moved = bool(np.any(np.ptp(flat_positions(drawn.positions), axis=0) > 0))
        return moved, self._info(state, moved, judged, judgement, num_drawn, has_moved=has_moved)

    def _doubted(
        self,
        key: Key,
        phase: int,
        state: LeastSquaresState,
        drawn: _Drawn,
        measured: Measured,
        problem: Problem,
    ) -> _Doubt:
        """A window that is good enough, or says nothing, and what is around its draws; measured again if they differ.

        Where control variates stand for the sums the log-likelihood is known to be smooth.
        """
        as_it_is = _Doubt(measured, drawn.positions, 0.0)
        is_judged = not state.is_first and int(state.round) >= NUM_SHAPING_ROUNDS
        own = half_variance(pulled(measured.window, state.slope, drawn.positions), state.weights)
        if not is_judged or measured.noise > 0.0 or not own < self.tolerance:
            return as_it_is
        expansion = known_expansion(state)
        term = None if expansion is None else expansion.term(problem, problem.rows, state.weights, state.slope)
        around = look_around(fold_in(key, 1), problem, state.weights, term, drawn.positions)
        num_evaluations = measured.num_evaluations + around.num_evaluations
        measured = measured._replace(num_evaluations=num_evaluations)
        if around.kl_estimate < max(self.tolerance, AGREEING * own):
            return as_it_is._replace(measured=measured)
        again = self._measured(phase, around.positions, state, problem)
        again = again._replace(num_evaluations=again.num_evaluations + num_evaluations)
        return _Doubt(again, around.positions, around.kl_estimate)

    def _guarded(self, state: LeastSquaresState, problem: Problem, drawn: _Drawn, measured: Measured) -> Guarded | None:
        """The state with rows that bound the support, if draws are beyond it: then the round is made again."""
        is_possible = np.isfinite(measured.window.totals)
        if is_possible.all() or int(state.num_drawn) >= self.num_rounds + NUM_SHAPING_ROUNDS + MOST_GUARD_STEPS:
            return None
        return guarded(state, problem, drawn.positions, is_possible)

    def _from_chains(self, key: Key, state: LeastSquaresState, problem: Problem) -> _Drawn:
        target, expansion = problem.target(state.weights), known_expansion(state)
        if expansion is not None:
            target = replace(target, term=expansion.term(problem, problem.rows, state.weights, state.slope))
        if self.draws_in_python(problem):
            return self._from_python(key, state, target)
        made = self.drawing(int(state.phase)).draw(key, target, state.best_positions, state.scale)
        num_evaluations = int(made.num_evaluations) + self.num_chains
        return _Drawn(made.positions, made.chains.position, float(made.acceptance_rate), num_evaluations)

    def draws_in_python(self, problem: Problem) -> bool:
        """Whether chains move in Python, because what they ask for is Python."""
        return self.kernel is None and is_python(problem.model) and not discrete_parts(problem.position)

    def sampler_in_python(self, state: LeastSquaresState, problem: Problem) -> HostSampling | None:
        """What samples in the end where chains move in Python; None elsewhere."""
        if not self.draws_in_python(problem):
            return None
        return HostSampling(centre_of(state), np.asarray(state.scale))

    def _from_python(self, key: Key, state: LeastSquaresState, target: CoresetTarget) -> _Drawn:
        """By ellipses around what is known so far, or by lines."""
        num_kept = self.num_draws // self.num_chains
        num_discarded = math.ceil(num_kept * self.discard / (1.0 - self.discard))
        shape = Shape(centre_of(state), np.asarray(state.scale))
        made = host_draws(key, state.best_positions, target, shape, num_kept + num_discarded, num_discarded)
        return _Drawn(made.positions, made.ends, 1.0, made.num_evaluations + self.num_chains)

    def _from_gaussian(self, key: Key, state: LeastSquaresState, problem: Problem) -> _Drawn:
        """The widened Laplace approximation."""
        assert state.search is not None
        noise = generator_of(key).normal(size=(self.num_draws, state.scale.shape[0]))
        flat = gaussian_of(state).draws(self.widening * noise)
        return _Drawn(positions_of(problem.position, flat), state.best_positions, 1.0, 0)

    def _measured(self, phase: int, positions: Position, state: LeastSquaresState, problem: Problem) -> Measured:
        """The equations of these draws, by control variates where those are known and good enough."""

        def tolerated(window: Window) -> float:
            if state.is_first and known_expansion(state) is None:
                return FIRST_TOLERATED_NOISE
            weights = np.zeros_like(state.weights) if state.is_first else state.weights
            estimate = half_variance(pulled(window, state.slope, positions), weights)
            if state.is_first:
                return float(max(FIRST_TOLERATED_NOISE, TOLERATED_NOISE * estimate))
            return float(TOLERATED_NOISE * max(estimate, self.tolerance))

        taylor = state.taylor if phase == Phase.ROUNDS else None
        return measure(problem, taylor, known_expansion(state), positions, tolerated)

    def _advanced(
        self,
        phase: int,
        state: LeastSquaresState,
        drawn: _Drawn,
        window: Window,
        judgement: Judgement,
        tried: Tried,
    ) -> LeastSquaresState:
        """The state after the round: what was best, and what is tried next."""
        is_renewed = self._is_renewed(phase, state, judgement)
        scale = state.scale
        if self.kernel is None and judgement.is_best:
            flat, has_term = flat_positions(drawn.positions), known_expansion(state) is not None
            scale = as_wide_as(scale, flat) if has_term else shrunk_factor_on_host(drawn.positions)
        phase_after = Phase.EXCHANGE if judgement.is_exchanging else _next_phase(phase, state)
        best_weights, best_estimate = judgement.best_weights, judgement.best_estimate
        best_slope = state.slope if judgement.is_best else state.best_slope
        if known_expansion(state) is not None and state.is_first:
            best_weights = tried.weights
            phase_after = Phase.EXCHANGE if self.chooses_rows and np.any(best_weights == 0) else phase_after
        if known_expansion(state) is not None and judgement.is_over and is_beaten_by_none(window, best_estimate):
            nothing = kept_above_zero(np.zeros_like(best_weights), state.is_guard)
            best_weights, best_slope = nothing, np.zeros_like(best_slope)
            best_estimate = half_variance(window, best_weights)
        return in_phase(with_known(state, tried.known), phase_after)._replace(
            weights=tried.weights,
            slope=tried.slope,
            best_weights=best_weights,
            best_slope=best_slope,
            best_estimate=np.asarray(best_estimate),
            best_positions=drawn.ends if judgement.is_best else state.best_positions,
            best_window=_choose_draws(is_renewed, window, state.best_window),
            best_draws=_choose_draws(is_renewed, drawn.positions, state.best_draws),
            scale=scale,
            damping=np.asarray(tried.damping),
            round=np.asarray(int(state.round) + (NUM_SHAPING_ROUNDS if state.is_first else 1), np.int32),
            num_poor=np.asarray(judgement.num_poor, np.int32),
            is_first=np.asarray(False),
            done=np.asarray(judgement.is_over),
        )

    def _is_renewed(self, phase: int, state: LeastSquaresState, judgement: Judgement) -> np.ndarray:
        """Marks the draws (J,) of the best window that new ones replace: all if the new window is best, or the first.

        In a hot start far from the posterior half of them stay. Draws of poor weights say where those lead astray, not
        what is right where the posterior is.
        """
        is_alternate = alternate_draws(self.num_draws, self.num_chains)
        is_taken = is_alternate | bool(judgement.estimate < FAR) | (phase != Phase.ROUNDS)
        result: np.ndarray = bool(state.is_first) | (judgement.is_best & is_taken)
        return result

    def _info(
        self,
        state: LeastSquaresState,
        moved: LeastSquaresState,
        measured: Measured,
        judgement: Judgement,
        num_drawn: int,
        *,
        has_moved: bool,
    ) -> LeastSquaresInfo:
        """Nothing to judge is an error, but for rows that say the same wherever the chains have been."""
        has_nothing = judgement.is_over and not np.isfinite(judgement.best_estimate)
        is_flat = has_moved and math.isfinite(half_variance(measured.window, state.weights))
        change = relative_change(moved.weights, state.weights) if judgement.is_solving else np.nan
        status = Status.NO_WINDOW_TO_JUDGE if has_nothing and not is_flat else Status.OK
        return LeastSquaresInfo(
            kl_estimate=np.asarray(np.nan if state.is_first else judgement.estimate),
            best_estimate=np.asarray(judgement.best_estimate),
            weight_change=np.asarray(change),
            damping=np.asarray(judgement.damping),
            newton_decrement=np.asarray(np.nan),
            num_evaluations=np.asarray(num_drawn + measured.num_evaluations, np.int64),
            status=np.asarray(status.value, np.int32),
        )


class Tried(NamedTuple):
    """What the next round tries, and the damping of the solve behind it."""

    weights: np.ndarray
    slope: np.ndarray
    damping: float
    known: np.ndarray
    """Directions for the next solve."""


def next_weights(
    state: LeastSquaresState,
    judgement: Judgement,
    window: Window,
    positions: Position,
    problem: Problem,
    *,
    precedes_exchange: bool = False,
) -> Tried:
    """Solve the equations of the best window and the new one together, or try the best weights again.

    ``precedes_exchange``: rows of weight zero, if there are any, make room for others before anything is tried.

    Beside a Gaussian term both windows are solved without the part that a slope explains, each of its own; the slope
    itself follows from the better one of those that were drawn by chains.
    """
    if not judgement.is_solving:
        best_slope = state.slope if judgement.is_best else state.best_slope
        return Tried(judgement.best_weights, best_slope, judgement.damping, state.known)
    pairs = [(state.best_window, state.best_draws), (window, positions)]
    slopes = [None if state.is_first else directions_of(known_expansion(state), draws) for _, draws in pairs]
    parts = [pair[0] if along is None else along.without(pair[0]) for pair, along in zip(pairs, slopes, strict=True)]
    both = Window(*(np.concatenate(sides) for sides in zip(*parts, strict=True)))
    solution = solve(
        both, judgement.best_weights, judgement.damping, curvature_of(state, problem, is_rough=precedes_exchange)
    )
    if precedes_exchange and not np.any(solution.weights == 0):
        state = with_known(state, solution.known)
        solution = solve(both, solution.weights, judgement.damping, curvature_of(state, problem))
    solution = solution._replace(weights=kept_above_zero(solution.weights, state.is_guard))
    newer = judgement.is_best or not np.isfinite(state.best_estimate)
    slope = slope_beside(solution.weights, pairs[newer][0], slopes[newer], state.slope)
    return Tried(solution.weights, slope, float(solution.ridge), solution.known)


def centre_of(state: LeastSquaresState) -> np.ndarray:
    """The mean (d,) of the best window; NaN as long as there is none."""
    flat = flat_positions(state.best_draws)
    centre: np.ndarray = flat.mean(axis=0)
    return centre if np.any(np.ptp(flat, axis=0) > 0) else np.full_like(centre, np.nan)


def is_beaten_by_none(window: Window, estimate: float) -> bool:
    """Beside a Gaussian term no rows at all are better than rows that explain less than nothing."""
    return half_variance(window, np.zeros(window.values.shape[1])) < estimate


def _next_phase(phase: int, state: LeastSquaresState) -> int:
    """Rounds go on as they are; but after one by slices trajectories are tried again if the mode is known."""
    is_hot = state.search is not None and bool(state.search.has_converged)
    return Phase.ROUNDS if phase == Phase.COLD_ROUNDS and is_hot else phase


def _choose_draws(is_new: np.ndarray, new: Any, old: Any) -> Any:
    """Of two trees with a leading axis of draws, each draw (J,) from one or the other."""
    return jax.tree.map(lambda one, other: np.where(along(is_new, one), one, other), new, old)
