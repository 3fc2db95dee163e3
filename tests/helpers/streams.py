"""Rows that come in runs of odd lengths: a stand-in for files that were not made for us."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.types import Batch
from tests.helpers.streamed import Streamed

RUNS = (7, 101, 1_003, 2_049)
"""Lengths of the runs, over and over; none goes into a leaf or a block."""


class Stream(Streamed):
    """The rows of arrays, each run a copy of its own; ``num_read`` counts rows that were asked for."""

    def __init__(self, arrays: Any) -> None:
        super().__init__(arrays)
        self._ends = np.cumsum(np.resize(RUNS, 2 + self.size // min(RUNS)))

    @property
    def num_read(self) -> int:
        return sum(stop - start for start, stop in self.reads)

    def read(self, start: int, stop: int) -> Batch:
        inside = self._ends[(self._ends > start) & (self._ends < stop)].tolist()
        self.reads.append((start, stop))
        runs = [jax.tree.map(np.copy, self._inner.read(*ends)) for ends in pairwise([start, *inside, stop])]
        return jax.tree.map(lambda *parts: np.concatenate(parts), *runs)
