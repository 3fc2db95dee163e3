"""Passes over the rows of a design, block by block: each block stays in cache while all its columns are read."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

ROWS_PER_BLOCK = 4_096


def blocks(x: np.ndarray) -> Iterator[np.ndarray]:
    """Views of consecutive rows."""
    for start in range(0, len(x), ROWS_PER_BLOCK):
        yield x[start : start + ROWS_PER_BLOCK]


def column_ranges(x: np.ndarray, rows: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The smallest and the largest value of each column, of the rows of a mask or of all; NaN if there is one."""
    low, high = np.full(x.shape[1], np.inf), np.full(x.shape[1], -np.inf)
    for place, block in enumerate(blocks(x)):
        start = place * ROWS_PER_BLOCK
        chosen = block if rows is None else block[rows[start : start + len(block)]]
        np.minimum(low, chosen.min(axis=0, initial=np.inf), out=low)
        np.maximum(high, chosen.max(axis=0, initial=-np.inf), out=high)
    return low, high


def centre(x: np.ndarray) -> np.ndarray:
    """Subtract the mean of each column, in place; the means."""
    means = sum((block.sum(axis=0) for block in blocks(x)), np.zeros(x.shape[1])) / len(x)
    for block in blocks(x):
        np.subtract(block, means, out=block)
    return means


def scale(x: np.ndarray) -> np.ndarray:
    """Divide each column by its root mean square, in place; the root mean squares."""
    squares = sum((np.einsum("np,np->p", block, block) for block in blocks(x)), np.zeros(x.shape[1]))
    scales = np.sqrt(squares / len(x))
    for block in blocks(x):
        np.divide(block, scales, out=block)
    return scales


def gram(x: np.ndarray) -> np.ndarray:
    """x'x / N."""
    return sum((block.T @ block for block in blocks(x)), np.zeros((x.shape[1], x.shape[1]))) / len(x)
