"""What a pass costs when there is nothing to read and nothing to compute."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.types import Batch
from coreset_mcmc.data.engine import Engine
from coreset_mcmc.data.layout import FEWEST_LEAF_ROWS, LEAVES_PER_PART, Layout
from coreset_mcmc.data.leaf import Leaf
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.source import Source
from coreset_mcmc.data.task import Program, Task


@dataclass(frozen=True)
class CountLeaves(Program):
    """As little as a program can do."""

    def on_leaf(self, leaf: Leaf, arguments: Any) -> int:
        return 1

    def merge(self, one: int, other: int) -> int:
        return one + other


class NoRows(Source):
    """Rows that are never read, in so many parts."""

    def __init__(self, num_parts: int) -> None:
        self._num_parts = num_parts

    @property
    def size(self) -> int:
        return self._num_parts * LEAVES_PER_PART * FEWEST_LEAF_ROWS

    @property
    def schema(self) -> Batch:
        return jax.ShapeDtypeStruct((), np.dtype(np.float32))

    def read(self, start: int, stop: int) -> Batch:
        return np.zeros(stop - start, np.float32)

    def leaves(self, layout: Layout, numbers: Sequence[int]) -> Iterator[Leaf]:
        return (Leaf(layout, number, np.zeros(0, np.float32)) for number in numbers)

    def fingerprint(self, *, full: bool = False) -> Any:
        return {"rows": self.size}


def measure(engine: Engine, num_parts: int = 100, num_passes: int = 5) -> float:
    """Seconds of the fastest of several empty passes over so many parts, after one that is not counted."""
    source = NoRows(num_parts)
    rows = Rows(source, engine, Layout(source.size, FEWEST_LEAF_ROWS))
    seconds = []
    for _ in range(1 + num_passes):
        start = time.perf_counter()
        counted = sum(part for (part,) in rows.each_part([Task(CountLeaves())], "an empty pass"))
        seconds.append(time.perf_counter() - start)
        assert counted == num_parts * LEAVES_PER_PART
    return min(seconds[1:])
