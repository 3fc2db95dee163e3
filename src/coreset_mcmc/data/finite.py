"""Rows with values that are no finite numbers: counted in a pass, then refused by name and place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.data.leaf import Leaf
from coreset_mcmc.data.source import Source
from coreset_mcmc.data.task import Program

NONE = np.iinfo(np.int64).max
"""Stands for the first bad row where there is none."""


@dataclass(frozen=True)
class NotFinite(Program):
    """For each array, (A, 2): how many rows hold NaN or infinite values, and the number of the first of them."""

    infinite: bool = False
    """Whether infinite values are allowed: then those with NaN alone are counted."""

    def on_leaf(self, leaf: Leaf, arguments: Any) -> np.ndarray:
        found = [_found(array, leaf.start, self.infinite) for array in jax.tree.leaves(leaf.batch)]
        return np.array(found, np.int64)

    def merge(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        return np.stack([one[:, 0] + other[:, 0], np.minimum(one[:, 1], other[:, 1])], axis=1)


def _found(array: np.ndarray, start: int, infinite: bool) -> tuple[int, int]:
    if not np.issubdtype(array.dtype, np.floating):
        return 0, NONE
    is_good = ~np.isnan(array) if infinite else np.isfinite(array)
    if is_good.all():
        return 0, NONE
    bad = np.flatnonzero(~is_good.reshape(len(array), -1).all(axis=1))
    return bad.size, start + int(bad[0])


def check_finite(found: np.ndarray, source: Source) -> None:
    """Refuse what :class:`NotFinite` has found, with the first row as the user would find it."""
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(source.schema)]
    for path, (count, first) in zip(paths, found.tolist(), strict=True):
        if count:
            raise InputError(
                f"data{jax.tree_util.keystr(path)}",
                got=f"NaN or infinite values in {count} of {source.size} rows (first at {source.place_of(first)})",
                expected="finite values",
                fix="Drop or impute those rows, e.g. frame.dropna().",
            )


def check_in_memory(source: Source, infinite: bool = False) -> None:
    """Count and refuse at once, a leaf at a time; infinite values may be allowed."""
    program, layout = NotFinite(infinite), source.layout
    total: np.ndarray | None = None
    for leaf in source.leaves(layout, range(layout.num_leaves)):
        found = program.on_leaf(leaf, ())
        total = found if total is None else program.merge(total, found)
    if total is not None:
        check_finite(total, source)
