"""Steps of training that look for the mode of the full posterior, before any weights are tried."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Key
from coreset_mcmc.methods.least_squares.start import ModeStart
from coreset_mcmc.methods.least_squares.state import LeastSquaresState, Phase, Stepped, nothing_learned
from coreset_mcmc.posterior.problem import Problem


def sample_mode_step(start: ModeStart, state: LeastSquaresState, problem: Problem) -> Stepped:
    """The mode of a sample, from where few steps on all rows remain."""
    assert state.search is not None
    search, num_evaluations = start.from_sample(state.search, problem)
    moved = state._replace(phase=jnp.asarray(Phase.MODE, jnp.int32), search=search)
    return moved, nothing_learned(moved, jnp.asarray(jnp.inf), num_evaluations)


def newton_step(start: ModeStart, key: Key, state: LeastSquaresState, problem: Problem) -> Stepped:
    """One step to the mode; at the mode, all that the first window needs. Without a mode the start is a cold one."""
    assert state.search is not None
    search, info = start.search.step(state.search, problem)
    has_failed = (info.status != Status.OK.value) | (search.iteration >= start.max_newton_steps)
    after = jnp.where(search.has_converged, Phase.ROUNDS, jnp.where(has_failed, Phase.COLD_ROUNDS, Phase.MODE))
    searched = state._replace(search=search, phase=after.astype(jnp.int32))

    def at_the_mode() -> tuple[LeastSquaresState, jax.Array]:
        found = start.at_the_mode(key, search, problem)
        moved = searched._replace(best_positions=found.positions, scale=found.scale, is_first=jnp.array(True))
        if found.taylor is not None:
            moved = moved._replace(taylor=found.taylor)
        if found.chosen is not None:
            indices, rows, weights = found.chosen
            moved = moved._replace(indices=indices, rows=rows, weights=weights, best_weights=weights)
        return moved, jnp.asarray(found.num_evaluations, jnp.int64)

    moved, num_evaluations = jax.lax.cond(
        search.has_converged, at_the_mode, lambda: (searched, jnp.zeros((), jnp.int64))
    )
    return moved, nothing_learned(moved, info.newton_decrement, info.num_evaluations + num_evaluations)
