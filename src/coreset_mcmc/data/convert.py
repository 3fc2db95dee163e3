"""From what a user holds (arrays, mappings, a DataFrame) to checked arrays with a common leading axis."""

from __future__ import annotations

from collections import Counter
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.precision import as_working_array
from coreset_mcmc.core.types import Batch
from coreset_mcmc.data.array import ArrayData
from coreset_mcmc.data.engine import Engine
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.source import ArraySource, Source


def to_batch(data: Any) -> Batch:
    """A DataFrame becomes a mapping from column names to arrays; a pytree keeps its structure."""
    if hasattr(data, "columns") and hasattr(data, "to_numpy"):
        repeated = sorted(name for name, count in Counter(map(str, data.columns)).items() if count > 1)
        require(
            not repeated,
            "data frame",
            got=f"repeated columns {repeated}",
            expected="one column for each name",
            fix="Rename or drop the repeated columns.",
        )
        return {str(name): data[name].to_numpy() for name in data.columns}
    return jax.tree.map(np.asarray, data)


def to_array_data(data: Any) -> ArrayData:
    """Check the data and put it on the device; must run inside double precision."""
    return ArrayData(jax.tree.map(as_working_array, _checked(to_batch(data))))


def to_rows(data: Any, engine: Engine | None = None) -> Rows:
    """What a user passes as data: arrays and tables in memory are checked, not copied; other rows are not touched."""
    if isinstance(data, Rows):
        return data if engine is None else Rows(data.source, engine, data.layout)
    return Rows(data if isinstance(data, Source) else ArraySource(_checked(to_batch(data))), engine)


def _checked(batch: Batch) -> Batch:
    leaves = jax.tree_util.tree_leaves_with_path(batch)
    require(
        bool(leaves),
        "data",
        got="no arrays",
        expected="arrays with a common leading row axis",
        fix="Pass an array, a mapping of arrays or a DataFrame.",
    )
    for path, leaf in leaves:
        _check_leaf(f"data{jax.tree_util.keystr(path)}", leaf)
    sizes = {f"data{jax.tree_util.keystr(path)}": leaf.shape[0] for path, leaf in leaves}
    require(
        len(set(sizes.values())) == 1,
        "data",
        got=f"leading axes {sizes}",
        expected="the same number of rows in every array",
        fix="Rows run along the first axis of each array; transpose or trim the odd one.",
    )
    require(
        next(iter(sizes.values())) > 0,
        "data",
        got="0 rows",
        expected="at least one row",
        fix="Check the filter that produced the data.",
    )
    return batch


def _check_leaf(name: str, leaf: np.ndarray) -> None:
    require(
        leaf.ndim >= 1,
        name,
        got=f"a scalar ({leaf!r})",
        expected="an array with a row axis",
        fix="Constants belong in the model, not in the data.",
    )
    require(
        leaf.dtype == bool or (np.issubdtype(leaf.dtype, np.number) and not np.iscomplexobj(leaf)),
        name,
        got=f"dtype {leaf.dtype}",
        expected="real numbers or booleans",
        fix="Encode text, dates and categories as numbers first, e.g. pandas.factorize or one-hot columns.",
    )
    if not np.issubdtype(leaf.dtype, np.floating):
        return
    is_bad = ~np.isfinite(leaf).all(axis=tuple(range(1, leaf.ndim)))
    if is_bad.any():
        rows = np.flatnonzero(is_bad)
        raise InputError(
            name,
            got=f"NaN or infinite values in {rows.size} of {leaf.shape[0]} rows (first at row {rows[0]})",
            expected="finite values",
            fix="Drop or impute those rows, e.g. frame.dropna().",
        )
