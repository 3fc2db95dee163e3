"""Which rows of a table are rows of its design when some were dropped: a count for each leaf, not one for each row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coreset_mcmc.data.layout import Layout


@dataclass(frozen=True, eq=False)
class KeptRows:
    """How many rows of each leaf of the table were kept; rows of the design are numbered through."""

    layout: Layout
    counts: np.ndarray

    @property
    def size(self) -> int:
        return int(self.starts[-1])

    @property
    def num_dropped(self) -> int:
        return self.layout.size - self.size

    @cached_property
    def starts(self) -> np.ndarray:
        """The first row of the design in each leaf, and their number."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.counts)])

    def leaves_of(self, rows: np.ndarray) -> np.ndarray:
        """The leaf of the table that holds each row of the design."""
        found: np.ndarray = np.searchsorted(self.starts, rows, side="right") - 1
        return found

    def leaves_between(self, start: int, stop: int) -> list[int]:
        """Leaves that hold rows ``start`` to ``stop`` of the design, in ascending order."""
        first, last = self.leaves_of(np.array([start, stop - 1])).tolist()
        return [leaf for leaf in range(first, last + 1) if self.counts[leaf]]


def all_kept(layout: Layout) -> KeptRows:
    """Nothing was dropped."""
    counts = np.full(layout.num_leaves, layout.leaf_rows, np.int64)
    counts[-1] = layout.size - counts[:-1].sum()
    return KeptRows(layout, counts)
