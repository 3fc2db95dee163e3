"""Data held in memory as a pytree of arrays with a common leading axis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.types import Batch, pytree, static

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

    def take(self, indices: jax.Array | np.ndarray) -> Batch:
        """The rows at ``indices``; by NumPy, which compiles nothing, if those are NumPy's."""
        if isinstance(indices, np.ndarray):
            return jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf)[indices]), self.arrays)
        return jax.tree.map(lambda leaf: jnp.take(leaf, indices, axis=0), self.arrays)

    def sum_over_rows(self, function: Callable[[Batch], Any]) -> Any:
        return self._reduce(lambda batch, start: function(batch), partial(jax.tree.map, jnp.add), 0)

    def map_over_rows(self, function: Callable[[Batch], jax.Array]) -> jax.Array:
        block, num_blocks, remainder = self._blocks()

        def values_from(start: Any, count: int) -> jax.Array:
            return function(jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, count), self.arrays))

        whole = jax.lax.map(lambda index: values_from(index * block, block), jnp.arange(num_blocks)).reshape(-1)
        return jnp.concatenate([whole, values_from(num_blocks * block, remainder)]) if remainder else whole

    def max_over_rows(self, function: Callable[[Batch], Any]) -> Any:
        return self._reduce(lambda batch, start: function(batch), partial(jax.tree.map, jnp.maximum), None)

    def argmax_over_rows(self, function: Callable[[Batch], jax.Array]) -> tuple[jax.Array, jax.Array]:
        def best_of(batch: Batch, start: Any) -> tuple[jax.Array, jax.Array]:
            scores = function(batch)
            scores = jnp.where(jnp.isnan(scores), -jnp.inf, scores)
            place = jnp.argmax(scores)
            return scores[place], (start + place).astype(jnp.int32)

        def better_of(one: tuple[jax.Array, jax.Array], other: tuple[jax.Array, jax.Array]) -> Any:
            return jax.tree.map(partial(jnp.where, other[0] > one[0]), other, one)

        result: tuple[jax.Array, jax.Array] = self._reduce(best_of, better_of, None)
        return result

    def _blocks(self) -> tuple[int, int, int]:
        """Rows in a block, whole blocks, and rows that remain.

        The largest block between half of ``rows_per_block`` and all of it that leaves no remainder, if there is one:
        a remainder is a second copy of the function, which takes as long to compile.
        """
        most = min(self.rows_per_block, self.size)
        even = (block for block in range(most, most // 2, -1) if self.size % block == 0)
        block = next(even, most)
        return block, *divmod(self.size, block)

    def _reduce(
        self, function: Callable[[Batch, Any], Any], combine: Callable[[Any, Any], Any], neutral: float | None
    ) -> Any:
        """Whole blocks in a compiled loop, then the remainder; no row is copied or padded.

        ``function`` gets a block and the number of its first row; blocks come in the order of the rows. ``neutral`` is
        what the loop starts from; without one it starts from the first block.
        """
        block, num_blocks, remainder = self._blocks()

        def value_from(start: Any, count: int) -> Any:
            rows = jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, count), self.arrays)
            return function(rows, start)

        first = int(num_blocks == 1 or neutral is None)
        if first:
            total = value_from(0, block)
        else:
            shapes = jax.eval_shape(lambda: value_from(0, block))
            total = jax.tree.map(lambda leaf: jnp.full(leaf.shape, neutral or 0, leaf.dtype), shapes)
        if num_blocks > 1:
            total = jax.lax.fori_loop(
                first, num_blocks, lambda index, running: combine(running, value_from(index * block, block)), total
            )
        if remainder:
            total = combine(total, value_from(num_blocks * block, remainder))
        return total
