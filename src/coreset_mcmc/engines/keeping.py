"""What a worker keeps from pass to pass, in bounded memory: opened parcels and rows.

When there is no room for more rows, those of other sources go, never those of the same: passes go round and round, and
throwing out the oldest rows would throw out each just before it is needed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.on_use import on_use
from coreset_mcmc.data.engine import GivesLeaves
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.leaf import Leaf

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = on_use("pandas")

MOST_PARCELS = 64


class Parcels:
    """The parcels that were used last, opened."""

    def __init__(self, most: int = MOST_PARCELS) -> None:
        self._most = most
        self._opened: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str) -> Any | None:
        with self._lock:
            if name in self._opened:
                self._opened.move_to_end(name)
            return self._opened.get(name)

    def keep(self, name: str, content: Any) -> Any:
        """Keep it, unless another thread was first: then use what that one has opened."""
        with self._lock:
            content = self._opened.setdefault(name, content)
            while len(self._opened) > self._most:
                self._opened.popitem(last=False)
            return content


class PartName(NamedTuple):
    """A part of the rows of a source."""

    rows: str
    leaf_rows: int
    part: int


class KeptRows:
    """Parts of rows, as leaves."""

    def __init__(self) -> None:
        self._parts: dict[PartName, list[Leaf]] = {}
        self._sizes: dict[PartName, int] = {}
        self._lock = threading.Lock()

    def get(self, name: PartName) -> list[Leaf] | None:
        return self._parts.get(name)

    def make_room(self, name: PartName, size: int, room: int) -> bool:
        """Whether these rows may be kept, once those of other sources are gone as far as needed."""
        with self._lock:
            others = [other for other in self._sizes if other.rows != name.rows]
            while others and sum(self._sizes.values()) + size > room:
                self._remove(others.pop(0))
            return sum(self._sizes.values()) + size <= room

    def keep(self, name: PartName, leaves: Sequence[Leaf], room: int) -> None:
        """Keep them, if there is room."""
        size = sum(size_of(leaf) for leaf in leaves)
        if self.make_room(name, size, room):
            own = [_own(leaf) for leaf in leaves]
            with self._lock:
                self._parts[name], self._sizes[name] = own, size

    def clear(self) -> None:
        with self._lock:
            self._parts.clear()
            self._sizes.clear()

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(self._sizes.values())

    def _remove(self, name: PartName) -> None:
        del self._parts[name], self._sizes[name]


class PartRows:
    """The leaves of one part: kept ones, or those that a reader gives, which are kept if there is room for ``size``."""

    def __init__(self, kept: KeptRows, name: PartName, reader: GivesLeaves, size: int, room: int) -> None:
        self._kept, self._name, self._reader, self._size, self._room = kept, name, reader, size, room

    def leaves(self, layout: Layout, numbers: Sequence[int]) -> Iterator[Leaf]:
        kept = self._kept.get(self._name)
        if kept is not None:
            yield from kept
            return
        has_room = self._kept.make_room(self._name, self._size, self._room)
        seen = []
        for leaf in self._reader.leaves(layout, numbers):
            if has_room:
                seen.append(leaf)
            yield leaf
        if has_room:
            self._kept.keep(self._name, seen, self._room)


def size_of(leaf: Leaf) -> int:
    """Bytes."""
    return sum(map(_size, jax.tree.leaves((leaf.batch, leaf.weights))))


def _size(values: np.ndarray | pd.DataFrame) -> int:
    """Of an array, or of the rows of a table, with their text."""
    if isinstance(values, pd.DataFrame):
        return int(values.memory_usage(index=False, deep=True).sum())
    return values.nbytes


def _own(leaf: Leaf) -> Leaf:
    """With arrays of their own: a slice would hold on to all of what it is a slice of."""
    batch, weights = jax.tree.map(_own_array, (leaf.batch, leaf.weights))
    return Leaf(leaf.layout, leaf.number, batch, weights)


def _own_array(array: np.ndarray | pd.DataFrame) -> np.ndarray | pd.DataFrame:
    if isinstance(array, pd.DataFrame):
        return array.copy()
    return array if array.flags.owndata else array.copy()
