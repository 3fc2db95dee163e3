"""A run of consecutive rows in memory, and its form for compiled programs."""

from __future__ import annotations

from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.types import Batch
from coreset_mcmc.data.layout import Layout


class Padded(NamedTuple):
    """What a compiled program gets: always the same shapes, whatever the number of rows."""

    batch: Batch
    """(leaf_rows, ...); the block that holds the last row is filled up with it, what comes after is never read."""
    weights: np.ndarray
    """(leaf_rows,): how often each row counts, zero for rows that are not there."""
    num_rows: np.ndarray
    """Rows that are there."""
    start: np.ndarray
    """The global number of the first, 64-bit."""


class Leaf:
    """Rows ``start`` to ``start + count`` as NumPy arrays of whatever type they are stored in."""

    def __init__(self, layout: Layout, number: int, batch: Batch, weights: np.ndarray | None = None) -> None:
        self.layout = layout
        self.number = number
        self.batch = batch
        self.weights = weights
        self.start, self.stop = layout.rows_of_leaf(number)

    @property
    def count(self) -> int:
        return self.stop - self.start

    @cached_property
    def padded(self) -> Padded:
        length, block = self.layout.leaf_rows, self.layout.block_rows
        count, start = np.asarray(self.count, np.int64), np.asarray(self.start, np.int64)
        if self.count == length:
            weights = _ones(length) if self.weights is None else np.asarray(self.weights, np.float64)
            return Padded(self.batch, weights, count, start)
        filled = -(-self.count // block) * block

        def pad(leaf: Any) -> np.ndarray:
            whole = np.zeros((length, *leaf.shape[1:]), leaf.dtype)
            whole[: self.count] = leaf
            whole[self.count : filled] = leaf[-1:]
            return whole

        weights = np.zeros(length)
        weights[: self.count] = 1.0 if self.weights is None else self.weights
        return Padded(jax.tree.map(pad, self.batch), weights, count, start)


@lru_cache(maxsize=16)
def _ones(length: int) -> np.ndarray:
    return np.ones(length)


def widened(batch: Batch) -> Batch:
    """Floats as 64-bit floats, integers as 64-bit integers: what models see, in compiled programs or by NumPy."""
    return jax.tree.map(lambda leaf: leaf.astype(working_type(leaf.dtype)), batch)


def working_type(dtype: Any) -> Any:
    """The type in which numbers of a stored type are computed with."""
    dtype = np.dtype(dtype)
    if np.issubdtype(dtype, np.floating):
        return np.dtype(np.float64)
    return np.dtype(np.int64) if np.issubdtype(dtype, np.integer) and dtype.itemsize < 8 else dtype


def as_device(batch: Batch) -> Batch:
    """Widened JAX arrays."""
    return jax.tree.map(jnp.asarray, widened(jax.tree.map(np.asarray, batch)))
