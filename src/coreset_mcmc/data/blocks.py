"""Values for each row in bounded memory: how the user's rows come, and how many of them are worked on at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.types import Batch
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.engine import Engine
from coreset_mcmc.data.leaf import Leaf
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.task import Program, RowFunction, for_each_row

VALUES_PER_BLOCK = 2**20
"""Numbers of one row and one draw that are held at once: 8 megabytes."""


def rows_of(data: Any, subject: str, engine: Engine | None = None, *, infinite: bool = False) -> Rows:
    """The user's rows, wherever they are; those in memory are checked, as by :func:`to_rows`."""
    require(
        data is not None,
        subject,
        got="no data",
        expected="the rows",
        fix="Pass them, or read the fit with cm.load(path, model=..., data=...).",
    )
    return to_rows(data, engine, infinite=infinite)


@dataclass(frozen=True)
class InBlocks(Program):
    """What a hashable function returns for each row, where each row takes many numbers on the way there.

    ``function(batch, place, *arguments)`` gets blocks that are as short as that asks for. ``place`` is the number of
    the leaf and that of the block's first row in it: what random numbers may depend on.
    """

    function: RowFunction
    values_per_row: int

    def on_leaf(self, leaf: Leaf, arguments: Any) -> Any:
        block = min(
            leaf.layout.block_rows, 1 << max((VALUES_PER_BLOCK // max(self.values_per_row, 1)).bit_length() - 1, 0)
        )
        padded = leaf.padded._replace(batch=(leaf.padded.batch, _places(leaf.layout.leaf_rows)))
        result = for_each_row(_Placed(self.function), block, padded, (np.int64(leaf.number), *arguments))
        return jax.tree.map(lambda array: np.asarray(array)[: leaf.count], result)

    def merge(self, one: Any, other: Any) -> Any:
        return jax.tree.map(lambda first, second: np.concatenate([first, second]), one, other)


@dataclass(frozen=True)
class _Placed:
    """A function of rows that wants to know where they are."""

    function: RowFunction

    def __call__(self, batch: tuple[Batch, jax.Array], weights: jax.Array, leaf: jax.Array, *arguments: Any) -> Any:
        del weights
        rows, places = batch
        return self.function(rows, (leaf, places[0]), *arguments)


@lru_cache(maxsize=16)
def _places(length: int) -> np.ndarray:
    return np.arange(length)
