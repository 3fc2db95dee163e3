"""The hot start of training: from the mode of the full posterior, with the rows that matter.

Damped Newton steps find the mode of all rows, from that of a sample if there are very many: each is a pass over the
rows. There the Laplace approximation gives the chains their starts and their shape; rows of the coreset are chosen by
how much they matter (:mod:`coreset_mcmc.methods.least_squares.scores`), and with many rows control variates are
prepared that stand in for passes over all of them (:mod:`coreset_mcmc.methods.least_squares.taylor`). Both samples come
from one more pass.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from scipy.special import ndtri

from coreset_mcmc.core.randomness import generator_of
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.trees import positions_of
from coreset_mcmc.core.types import Key
from coreset_mcmc.data.one_pass_sample import RowSample, sample_by_scores
from coreset_mcmc.methods.least_squares.amounts import FEW_OF_ALL
from coreset_mcmc.methods.least_squares.conditional import JOINT_STEPS, unread_coordinates
from coreset_mcmc.methods.least_squares.curvature import RowCurvature
from coreset_mcmc.methods.least_squares.expansion import expansion_at
from coreset_mcmc.methods.least_squares.scores import Scores, num_influence_draws, num_remainder_draws
from coreset_mcmc.methods.least_squares.state import (
    LeastSquaresState,
    Phase,
    Stepped,
    gaussian_of,
    in_phase,
    known_expansion,
    nothing_learned,
)
from coreset_mcmc.methods.least_squares.taylor import TaylorSums
from coreset_mcmc.methods.least_squares.width import believable_width
from coreset_mcmc.posterior.by_passes import flat_position, mode_key, posterior_of
from coreset_mcmc.posterior.newton import NewtonSearch, approximation_at
from coreset_mcmc.posterior.problem import Problem

WIDENING = 1.5
"""Standard deviations of the draws of the first window, in those of the Laplace approximation."""

THICK_SHELL = 10
"""Dimensions up to which the shell is thick enough for all of it."""

TOLERANCE = 0.3
"""Distance to the mode, in posterior standard deviations, at which the search ends.

Expansions are made where the last derivatives were evaluated; the Gaussian has its mean a last step ahead.
"""


@dataclass(frozen=True)
class ModeStart:
    """How training starts at the mode; the arguments are those of :class:`~coreset_mcmc.methods.LeastSquares`."""

    num_chains: int
    max_newton_steps: Any
    subsample_size: int | None
    chooses_rows: bool
    gaussian_term: bool

    @property
    def search(self) -> NewtonSearch:
        return NewtonSearch(max_iterations=self.max_newton_steps, tolerance=TOLERANCE)

    def samples_rows(self, problem: Problem) -> bool:
        """Whether there are so many rows that control variates pay."""
        return self.subsample_size is not None and problem.data.size >= FEW_OF_ALL * self.subsample_size

    def begins_on_sample(self, problem: Problem) -> bool:
        """Whether there are so many rows that even the search for the mode begins on few of them."""
        if self._memory(problem) in problem.passes.memory:
            return False
        return problem.data.size >= FEW_OF_ALL * len(problem.passes.resident.indices)

    def sample_mode_step(self, state: LeastSquaresState, problem: Problem) -> Stepped:
        """A search on all rows begins at the mode of the sample, or at the given start if it has none."""
        resident = problem.passes.resident
        factor = problem.data.size / len(resident.indices)
        few = problem.passes.weighted(resident.rows, np.full(len(resident.indices), factor))
        start = flat_position(problem.position)
        found, info = replace(posterior_of(problem), rows=few).find_mode(self.search, start)
        at = approximation_at(found).mean if found.has_converged else start
        moved = in_phase(state, Phase.MODE)._replace(search=self.search.begin(at))
        return moved, nothing_learned(moved, np.inf, int(info.num_evaluations))

    def newton_step(self, state: LeastSquaresState, problem: Problem) -> Stepped:
        """One step to the mode; without a mode the start is a cold one."""
        assert state.search is not None
        known = problem.passes.memory.get(self._memory(problem))
        if known is not None:
            moved = in_phase(state, Phase.SCORES)._replace(search=known)
            return moved, nothing_learned(moved, 0.0, 0)
        search, info = posterior_of(problem).newton_step(self.search, state.search)
        if search.has_converged:
            problem.passes.memory[self._memory(problem)] = search
        has_failed = int(info.status) != Status.OK.value or search.iteration >= self.max_newton_steps
        after = Phase.SCORES if search.has_converged else Phase.COLD_ROUNDS if has_failed else Phase.MODE
        moved = in_phase(state, after)._replace(search=search)
        if self.gaussian_term and not search.has_converged and (has_failed or search.iteration == JOINT_STEPS):
            moved = self._or_conditional(moved, problem)
        return moved, nothing_learned(moved, float(info.newton_decrement), int(info.num_evaluations))

    def _or_conditional(self, state: LeastSquaresState, problem: Problem) -> LeastSquaresState:
        """Where a joint mode is not to be found, and some parameters are read by no row, that of the others."""
        start = flat_position(problem.position)
        is_held = unread_coordinates(problem, start)
        if not is_held.any() or is_held.all():
            return state
        return in_phase(state, Phase.CONDITIONAL)._replace(is_held=is_held, search=self.search.begin(start))

    def _memory(self, problem: Problem) -> Hashable:
        return mode_key(problem.model, flat_position(problem.position))

    def no_taylor(self, problem: Problem) -> TaylorSums:
        """Something of the shape of control variates."""
        assert self.subsample_size is not None
        flat, count = flat_position(problem.position), self.subsample_size
        rows = jax.tree.map(lambda leaf: np.zeros((count, *leaf.shape[1:]), leaf.dtype), problem.passes.types(count))
        indices, nothing = np.zeros(count, np.int64), np.zeros((flat.size, flat.size))
        return TaylorSums(flat, np.zeros_like(flat), nothing, indices, rows, np.ones(count))

    def scores_task(self, problem: Problem) -> Scores:
        unravel = posterior_of(problem).unravel
        return Scores(problem.model, unravel, self.chooses_rows, self.samples_rows(problem), self.gaussian_term)

    def widening(self, num_coordinates: int) -> float:
        """Of draws from the Gaussian: beside a Gaussian term little in many dimensions, whose mass is a thin shell."""
        excess = WIDENING - 1.0
        return 1.0 + excess * min(1.0, THICK_SHELL / num_coordinates) if self.gaussian_term else WIDENING

    def scores_step(self, key: Key, state: LeastSquaresState, problem: Problem) -> Stepped:
        """Starts, shape, rows and control variates, once the search has converged."""
        assert state.search is not None
        search, scale = state.search, np.asarray(gaussian_of(state).scale_factor)
        width, num_probed = believable_width(problem, search.position, gaussian_of(state))
        state = state._replace(width=np.asarray(width))
        gaussian, generator = gaussian_of(state), generator_of(key)
        size, num_coordinates = problem.data.size, gaussian.mean.size
        noise = generator.normal(size=(max(self.num_chains, num_influence_draws(size)), num_coordinates))
        flat = gaussian.draws(noise)
        moved = in_phase(state, Phase.ROUNDS)._replace(
            best_positions=positions_of(problem.position, flat[: self.num_chains]),
            scale=scale,
            is_first=np.asarray(True),
        )
        if self.gaussian_term:
            moved = moved._replace(expansion=expansion_at(problem, search, moved.scale))
        task = self.scores_task(problem)
        if not task.is_needed:
            return self._scaled(moved, problem), nothing_learned(moved, np.nan, num_probed)
        chosen = iter(self._choose(generator, flat, task, moved, problem))
        if self.chooses_rows:
            rows = next(chosen)
            weights = 1.0 / rows.probabilities
            moved = moved._replace(indices=rows.indices, rows=rows.rows, weights=weights, best_weights=weights)
            moved = moved._replace(is_whole=(rows.probabilities == 1.0) & self.gaussian_term)
        if self.samples_rows(problem):
            taylor = taylor_at(problem, search.position, search.derivatives, next(chosen))
            moved = moved._replace(taylor=taylor)
        moved = self._scaled(moved, problem)
        num_evaluations = num_probed + task.num_evaluations(size, len(problem.passes.resident.indices))
        return moved, nothing_learned(moved, np.nan, num_evaluations)

    def _choose(
        self, generator: np.random.Generator, flat: np.ndarray, task: Scores, state: LeastSquaresState, problem: Problem
    ) -> list[RowSample]:
        """Rows of the coreset, and of the sample behind control variates, as far as they are asked for."""
        assert state.search is not None
        size, num_coordinates = problem.data.size, flat.shape[1]
        counts = [problem.coreset_size] if self.chooses_rows else []
        counts += [self.subsample_size] if self.samples_rows(problem) and self.subsample_size else []
        centre, gaussian = state.search.position, gaussian_of(state)
        noise = self.widening(num_coordinates) * stratified_normals(
            generator, num_remainder_draws(size), num_coordinates
        )
        return sample_by_scores(
            problem.passes,
            task,
            (flat[: num_influence_draws(size)], centre, gaussian.draws(noise) - centre),
            counts,
            seed=int(generator.integers(2**63)),
            uniform_rows=problem.passes.resident.rows,
            description="choosing rows",
        )

    def _scaled(self, state: LeastSquaresState, problem: Problem) -> LeastSquaresState:
        """Weights that curve no more than all rows, beside a Gaussian term."""
        expansion = known_expansion(state)
        if expansion is None:
            return state
        own = replace(problem, indices=state.indices, rows=state.rows)
        weights = RowCurvature(own, expansion, state.is_whole, state.known).scaled(state.weights)
        return state._replace(weights=weights, best_weights=weights)


SMALLEST_SHARE = 1e-12
"""So that no normal number is infinite."""


def stratified_normals(generator: np.random.Generator, count: int, num_coordinates: int) -> np.ndarray:
    """Standard normals (count, d), of which every coordinate has one in each of ``count`` equally likely intervals.

    So a few draws go far to either side along each of hundreds of parameters. Of independent ones some coordinate has
    none that does, and the rows of a level without an event would look as harmless as all others.
    """
    strata = generator.permuted(np.tile(np.arange(count)[:, None], num_coordinates), axis=0)
    shares = (strata + generator.uniform(size=strata.shape)) / count
    result: np.ndarray = ndtri(np.clip(shares, SMALLEST_SHARE, 1.0 - SMALLEST_SHARE))
    return result


def taylor_at(problem: Problem, centre: np.ndarray, full: Any, sample: RowSample) -> TaylorSums:
    """Expand at ``centre``, where the full log-density has the derivatives ``full``.

    The prior is part of both derivatives, so that it cancels.
    """
    few = problem.passes.weighted(sample.rows, 1.0 / sample.probabilities)
    own = replace(posterior_of(problem), rows=few).derivatives(centre, "control variates")
    return TaylorSums(
        centre=centre,
        gradient=full.gradient - own.gradient,
        hessian=full.hessian - own.hessian,
        indices=sample.indices,
        rows=sample.rows,
        probabilities=sample.probabilities,
    )
