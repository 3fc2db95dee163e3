"""Passes over all rows on the host, block by block: what a result needs for each row, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.types import Batch
from coreset_mcmc.data import ArrayData, to_array_data

VALUES_PER_BLOCK = 2**22
"""Numbers of one row and one draw that are held at once: 32 megabytes."""


def rows_of(data: Any, subject: str) -> ArrayData:
    """The user's rows, checked; must run in double precision."""
    require(
        data is not None,
        subject,
        got="no data",
        expected="the rows",
        fix="Pass them, or read the fit with cm.load(path, model=..., data=...).",
    )
    return to_array_data(data)


def by_blocks(
    function: Callable[[Batch, int], Any], data: ArrayData, num_values_per_row: int
) -> Iterator[tuple[slice, Any]]:
    """``function(rows, first row)`` of blocks of rows, as NumPy arrays whose leading axis is rows.

    The last block is filled up with its last row, so that one compiled program serves all.
    """
    size = min(data.size, max(VALUES_PER_BLOCK // max(num_values_per_row, 1), 1))
    for start in range(0, data.size, size):
        places = np.minimum(np.arange(start, start + size), data.size - 1)
        kept = min(size, data.size - start)
        result = function(data.take(jnp.asarray(places)), start)
        yield slice(start, start + kept), jax.tree.map(lambda leaf, kept=kept: np.asarray(leaf)[:kept], result)
