"""Rows that are never in memory as a whole: a source that reads runs of arrays, in files of any length."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pandas as pd

from coreset_mcmc.data.source import ArraySource, Source


class Streamed(Source):
    """Arrays behind the interface of files; it remembers what was read."""

    def __init__(self, arrays: Any) -> None:
        self._inner = ArraySource(arrays)
        self.reads: list[tuple[int, int]] = []

    @property
    def size(self) -> int:
        return self._inner.size

    @property
    def schema(self) -> Any:
        return self._inner.schema

    def read(self, start: int, stop: int) -> Any:
        self.reads.append((start, stop))
        return jax.tree.map(np.copy, self._inner.read(start, stop))

    def place_of(self, row: int) -> str:
        return f"file {row // 100}, row {row % 100}"

    def fingerprint(self, *, full: bool = False) -> Any:
        return self._inner.fingerprint(full=full)


class Tabular(Streamed):
    """One that can show rows as a table, with columns that were not fitted."""

    def frame_of(self, indices: np.ndarray) -> pd.DataFrame:
        return pd.DataFrame({"city": [f"city {row}" for row in indices]})
