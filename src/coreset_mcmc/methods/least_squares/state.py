"""What training by least squares carries from step to step, and what it reports: all of it NumPy arrays."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.methods.least_squares.curvature import RowCurvature
from coreset_mcmc.methods.least_squares.equations import Window
from coreset_mcmc.methods.least_squares.expansion import Expansion
from coreset_mcmc.methods.least_squares.taylor import TaylorSums
from coreset_mcmc.posterior.newton import LaplaceApproximation, NewtonSearchState, approximation_at
from coreset_mcmc.posterior.problem import Problem


class Phase:
    """What a step of training does."""

    SAMPLE_MODE, MODE, SCORES, COLD_ROUNDS, ROUNDS, EXCHANGE, CONDITIONAL, PILOT = range(8)
    """Find the mode of a sample; one Newton step to that of all rows; choose rows at the mode; a round by slice
    sampling, or a kernel of the user's; a round from a hot start; an exchange of rows; one Newton step of what rows
    read, and chains that find a centre, where there is no joint mode.
    """


class LeastSquaresState(NamedTuple):
    """The minimum that the next round needs."""

    phase: np.ndarray
    seed: np.ndarray
    """Of the key from which all random numbers follow, as numbers."""
    num_drawn: np.ndarray
    """Steps that were given a key; the search for the mode needs none, however many steps it takes."""
    search: NewtonSearchState | None
    """The Newton search of a hot start."""
    taylor: TaylorSums | None
    """The control variates, if there are rows enough for them; of no use before the mode is found."""
    expansion: Expansion | None
    """Of all rows, if a Gaussian term carries what it knows."""
    width: np.ndarray
    """By how much draws of the Gaussian at the mode are scaled, at most 1."""
    is_held: np.ndarray
    """Marks (d,) parameters that no row reads, where the centre is not a joint mode; none otherwise."""
    indices: np.ndarray
    """Row numbers of the coreset (M,), 64-bit."""
    rows: Batch
    """The rows themselves."""
    is_guard: np.ndarray
    """Marks (M,) rows that bound the support and never lose all their weight."""
    is_whole: np.ndarray
    """Marks (M,) rows that count once beside a Gaussian term, and are not solved for."""
    known: np.ndarray
    """Directions (k, d) that limited the last solve beside a Gaussian term."""
    weights: np.ndarray
    """To be tried in the next round."""
    slope: np.ndarray
    """s (d,) that goes with them, beside a Gaussian term; zero otherwise."""
    best_weights: np.ndarray
    best_slope: np.ndarray
    best_estimate: np.ndarray
    best_positions: Position
    """Where the chains were under the best weights; each round starts there."""
    best_window: Window
    best_draws: Position
    """The draws behind it, with a leading axis (J, ...)."""
    scale: np.ndarray
    """A factor (d, d) of the covariance of the best window, which shapes whatever moves the chains."""
    damping: np.ndarray
    round: np.ndarray
    num_poor: np.ndarray
    """Rounds in a row that brought the estimate down too little."""
    is_first: np.ndarray
    """Whether the next window is the first of a hot start."""
    done: np.ndarray


class LeastSquaresInfo(NamedTuple):
    """What one step of training reports."""

    kl_estimate: np.ndarray
    """Half the variance of T - L w over fresh draws of the weights tried; NaN in a step that judges none."""
    best_estimate: np.ndarray
    weight_change: np.ndarray
    """How far the solve moved the weights, as a share of their size; NaN in a step without one."""
    damping: np.ndarray
    newton_decrement: np.ndarray
    """Distance to the mode of all rows; infinite while only that of a sample is known, NaN after the search."""
    num_evaluations: np.ndarray
    status: np.ndarray


Stepped = tuple[LeastSquaresState, LeastSquaresInfo]
"""What every step of training returns."""


def gaussian_of(state: LeastSquaresState) -> LaplaceApproximation:
    """What the posterior looks like where the search has ended."""
    assert state.search is not None
    if np.any(state.is_held):
        return LaplaceApproximation(state.search.position, state.scale, state.search.derivatives.value)
    found = approximation_at(state.search)
    return found if state.width == 1.0 else replace(found, scale_factor=state.width * found.scale_factor)


def known_expansion(state: LeastSquaresState) -> Expansion | None:
    """What the Gaussian term rests on; None if there is none, or not yet."""
    return state.expansion if state.expansion is not None and bool(state.expansion.is_known) else None


def curvature_of(state: LeastSquaresState, problem: Problem, *, is_rough: bool = False) -> RowCurvature | None:
    """How much the rows of a problem curve, where a Gaussian term limits that."""
    expansion = known_expansion(state)
    return None if expansion is None else RowCurvature(problem, expansion, state.is_whole, state.known, is_rough)


def with_known(state: LeastSquaresState, known: np.ndarray) -> LeastSquaresState:
    """What a solve leaves for the next; nothing without a Gaussian term."""
    return state if known_expansion(state) is None else state._replace(known=known)


def in_phase(state: LeastSquaresState, phase: int) -> LeastSquaresState:
    """The same state, before a step of another kind."""
    return state._replace(phase=np.asarray(phase, np.int32))


def nothing_learned(state: LeastSquaresState, decrement: float, num_evaluations: int) -> LeastSquaresInfo:
    """The info of a step that tried no weights."""
    return LeastSquaresInfo(
        kl_estimate=np.asarray(np.nan),
        best_estimate=np.asarray(state.best_estimate),
        weight_change=np.asarray(np.nan),
        damping=np.asarray(state.damping),
        newton_decrement=np.asarray(decrement, np.float64),
        num_evaluations=np.asarray(num_evaluations, np.int64),
        status=np.zeros((), np.int32),
    )
