"""A centre for posteriors without a useful mode: hierarchical models, and others whose likelihood does not read all.

The joint density of group effects and of their scale is a poor guide to its mass: with all effects at their mean it
grows without bound as the scale falls, and a mode near the mass understates the scale or does not exist. But a Gaussian
term expands the *likelihood* only, which reads the effects and not their scale. So, where the search for a joint mode
gets nowhere,

1. parameters that no row reads are held where the chains start, and the mode of the others is found;
2. there the likelihood of all rows becomes a Gaussian, and with it in place of the rows, the prior as it is, chains of
   the whole posterior are run, without a single pass over the rows;
3. the mean of their draws becomes the centre, with derivatives from one more pass.

(The integrated nested Laplace approximation of Rue, Martino and Chopin 2009 has the same two levels, on a grid of the
scales; chains need no grid.)
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coreset_mcmc.core.randomness import fold_in, generator_of
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.trees import flat_positions, positions_of
from coreset_mcmc.core.types import Key
from coreset_mcmc.methods.least_squares.drawing import WindowDrawing
from coreset_mcmc.methods.least_squares.expansion import expansion_at
from coreset_mcmc.methods.least_squares.state import LeastSquaresState, Phase, Stepped, in_phase, nothing_learned
from coreset_mcmc.posterior.by_passes import posterior_of
from coreset_mcmc.posterior.gaussian_term import GaussianTerm
from coreset_mcmc.posterior.newton import NewtonSearch, NewtonSearchState, approximation_at, held
from coreset_mcmc.posterior.problem import Problem

JOINT_STEPS = 12
"""Steps that the search for a joint mode is given where some parameters are read by no row."""

LEAST_ACCEPTANCE = 0.5

NUM_PILOTS = 3
"""Times the chains go on from where they are, with a shape that follows their draws."""


def unread_coordinates(problem: Problem, flat: np.ndarray) -> np.ndarray:
    """Marks (d,) the parameters that the likelihood of no row in memory depends on."""
    resident = problem.passes.resident
    few = replace(posterior_of(problem), rows=problem.passes.weighted(resident.rows, np.ones(len(resident.indices))))
    is_unread: np.ndarray = few.likelihood_gradient(flat, "which parameters rows read") == 0.0
    return is_unread


def conditional_step(state: LeastSquaresState, problem: Problem, search: NewtonSearch, most: int) -> Stepped:
    """One Newton step of the parameters that rows read: a pass."""
    assert state.search is not None
    now = state.search._replace(derivatives=held(state.search.derivatives, state.is_held))
    proposal = search.propose(now)
    with np.errstate(all="ignore"):
        there = posterior_of(problem).derivatives(proposal.position, "looking for a centre")
        moved, info = search.judge(now, proposal, held(there, state.is_held))
    is_there = np.array_equal(moved.position, proposal.position)
    moved = moved._replace(derivatives=there if is_there else state.search.derivatives)
    has_failed = int(info.status) != Status.OK.value or moved.iteration >= most
    after = Phase.PILOT if moved.has_converged else Phase.COLD_ROUNDS if has_failed else Phase.CONDITIONAL
    scale = np.asarray(
        approximation_at(moved._replace(derivatives=held(moved.derivatives, state.is_held))).scale_factor
    )
    evaluations = posterior_of(problem).num_derivative_evaluations
    state = in_phase(state, after)._replace(search=moved, scale=scale if moved.has_converged else state.scale)
    return state, nothing_learned(state, float(info.newton_decrement), evaluations)


def pilot_step(key: Key, state: LeastSquaresState, problem: Problem, drawing: WindowDrawing) -> Stepped:
    """Chains on prior and Gaussian likelihood; then the centre moves to the mean of their draws."""
    assert state.search is not None
    expansion = expansion_at(problem, state.search, state.scale)
    term = GaussianTerm(expansion.centre, expansion.gradient, expansion.curvature)
    target = replace(problem.target(np.zeros(problem.coreset_size)), term=term)
    noise = generator_of(key).normal(size=(drawing.num_chains, state.scale.shape[0]))
    positions = positions_of(problem.position, state.search.position + noise @ state.scale.T)
    scale, num_evaluations = state.scale, 0
    for number in range(NUM_PILOTS):
        drawn = drawing.draw(fold_in(key, number), target, positions, scale)
        positions, flat = drawn.chains.position, flat_positions(drawn.positions)
        num_evaluations += int(drawn.num_evaluations)
        if not drawn.acceptance_rate > LEAST_ACCEPTANCE or not np.all(np.isfinite(flat)):
            cold = in_phase(state, Phase.COLD_ROUNDS)._replace(is_held=np.zeros_like(state.is_held))
            return cold, nothing_learned(cold, np.nan, num_evaluations)
        scale = with_spread(scale, state.is_held, flat)
    centre = flat.mean(axis=0)
    found = posterior_of(problem).derivatives(centre, "derivatives at the mean")
    search = state.search._replace(position=centre, derivatives=found, has_converged=np.asarray(True))
    moved = in_phase(state, Phase.SCORES)._replace(search=search, scale=scale_at(search, state.is_held, flat))
    return moved, nothing_learned(moved, np.nan, num_evaluations + posterior_of(problem).num_derivative_evaluations)


def held_scale(search: NewtonSearchState, is_held: np.ndarray) -> np.ndarray:
    """A factor of the covariance that the curvature tells, with some parameters held."""
    return np.asarray(approximation_at(search._replace(derivatives=held(search.derivatives, is_held))).scale_factor)


def scale_at(search: NewtonSearchState, is_held: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """A factor of the covariance: by curvature of what rows read, by draws of what they do not."""
    return with_spread(held_scale(search, is_held), is_held, flat)


def with_spread(factor: np.ndarray, is_held: np.ndarray, flat: np.ndarray) -> np.ndarray:
    """The same factor, with the standard deviations of draws for parameters that no row reads."""
    spread = flat.std(axis=0, ddof=1)
    result = factor.copy()
    result[is_held, :] = 0.0
    result[:, is_held] = 0.0
    places = np.flatnonzero(is_held)
    result[places, places] = np.where(spread[is_held] > 0, spread[is_held], 1.0)
    return result
