"""A few rows of a batch, to try a model on."""

from __future__ import annotations

import jax
import numpy as np

from coreset_mcmc.core.types import Batch

NUM_ROWS = 8
"""Rows that are tried."""
NUM_SEEN = 1_024
"""Rows among which those with extreme values are looked for."""


def num_rows_of(batch: Batch) -> int:
    """The length of the leading axis."""
    return int(np.shape(jax.tree.leaves(batch)[0])[0])


def first_rows(batch: Batch, count: int) -> Batch:
    """The first few rows."""
    return jax.tree.map(lambda leaf: leaf[:count], batch)


def rows_at(batch: Batch, places: np.ndarray) -> Batch:
    """The rows at these places, by NumPy, which compiles nothing."""
    return jax.tree.map(lambda leaf: np.asarray(leaf)[places], batch)


def some_rows(batch: Batch, count: int = NUM_ROWS, shift: int = 0) -> Batch:
    """Rows spread evenly over the data; another ``shift`` gives others."""
    size = num_rows_of(batch)
    return rows_at(batch, (_spread(size, count) + shift) % size)


def unlike_rows(batch: Batch) -> Batch:
    """Rows spread over the data, and for each array the smallest and the largest of them, by the mean of a row.

    Otherwise a column that is hardly ever different, such as a rare event, would be a constant in so few rows.
    """
    seen = _spread(num_rows_of(batch), NUM_SEEN)
    places: list[int] = []
    for leaf in jax.tree.leaves(rows_at(batch, seen)):
        if leaf.size:
            means = leaf.reshape(len(seen), -1).mean(axis=1)
            places += [int(seen[np.argmin(means)]), int(seen[np.argmax(means)])]
    count = max(NUM_ROWS, len(set(places)))
    places += [int(place) for place in seen[_spread(len(seen), NUM_ROWS)]]
    return rows_at(batch, np.asarray(list(dict.fromkeys(places))[:count]))


def _spread(size: int, count: int) -> np.ndarray:
    return np.linspace(0, size - 1, min(count, size)).astype(int)
