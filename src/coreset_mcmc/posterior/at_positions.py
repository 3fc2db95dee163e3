"""Log-likelihoods of all rows at many positions, summed, in one pass.

From each row's log-likelihood its value at a reference is taken away *before* rows are summed: the sums reach 1e7 while
their differences are of order one. What is left is right up to a constant that all positions share. One compiled
program serves any number of positions: they come in groups inside a buffer of fixed length, and only groups that are
filled are evaluated.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.trees import first_position, num_positions
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.task import SumOver, Task
from coreset_mcmc.models.model import Model

BUFFER, GROUP = 1_024, 16
"""Positions in one call of the program, and evaluated at once."""


@dataclass(frozen=True)
class _Differences:
    """sum_n w_n (l_n(theta_k) - l_n(reference)) of a block, for K positions in groups."""

    model: Model

    is_repeated = True

    def __call__(
        self, batch: Batch, weights: jax.Array, positions: Position, reference: Position, num_groups: jax.Array
    ) -> jax.Array:
        at_reference = self.model.log_likelihood(reference, batch)
        at_reference = jnp.where(jnp.isfinite(at_reference), at_reference, 0.0)

        def add_group(number: Any, sums: jax.Array) -> jax.Array:
            group = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, number * GROUP, GROUP), positions)
            values = jax.vmap(lambda position: self.model.log_likelihood(position, batch))(group) - at_reference
            summed = jnp.where(weights != 0, values, 0.0) @ weights
            return jax.lax.dynamic_update_slice_in_dim(sums, summed, number * GROUP, 0)

        length = jax.tree.leaves(positions)[0].shape[0]
        result: jax.Array = jax.lax.fori_loop(0, num_groups, add_group, jnp.zeros(length))
        return result


def sums_task(model: Model, positions: Position, reference: Position) -> Task:
    """The task behind :func:`summed_differences` for at most :data:`BUFFER` positions; it returns (BUFFER,)."""
    count = num_positions(positions)

    def fill(leaf: Any) -> np.ndarray:
        array = np.asarray(leaf)
        return np.concatenate([array, np.repeat(array[-1:], BUFFER - count, axis=0)])

    arguments = (jax.tree.map(fill, positions), reference, np.int32(-(-count // GROUP)))
    return Task(SumOver(_Differences(model)), arguments)


def summed_differences(rows: Rows, model: Model, positions: Position, description: str) -> np.ndarray:
    """sum_n l_n(theta_k) - sum_n l_n(theta_0), (K,), in one pass over the rows.

    Minus infinity where a row is impossible, NaN where a row says so. A row that makes theta_0 itself impossible enters
    as it is for all positions.
    """
    positions = jax.tree.map(np.asarray, positions)
    count, reference = num_positions(positions), jax.tree.map(np.asarray, first_position(positions))
    tasks = []
    for start in range(0, count, BUFFER):
        some = jax.tree.map(lambda leaf, start=start: leaf[start : start + BUFFER], positions)
        tasks.append(sums_task(model.compiled or model, some, reference))
    results: list[np.ndarray] = rows.scan(tasks, description)
    return np.concatenate(results)[:count]
