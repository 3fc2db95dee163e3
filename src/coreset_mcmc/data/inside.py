"""Rows inside a compiled program: what methods use whose every step looks at rows of its own choice.

All rows are arrays of the program then, in the memory of one process. Methods that pass over the rows now and then use
:class:`coreset_mcmc.data.rows.Rows` instead, wherever the rows are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import jax
import numpy as np

from coreset_mcmc.core.types import Batch


class DataSource(Protocol):
    """Rows that can be counted, taken by index, and summed over."""

    @property
    def size(self) -> int:
        """The number of rows N."""

    def take(self, indices: jax.Array | np.ndarray) -> Batch:
        """The rows at ``indices``, in that order."""

    def sum_over_rows(self, function: Callable[[Batch], Any]) -> Any:
        """``function(batch)`` summed over blocks that together hold each row once, in bounded memory."""

    def map_over_rows(self, function: Callable[[Batch], jax.Array]) -> jax.Array:
        """``function(batch) -> (B,)`` of every block, as one array (N,)."""

    def max_over_rows(self, function: Callable[[Batch], Any]) -> Any:
        """The elementwise maximum of ``function(batch)`` over the same blocks."""

    def argmax_over_rows(self, function: Callable[[Batch], jax.Array]) -> tuple[jax.Array, jax.Array]:
        """The highest of the scores ``function(batch) -> (B,)`` and the number of its row, the first of equals.

        A score of NaN counts as -inf.
        """
