"""Rows that come in runs of odd lengths and are never there all at once: a stand-in for files."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.types import Batch
from coreset_mcmc.data.source import ArraySource, Source

RUNS = (7, 101, 1_003, 2_049)
"""Lengths of the runs, over and over; none goes into a leaf or a block."""


class Stream(Source):
    """The rows of arrays, each run a copy of its own; ``num_read`` counts rows that were asked for."""

    def __init__(self, arrays: Any) -> None:
        self._held = ArraySource(arrays)
        lengths = np.resize(RUNS, 2 + self.size // min(RUNS))
        self._ends = np.cumsum(lengths)
        self.num_read = 0

    @property
    def size(self) -> int:
        return self._held.size

    @property
    def schema(self) -> Batch:
        return self._held.schema

    def read(self, start: int, stop: int) -> Batch:
        self.num_read += stop - start
        inside = self._ends[(self._ends > start) & (self._ends < stop)].tolist()
        bounds = [start, *inside, stop]
        runs = [jax.tree.map(np.copy, self._held.read(first, last)) for first, last in itertools.pairwise(bounds)]
        return jax.tree.map(lambda *parts: np.concatenate(parts), *runs)

    def fingerprint(self, *, full: bool = False) -> Any:
        return self._held.fingerprint(full=full)
