"""A uniform sample of the rows as a data source: its sums are scaled up to estimate those over all rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.types import Batch, pytree, static
from coreset_mcmc.data.array import ArrayData


class OnRows:
    """What a source that only sums in its own way takes over from the rows it holds."""

    rows: ArrayData

    @property
    def size(self) -> int:
        return self.rows.size

    def take(self, indices: jax.Array | np.ndarray) -> Batch:
        return self.rows.take(indices)

    def map_over_rows(self, function: Callable[[Batch], jax.Array]) -> jax.Array:
        return self.rows.map_over_rows(function)

    def max_over_rows(self, function: Callable[[Batch], Any]) -> Any:
        return self.rows.max_over_rows(function)

    def argmax_over_rows(self, function: Callable[[Batch], jax.Array]) -> tuple[jax.Array, jax.Array]:
        return self.rows.argmax_over_rows(function)


@pytree
@dataclass(frozen=True)
class UniformSample(OnRows):
    """Rows drawn uniformly from ``full_size``; sums are scaled to the full data."""

    rows: ArrayData
    full_size: int = static()

    def sum_over_rows(self, function: Callable[[Batch], Any]) -> Any:
        factor = self.full_size / self.size
        return jax.tree.map(lambda value: factor * value, self.rows.sum_over_rows(function))
