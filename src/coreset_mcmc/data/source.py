"""Where rows lie: arrays in memory, files, a cluster's tables. A source reads; it computes nothing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.types import Batch
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.leaf import Leaf, working_type


class Source(ABC):
    """Rows in a fixed order that can be read in runs, any number of times.

    It can be pickled: workers elsewhere read for themselves.
    """

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of rows N, known without reading them."""

    @property
    @abstractmethod
    def schema(self) -> Batch:
        """The structure of a batch, with the shape and stored type of *one row* in place of each array."""

    @abstractmethod
    def read(self, start: int, stop: int) -> Batch:
        """Rows ``start`` to ``stop``, as NumPy arrays of their stored types."""

    @abstractmethod
    def fingerprint(self, *, full: bool = False) -> Any:
        """What tells these rows from others, in plain values: sizes, types, a sample; all bytes if ``full``."""

    def leaves(self, layout: Layout, numbers: Sequence[int]) -> Iterator[Leaf]:
        """These leaves, in ascending order; a source that reads ahead overrides this."""
        for number in numbers:
            yield Leaf(layout, number, self.read(*layout.rows_of_leaf(number)))

    def take(self, indices: np.ndarray) -> Batch:
        """The rows at these numbers, in that order, as they are stored; only leaves that hold some are read."""
        indices = np.asarray(indices, np.int64)
        order = np.argsort(indices, kind="stable")
        layout = self.layout
        numbers = np.unique(indices // layout.leaf_rows)
        parts = []
        for leaf in self.leaves(layout, numbers.tolist()):
            inside = indices[order]
            places = inside[(inside >= leaf.start) & (inside < leaf.stop)] - leaf.start
            parts.append(jax.tree.map(lambda array, places=places: array[places], leaf.batch))
        back = np.empty_like(order)
        back[order] = np.arange(len(order))
        if not parts:
            return jax.tree.map(lambda row: np.empty((0, *row.shape), row.dtype), self.schema)
        return jax.tree.map(lambda *arrays: np.concatenate(arrays)[back], *parts)

    def place_of(self, row: int) -> str:
        """How a user would find a row."""
        return f"row {row}"

    def whole(self) -> Batch | None:
        """All rows at once, if they are in memory anyway."""
        return None

    @property
    def layout(self) -> Layout:
        """The division into leaves, which follows from the number of rows and their width."""
        return Layout.of(self.size, sum(int(np.prod(row.shape, initial=1)) for row in jax.tree.leaves(self.schema)))

    @property
    def bytes_per_row(self) -> int:
        return sum(int(np.prod(row.shape, initial=1)) * row.dtype.itemsize for row in jax.tree.leaves(self.schema))


def batch_types(schema: Batch, count: int) -> Batch:
    """Shapes and working types of a batch of ``count`` rows, for abstract evaluation."""
    return jax.tree.map(lambda row: jax.ShapeDtypeStruct((count, *row.shape), working_type(row.dtype)), schema)


class ArraySource(Source):
    """Arrays in memory, used as they are."""

    def __init__(self, arrays: Batch) -> None:
        self.arrays = jax.tree.map(np.asarray, arrays)
        self._short: dict[tuple[Layout, int], Leaf] = {}
        """The last leaf, which is filled up once."""

    @property
    def size(self) -> int:
        return int(jax.tree.leaves(self.arrays)[0].shape[0])

    @property
    def schema(self) -> Batch:
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), self.arrays)

    def read(self, start: int, stop: int) -> Batch:
        return jax.tree.map(lambda leaf: leaf[start:stop], self.arrays)

    def leaves(self, layout: Layout, numbers: Sequence[int]) -> Iterator[Leaf]:
        for leaf in super().leaves(layout, numbers):
            is_short = leaf.count < layout.leaf_rows
            yield self._short.setdefault((layout, leaf.number), leaf) if is_short else leaf

    def take(self, indices: np.ndarray) -> Batch:
        places = np.asarray(indices, np.int64)
        return jax.tree.map(lambda leaf: leaf[places], self.arrays)

    def whole(self) -> Batch:
        return self.arrays

    def fingerprint(self, *, full: bool = False) -> Any:
        """Sizes and types, with the values of all rows, or of a few thousand that are spread over them."""
        places = slice(None) if full else np.unique(np.linspace(0, self.size - 1, 4_096).astype(np.int64))
        described = [(str(leaf.dtype), list(leaf.shape), leaf[places]) for leaf in jax.tree.leaves(self.arrays)]
        return {"rows": self.size, "structure": str(jax.tree.structure(self.arrays)), "arrays": described}
