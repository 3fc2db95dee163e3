"""Heights and climbs of many positions at once, on a few hundred rows that stand for all of them.

Two small programs serve every model: one for the log-densities of many positions, one that takes all climbers uphill
by damped Newton steps. Rows and weights are arguments and always as many, so other data compile nothing anew. Each
climber may have weights of its own: one that sees a handful of rows ends where those rows want it to be.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.compilation import quick_compilation
from coreset_mcmc.core.trees import dimension, positions_of
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.models.host import HostFunction
from coreset_mcmc.models.model import Model
from coreset_mcmc.models.rows import rows_at
from coreset_mcmc.posterior.newton import NewtonSearch, held
from coreset_mcmc.posterior.second_order import to_second_order
from coreset_mcmc.posterior.target import finite_or_impossible, weighted_sum

NUM_ROWS = 512
"""In the sample; shorter data are filled up with rows of weight zero."""
BUFFER, GROUP = 4_096, 64
"""Positions in one call of the first program, and evaluated at once."""
NUM_STEPS = 24
"""Most steps of a climb."""
NEARLY_ALL = 0.9
"""Share of the climbers that must arrive; others, unless they are the highest, would make all of them wait."""
TOLERANCE = 0.01
"""Posterior standard deviations from the peak at which a climb ends."""
CLIMBERS_IN_PYTHON = 8
"""Of a log-likelihood in Python, whose Hessians are many evaluations."""
MOST_CLIMBING_COORDINATES = 128
"""With more, Hessians of many climbers are too much work: positions are scored and not climbed."""


class Climbed(NamedTuple):
    """Where climbers have arrived; S of them."""

    positions: np.ndarray
    """(S, d)"""
    values: np.ndarray
    hessians: np.ndarray
    has_converged: np.ndarray
    log_likelihoods: np.ndarray
    """Of each row of the sample (S, n)."""


class Sample:
    """A model and few of its rows, each of which counts for many."""

    def __init__(self, model: Model, rows: Rows, position: Position, seed: int) -> None:
        resident = rows.resident
        count = min(len(resident.indices), NUM_ROWS)
        places = np.sort(np.random.default_rng(seed).choice(len(resident.indices), count, replace=False))
        filled = np.concatenate([places, np.full(NUM_ROWS - count, places[-1])])
        self.model, self.position, self.size = model.compiled or model, position, rows.size
        self.rows: Batch = rows_at(resident.rows, filled)
        self.count = count
        """Rows that are there."""
        self.weights = np.where(np.arange(NUM_ROWS) < count, rows.size / count, 0.0)
        self.num_evaluations = 0

    @property
    def num_climbers(self) -> int:
        """At once; fewer where Hessians are dear, none where there are no gradients."""
        num_coordinates = dimension(self.position)
        leaves = jax.tree.leaves(self.position)
        is_smooth = self.model.differentiable and all(
            np.issubdtype(np.asarray(leaf).dtype, np.floating) for leaf in leaves
        )
        if not is_smooth or num_coordinates > MOST_CLIMBING_COORDINATES:
            return 0
        if isinstance(self.model.log_likelihood, HostFunction):
            return CLIMBERS_IN_PYTHON
        return 32 if num_coordinates <= 8 else 16

    def heights(self, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Log-prior and log-likelihood (P,) of flat positions (P, d); minus infinity where there is none."""
        priors, likelihoods = [], []
        for start in range(0, len(flat), BUFFER):
            some = flat[start : start + BUFFER]
            filled = np.concatenate([some, np.repeat(some[-1:], BUFFER - len(some), axis=0)])
            num_groups = np.int32(-(-len(some) // GROUP))
            found = _heights()(self.model, self.rows, self.weights, positions_of(self.position, filled), num_groups)
            priors.append(np.asarray(found[0])[: len(some)])
            likelihoods.append(np.asarray(found[1])[: len(some)])
            self.num_evaluations += len(some) * self.count
        return np.concatenate(priors), np.concatenate(likelihoods)

    def climb(self, flat: np.ndarray, weights: np.ndarray | None = None, is_held: np.ndarray | None = None) -> Climbed:
        """From flat positions (at most ``num_climbers``, d), by default on all rows of the sample."""
        count, lanes = len(flat), self.num_climbers
        own = np.broadcast_to(self.weights, (count, NUM_ROWS)) if weights is None else weights
        nothing = np.zeros(flat.shape[1], bool)

        def fill(array: np.ndarray) -> np.ndarray:
            return np.concatenate([array, np.repeat(array[-1:], lanes - count, axis=0)])

        unravel = ravel_pytree(self.position)[1]
        found = climb_program()(
            self.model, unravel, self.rows, fill(own), fill(flat), nothing if is_held is None else is_held
        )
        self.num_evaluations += int(found[1]) * lanes * self.count * (1 + flat.shape[1])
        climbed: Climbed = jax.tree.map(lambda leaf: np.asarray(leaf)[:count], found[0])
        return climbed


@cache
def _heights() -> Any:
    def heights(model: Model, rows: Batch, weights: jax.Array, positions: Position, num_groups: jax.Array) -> Any:
        def at(position: Position) -> tuple[jax.Array, jax.Array]:
            likelihood = weighted_sum(weights, model.log_likelihood(position, rows))
            return finite_or_impossible(model.log_prior(position)), finite_or_impossible(likelihood)

        def put(number: Any, found: Any) -> Any:
            group = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, number * GROUP, GROUP), positions)
            return jax.tree.map(
                lambda whole, part: jax.lax.dynamic_update_slice_in_dim(whole, part, number * GROUP, 0),
                found,
                jax.vmap(at)(group),
            )

        return jax.lax.fori_loop(0, num_groups, put, (jnp.zeros(BUFFER), jnp.zeros(BUFFER)))

    return jax.jit(heights, static_argnums=0, compiler_options=quick_compilation(1) or None)


@cache
def climb_program() -> Any:
    """Compiled once for each model."""
    search = NewtonSearch(max_iterations=10 * NUM_STEPS, tolerance=TOLERANCE)

    def climb(model: Model, unravel: Any, rows: Batch, weights: jax.Array, flat: jax.Array, is_held: jax.Array) -> Any:
        def density(at: jax.Array, own: jax.Array) -> jax.Array:
            position = unravel(at)
            return model.log_prior(position) + weighted_sum(own, model.log_likelihood(position, rows))

        def derivatives(at: jax.Array, own: jax.Array) -> Any:
            found = to_second_order(lambda position: density(position, own), at)
            return held(found._replace(value=finite_or_impossible(found.value)), is_held)

        def one_step(state: Any, own: jax.Array) -> Any:
            proposal = search.propose(state)
            return search.judge(state, proposal, derivatives(proposal.position, own))[0]

        def go_on(carry: Any) -> jax.Array:
            number, states = carry
            values, arrived = states.derivatives.value, states.has_converged
            is_behind = jnp.max(jnp.where(arrived, -jnp.inf, values)) < jnp.max(jnp.where(arrived, values, -jnp.inf))
            is_over: jax.Array = (number >= NUM_STEPS) | ((jnp.mean(arrived) > NEARLY_ALL) & is_behind)
            return ~is_over

        def all_steps(carry: Any) -> Any:
            number, states = carry
            return number + 1, jax.vmap(one_step)(states, weights)

        begun = jax.vmap(search.begin)(flat)
        number, ended = jax.lax.while_loop(go_on, all_steps, (0, begun))
        values: Any = jax.vmap(lambda at: model.log_likelihood(unravel(at), rows))(ended.position)
        at = ended.derivatives
        return Climbed(ended.position, at.value, at.hessian, ended.has_converged, values), number

    return jax.jit(climb, static_argnums=(0, 1), compiler_options=quick_compilation(1) or None)
