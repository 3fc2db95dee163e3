"""From what a user holds (arrays, mappings, a DataFrame) to checked arrays with a common leading axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.precision import as_working_array
from coreset_mcmc.core.types import Batch
from coreset_mcmc.data.array import ArrayData
from coreset_mcmc.data.engine import Engine
from coreset_mcmc.data.finite import check_in_memory
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.source import ArraySource, Source


def to_batch(data: Any) -> Batch:
    """A DataFrame becomes a mapping from column names to arrays; a pytree keeps its structure."""
    if hasattr(data, "columns") and hasattr(data, "to_numpy"):
        check_names("data frame", data.columns)
        return {str(name): data[name].to_numpy() for name in data.columns}
    return jax.tree.map(np.asarray, data)


def check_names(subject: str, names: Iterable[Any]) -> None:
    """Names that tell columns apart."""
    repeated = sorted(name for name, count in Counter(map(str, names)).items() if count > 1)
    require(
        not repeated,
        subject,
        got=f"repeated columns {repeated}",
        expected="one column for each name",
        fix="Rename or drop the repeated columns.",
    )


def to_array_data(data: Any) -> ArrayData:
    """Check the data and put it on the device; must run inside double precision."""
    return ArrayData(jax.tree.map(as_working_array, _checked(data)))


def to_rows(data: Any, engine: Engine | None = None, *, infinite: bool = False) -> Rows:
    """The user's data as rows: arrays are checked and used as they are, sources and rows pass.

    Whether all numbers of a source are finite is found out in the first pass over it
    (:class:`~coreset_mcmc.data.finite.NotFinite`); that they are numbers is checked here. ``infinite`` allows infinite
    values, such as bounds that are none.
    """
    if isinstance(data, Rows):
        return data if engine is None else Rows(data.source, engine, data.layout)
    if isinstance(data, Source):
        _ = data.schema
        return Rows(data, engine)
    return Rows(ArraySource(jax.tree.map(_known_to_jax, _checked(data, infinite))), engine)


def _known_to_jax(array: np.ndarray) -> np.ndarray:
    """The array itself, unless no compiled program takes its type or byte order."""
    kind = array.dtype.newbyteorder("=")
    if np.issubdtype(kind, np.floating) and kind.itemsize > np.dtype(np.float64).itemsize:
        kind = np.dtype(np.float64)
    return array.astype(kind, copy=False)


def _checked(data: Any, infinite: bool = False) -> Batch:
    """Arrays of finite numbers, unless infinite ones are allowed, with a common leading axis, not copied."""
    batch = to_batch(data)
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
    check_in_memory(ArraySource(batch), infinite)
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
