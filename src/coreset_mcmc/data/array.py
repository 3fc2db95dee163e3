"""Data held in memory as a pytree of arrays with a common leading axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
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
        return self._reduce(lambda batch, start: function(batch), partial(jax.tree.map, jnp.add))

    def max_over_rows(self, function: Callable[[Batch], Any]) -> Any:
        return self._reduce(lambda batch, start: function(batch), partial(jax.tree.map, jnp.maximum))

    def argmax_over_rows(self, function: Callable[[Batch], jax.Array]) -> tuple[jax.Array, jax.Array]:
        def best_of(batch: Batch, start: Any) -> tuple[jax.Array, jax.Array]:
            scores = function(batch)
            scores = jnp.where(jnp.isnan(scores), -jnp.inf, scores)
            place = jnp.argmax(scores)
            return scores[place], (start + place).astype(jnp.int32)

        def better_of(one: tuple[jax.Array, jax.Array], other: tuple[jax.Array, jax.Array]) -> Any:
            return jax.tree.map(partial(jnp.where, other[0] > one[0]), other, one)

        return self._reduce(best_of, better_of)

    def _reduce(self, function: Callable[[Batch, Any], Any], combine: Callable[[Any, Any], Any]) -> Any:
        """Whole blocks in a compiled loop, then the remainder; no row is copied or padded.

        ``function`` gets a block and the number of its first row; blocks come in the order of the rows.
        """
        block = min(self.rows_per_block, self.size)
        num_blocks, remainder = divmod(self.size, block)

        def value_from(start: Any, count: int) -> Any:
            rows = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, count), self.arrays)
            return function(rows, start)

        total = value_from(0, block)
        if num_blocks > 1:
            total = jax.lax.fori_loop(
                1, num_blocks, lambda index, running: combine(running, value_from(index * block, block)), total
            )
        if remainder:
            total = combine(total, value_from(num_blocks * block, remainder))
        return total
