"""One round of training: draw from the weights to be tried, judge them, and find the next ones.

The first window of a hot start is not drawn from the weights, so it judges nothing. Where trajectories are not
accepted, the round is taken back, and slice sampling judges the same weights in a round of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from coreset_mcmc.core.status import Status
from coreset_mcmc.core.trees import flattened
from coreset_mcmc.core.types import Key
from coreset_mcmc.kernels.shape import shrunk_factor
from coreset_mcmc.methods.draws import Draws
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
)
from coreset_mcmc.methods.least_squares.judgement import NUM_SHAPING_ROUNDS, Judgement, judge
from coreset_mcmc.methods.least_squares.nonnegative import Solution
from coreset_mcmc.methods.least_squares.state import (
    LeastSquaresInfo,
    LeastSquaresState,
    Phase,
    Stepped,
    nothing_learned,
)
from coreset_mcmc.posterior.problem import Problem

FAR = 50.0
"""An estimate in nats above which the weights lead astray."""

LEAST_ACCEPTANCE = 0.5
"""If fewer trajectories are accepted after their step size was tuned, the weights tried are not for them."""

TOLERATED_NOISE = 0.1
"""Sums from a sample serve if they add less than this share of the larger of estimated KL and tolerance to it."""

FIRST_TOLERATED_NOISE = 0.05
"""The same for the first window, in nats; there is no estimate yet."""


@dataclass(frozen=True)
class Rounds:
    """How rounds go; the arguments are those of :class:`~coreset_mcmc.methods.LeastSquares`."""

    drawing: WindowDrawing
    num_rounds: Any
    tolerance: Any
    chooses_rows: bool

    def step(self, phase: int, key: Key, state: LeastSquaresState, problem: Problem) -> Stepped:
        """Draw, measure, judge, solve, advance."""
        draws = self.drawing.draw(phase, key, state, problem)
        measured = self._measured(phase, draws, state, problem)
        judgement = judge(
            state,
            measured,
            tolerance=self.tolerance,
            num_rounds=self.num_rounds,
            may_exchange=phase == Phase.ROUNDS and self.chooses_rows and problem.coreset_size < problem.data.size,
        )
        window = without_nonfinite(measured.window)
        solution = next_weights(state, judgement, window)
        moved = self._advanced(phase, state, draws, window, judgement, solution)
        info = self._info(state, moved, draws, measured, judgement, problem)
        if not self.drawing.uses_trajectories(phase):
            return moved, info
        is_lost = ~(draws.acceptance_rate > LEAST_ACCEPTANCE)
        again = state._replace(phase=jnp.asarray(Phase.COLD_ROUNDS, jnp.int32))
        nothing = nothing_learned(again, info.newton_decrement, info.num_evaluations)
        stepped: Stepped = _choose(is_lost, (again, nothing), (moved, info))
        return stepped

    def _measured(self, phase: int, draws: Draws, state: LeastSquaresState, problem: Problem) -> Measured:
        """The equations of these draws, by control variates where those are known and good enough."""

        def tolerated(window: Window) -> jax.Array:
            by_estimate = TOLERATED_NOISE * jnp.maximum(half_variance(window, state.weights), self.tolerance)
            return jnp.where(state.is_first, FIRST_TOLERATED_NOISE, by_estimate)

        return measure(problem, state.taylor if phase == Phase.ROUNDS else None, draws.positions, tolerated)

    def _advanced(
        self,
        phase: int,
        state: LeastSquaresState,
        draws: Draws,
        window: Window,
        judgement: Judgement,
        solution: Solution,
    ) -> LeastSquaresState:
        """The state after the round: what was best, and what is tried next."""
        is_best, is_renewed = judgement.is_best, self._is_renewed(phase, state, judgement)
        shape = state.scale
        if self.drawing.kernel is None:
            shape = jnp.where(is_best, shrunk_factor(flattened(draws.positions)), state.scale)
        phase_after = jnp.where(judgement.is_exchanging, Phase.EXCHANGE, _next_phase(phase, state))
        return state._replace(
            phase=phase_after.astype(jnp.int32),
            weights=solution.weights,
            best_weights=judgement.best_weights,
            best_estimate=judgement.best_estimate,
            best_positions=_choose(is_best, draws.chains.position, state.best_positions),
            best_window=_choose_draws(is_renewed, window, state.best_window),
            best_draws=_choose_draws(is_renewed, draws.positions, state.best_draws),
            scale=shape,
            damping=solution.ridge,
            round=state.round + jnp.where(state.is_first, NUM_SHAPING_ROUNDS, 1),
            num_poor=judgement.num_poor,
            is_first=jnp.array(False),
            done=judgement.is_over,
        )

    def _is_renewed(self, phase: int, state: LeastSquaresState, judgement: Judgement) -> jax.Array:
        """Marks the draws (J,) of the best window that new ones replace: all if the new window is best, or the first.

        In a hot start far from the posterior half of them stay. Draws of poor weights say where those lead astray, not
        what is right where the posterior is.
        """
        is_alternate = alternate_draws(self.drawing.num_draws, self.drawing.num_chains)
        is_taken = is_alternate | (judgement.estimate < FAR) | (phase != Phase.ROUNDS)
        return state.is_first | (judgement.is_best & is_taken)

    def _info(
        self,
        state: LeastSquaresState,
        moved: LeastSquaresState,
        draws: Draws,
        measured: Measured,
        judgement: Judgement,
        problem: Problem,
    ) -> LeastSquaresInfo:
        has_nothing = judgement.is_over & ~jnp.isfinite(judgement.best_estimate)
        num_drawn = draws.num_evaluations + jnp.where(state.is_first, 0, self.drawing.num_chains)
        change = relative_change(moved.weights, state.weights)
        return LeastSquaresInfo(
            kl_estimate=jnp.where(state.is_first, jnp.nan, judgement.estimate),
            best_estimate=judgement.best_estimate,
            weight_change=jnp.where(judgement.is_solving, change, jnp.nan),
            damping=judgement.damping,
            newton_decrement=jnp.asarray(jnp.nan),
            num_evaluations=problem.coreset_size * num_drawn + measured.num_evaluations,
            status=jnp.where(has_nothing, Status.GRADIENT_NOT_FINITE.value, Status.OK.value).astype(jnp.int32),
        )


def next_weights(state: LeastSquaresState, judgement: Judgement, window: Window) -> Solution:
    """Solve the equations of the best window and the new one together, or try the best weights again."""

    def solved() -> Solution:
        both = jax.tree.map(lambda old, new: jnp.concatenate([old, new]), state.best_window, window)
        return solve(both, judgement.best_weights, judgement.damping)

    unchanged = Solution(judgement.best_weights, judgement.damping)
    result: Solution = jax.lax.cond(judgement.is_solving, solved, lambda: unchanged)
    return result


def _next_phase(phase: int, state: LeastSquaresState) -> jax.Array:
    """Rounds go on as they are; but after one by slices trajectories are tried again if the mode is known."""
    if phase == Phase.COLD_ROUNDS and state.search is not None:
        return jnp.where(state.search.has_converged, Phase.ROUNDS, Phase.COLD_ROUNDS)
    return jnp.asarray(phase)


def _choose(condition: jax.Array, new: Any, old: Any) -> Any:
    """One tree or the other."""
    return jax.tree.map(lambda one, other: jnp.where(condition, one, other), new, old)


def _choose_draws(is_new: jax.Array, new: Any, old: Any) -> Any:
    """Of two trees with a leading axis of draws, each draw (J,) from one or the other."""
    return jax.tree.map(lambda one, other: jnp.where(along(is_new, one), one, other), new, old)
