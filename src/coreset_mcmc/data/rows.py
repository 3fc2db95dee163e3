"""All rows of a data set, wherever they are: everything that touches them goes through this class.

Five operations: sums over rows, rows drawn by a score, rows by their numbers, a value for each row handed over as it
comes, and what is known without reading (size, schema, fingerprint). Several tasks can share one pass.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.types import Batch
from coreset_mcmc.core.watching import tell
from coreset_mcmc.data.array import ArrayData
from coreset_mcmc.data.engine import Engine, Local, merged
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.leaf import Leaf, Padded, widened
from coreset_mcmc.data.source import ArraySource, Source, batch_types
from coreset_mcmc.data.task import PerRow, Program, RowFunction, SumOver, Task

MOST_RESIDENT_ROWS, MOST_RESIDENT_VALUES = 131_072, 2**24
RESIDENT_SEED = 0
"""The sample belongs to the data: fits with several seeds share it."""


class Resident(NamedTuple):
    """A uniform sample of rows."""

    indices: np.ndarray
    """Sorted row numbers (R,)."""
    rows: Batch
    """In working types."""


class Rows:
    """A source of rows and who passes over them."""

    def __init__(self, source: Source, engine: Engine | None = None, layout: Layout | None = None) -> None:
        self.source = source
        self.engine = engine or Local()
        self.layout = layout or source.layout
        self.every_row_counts = False
        """Whether the fingerprint reads every row."""
        self.memory: dict[Hashable, Any] = {}
        """What is known about these rows and need not be found again: by a model, say, the mode."""
        self._resident: Resident | None = None
        self._known: list[Resident] = []

    @classmethod
    def of_arrays(cls, arrays: Batch) -> Rows:
        """Rows that are in memory, without a copy."""
        return cls(ArraySource(arrays))

    @property
    def size(self) -> int:
        """N."""
        return self.source.size

    def types(self, count: int) -> Batch:
        """Shapes and types of a batch of ``count`` rows, as models see it."""
        return batch_types(self.source.schema, count)

    @property
    def padded_types(self) -> Padded:
        """The rows as programs over leaves get them, as shapes and stored types."""
        length = self.layout.leaf_rows
        batch = jax.tree.map(lambda row: jax.ShapeDtypeStruct((length, *row.shape), row.dtype), self.source.schema)
        return Padded(batch, np.zeros(length), np.zeros((), np.int64), np.zeros((), np.int64))

    def fingerprint(self) -> Any:
        """What tells these rows from others."""
        return self.source.fingerprint(full=self.every_row_counts)

    def scan(self, tasks: Sequence[Task], description: str) -> list[Any]:
        """The results of several tasks for all rows, in one pass."""
        joined = list(tasks)
        wants_sample = self._resident is None and self.source.whole() is None
        if wants_sample:
            joined.append(Task(TakeRows(), (self._resident_indices,)))
        total: list[Any] = reduce(lambda one, other: merged(joined, one, other), self.each_part(joined, description))
        if wants_sample:
            self._resident = Resident(self._resident_indices, widened(total.pop()))
        return total

    @property
    def resident(self) -> Resident:
        """A uniform sample that stays in memory; all rows if there are few. The first pass brings it along."""
        if self._resident is None:
            self._resident = Resident(self._resident_indices, self.take(self._resident_indices))
        return self._resident

    @cached_property
    def _resident_indices(self) -> np.ndarray:
        values_per_row = sum(int(np.prod(row.shape, initial=1)) for row in jax.tree.leaves(self.source.schema))
        count = min(self.size, MOST_RESIDENT_ROWS, MOST_RESIDENT_VALUES // max(values_per_row, 1))
        if count == self.size:
            return np.arange(count, dtype=np.int64)
        chosen = np.random.default_rng(RESIDENT_SEED).choice(self.size, count, replace=False)
        return np.sort(chosen.astype(np.int64))

    def each_part(self, tasks: Sequence[Task], description: str) -> Iterator[list[Any]]:
        """The results for one part after the other, for outputs that are as long as the data."""
        layout, num_done = self.layout, 0
        tell(description, 0, self.size)
        parts = range(layout.num_parts)
        with closing(self.engine.each_part(self.source, layout, tasks, parts)) as passing:
            for part, results in zip(parts, passing, strict=True):
                num_done = layout.rows_of_leaf(layout.leaves_of_part(part)[-1])[1]
                tell(description, num_done, self.size)
                yield results

    def sum(self, function: RowFunction, *arguments: Any, description: str) -> Any:
        """The sum over all rows of ``function(batch, weights, *arguments)``, a pytree of NumPy arrays."""
        return self.scan([Task(SumOver(function), arguments)], description)[0]

    def values(self, function: RowFunction, *arguments: Any, description: str) -> Iterator[Any]:
        """``function(batch, weights, *arguments)``, one value for each row, part by part."""
        for (part,) in self.each_part([Task(PerRow(function), arguments)], description):
            yield part

    def take(self, indices: np.ndarray) -> Batch:
        """The rows at these numbers as NumPy arrays of working types; nothing is read that is in memory already."""
        indices = np.asarray(indices, np.int64)
        for known in (*self._known, *([self._resident] if self._resident is not None else [])):
            places = np.minimum(np.searchsorted(known.indices, indices), max(len(known.indices) - 1, 0))
            if len(known.indices) and np.array_equal(known.indices[places], indices):
                return jax.tree.map(lambda leaf, places=places: leaf[places], known.rows)
        return widened(self.source.take(indices))

    def remember(self, indices: np.ndarray, rows: Batch) -> None:
        """Keep these rows for :meth:`take`, in place of the ones that were kept last."""
        order = np.argsort(indices, kind="stable")
        kept = jax.tree.map(lambda leaf: np.asarray(leaf)[order], rows)
        self._known = [Resident(np.asarray(indices, np.int64)[order], kept)]

    def weighted(self, batch: Batch, weights: np.ndarray) -> Rows:
        """A few rows in memory that count as often as they weigh, for the same compiled programs."""
        stored = jax.tree.map(lambda leaf, row: np.asarray(leaf).astype(row.dtype), batch, self.source.schema)
        source = WeightedArrays(stored, np.asarray(weights, np.float64))
        return Rows(source, Local(), Layout(source.size, self.layout.leaf_rows))

    def in_programs(self) -> ArrayData:
        """All rows as arrays of compiled programs, in working types: a copy in the memory of this process."""
        arrays = self.source.whole()
        if arrays is None:
            arrays = self.source.read(0, self.size)
        return ArrayData(jax.tree.map(jax.numpy.asarray, widened(arrays)))


class WeightedArrays(ArraySource):
    """Arrays in memory of rows that do not all count alike."""

    def __init__(self, arrays: Batch, weights: np.ndarray) -> None:
        super().__init__(arrays)
        self.weights = weights

    def leaves(self, layout: Layout, numbers: Sequence[int]) -> Iterator[Leaf]:
        for number in numbers:
            start, stop = layout.rows_of_leaf(number)
            yield Leaf(layout, number, self.read(start, stop), self.weights[start:stop])


@dataclass(frozen=True)
class TakeRows(Program):
    """Rows at given numbers, as part of a pass that is made anyway; the argument is sorted numbers."""

    def on_leaf(self, leaf: Leaf, arguments: Any) -> Batch:
        indices = arguments[0]
        first, last = np.searchsorted(indices, [leaf.start, leaf.stop])
        places = indices[first:last] - leaf.start
        return jax.tree.map(lambda array: array[places], leaf.batch)

    def merge(self, one: Batch, other: Batch) -> Batch:
        return jax.tree.map(lambda first, second: np.concatenate([first, second]), one, other)
