"""Means and products of columns, leaf by leaf, without loss of digits.

A leaf gives its number of rows n, the means m of its columns and the products C = sum_n (v_n - m)(v_n - m)'; with
weights, n is their sum, and means and products are weighted. Two of them are put together by

    m = m_1 + d n_2 / n,   C = C_1 + C_2 + d d' n_1 n_2 / n,   d = m_2 - m_1,   n = n_1 + n_2

(Chan, Golub and LeVeque 1983). All means are differences from a first estimate, so a column that varies little about a
large number keeps its digits.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

ROWS_PER_BLOCK = 4_096
"""A block stays in cache while all its columns are read."""
MOST_PRODUCTS = 230_000
"""Of a block, up to which OpenBLAS works in the caller's thread: its own would fight with those of an engine."""
FEWEST_ROWS = 64


class Moments(NamedTuple):
    """Of some rows."""

    num_rows: float
    """Or the sum of their weights."""
    means: np.ndarray
    products: np.ndarray

    def joined(self, later: Moments) -> Moments:
        if not (self.num_rows and later.num_rows):
            return later if later.num_rows else self
        total = self.num_rows + later.num_rows
        difference = later.means - self.means
        return Moments(
            total,
            self.means + difference * (later.num_rows / total),
            self.products
            + later.products
            + np.outer(difference, difference) * (self.num_rows * (later.num_rows / total)),
        )


def moments_of(values: np.ndarray, shift: np.ndarray, weights: np.ndarray | None = None) -> Moments:
    """Of the columns of ``values``, which are overwritten; means are those of ``values - shift``."""
    length, width = values.shape
    count = float(length if weights is None else weights.sum())
    if not length or not count:
        return Moments(0.0, np.zeros(width), np.zeros((width, width)))
    sums, own = np.zeros(width), weights
    for place, block in enumerate(blocks(values)):
        np.subtract(block, shift, out=block)
        if weights is not None:
            own = weights[place * ROWS_PER_BLOCK : place * ROWS_PER_BLOCK + len(block)]
        sums += block.sum(axis=0) if own is None else own @ block
    means = sums / count
    products = np.zeros((width, width))
    rows_at_once = min(max(MOST_PRODUCTS // (width * (width + 1)), FEWEST_ROWS), ROWS_PER_BLOCK)
    for place, block in enumerate(blocks(values, rows_at_once)):
        np.subtract(block, means, out=block)
        if weights is not None:
            own = weights[place * rows_at_once : place * rows_at_once + len(block)]
        products += block.T @ (block if own is None else block * own[:, None])
    return Moments(count, means, products)


class Ranges(NamedTuple):
    """The smallest and the largest value of each column; NaN if there is one."""

    low: np.ndarray
    high: np.ndarray

    def joined(self, other: Ranges) -> Ranges:
        return Ranges(np.minimum(self.low, other.low), np.maximum(self.high, other.high))


def ranges_of(values: np.ndarray, chosen: np.ndarray | None = None) -> Ranges:
    """Over the rows of a mask or over all."""
    low, high = np.full(values.shape[1], np.inf), np.full(values.shape[1], -np.inf)
    for place, block in enumerate(blocks(values)):
        start = place * ROWS_PER_BLOCK
        some = block if chosen is None else block[chosen[start : start + len(block)]]
        np.minimum(low, some.min(axis=0, initial=np.inf), out=low)
        np.maximum(high, some.max(axis=0, initial=-np.inf), out=high)
    return Ranges(low, high)


def blocks(values: np.ndarray, rows_at_once: int = ROWS_PER_BLOCK) -> Iterator[np.ndarray]:
    """Views of consecutive rows."""
    for start in range(0, len(values), rows_at_once):
        yield values[start : start + rows_at_once]


class LogMeanExp(NamedTuple):
    """The largest of some numbers, and the sum of exp(number - largest)."""

    largest: float
    total: float

    def joined(self, later: LogMeanExp) -> LogMeanExp:
        largest = max(self.largest, later.largest)
        if not np.isfinite(largest):
            return LogMeanExp(largest, 0.0)
        parts = [part.total * np.exp(part.largest - largest) for part in (self, later)]
        return LogMeanExp(largest, float(parts[0] + parts[1]))


def log_mean_exp(values: np.ndarray, weights: np.ndarray | None = None) -> LogMeanExp:
    """To be divided by the number of rows, or the sum of their weights, in the end."""
    if not values.size:
        return LogMeanExp(-np.inf, 0.0)
    largest = float(values.max())
    exponentials = np.exp(values - largest)
    return LogMeanExp(largest, float(exponentials.sum() if weights is None else exponentials @ weights))
