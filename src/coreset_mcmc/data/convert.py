"""From what a user holds (arrays, mappings, a DataFrame) to checked arrays with a common leading axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
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

MANY_COLUMNS = 10
"""Times as many columns as rows look as if they were the rows."""


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
    check_row_axis(batch)
    require(
        leaves[0][1].shape[0] > 0,
        "data",
        got="0 rows",
        expected="at least one row",
        fix="Check the filter that produced the data.",
    )
    check_in_memory(ArraySource(batch), infinite)
    return batch


def check_row_axis(batch: Batch) -> None:
    """Every array has the same number of rows, along its first axis."""
    leaves = jax.tree_util.tree_leaves_with_path(batch)
    shapes = {f"data{jax.tree_util.keystr(path)}": np.shape(leaf) for path, leaf in leaves}
    lengths = Counter(shape[0] for shape in shapes.values() if shape)
    count = max(lengths, key=lambda length: (lengths[length], length))
    turned = {name: shape.index(count) for name, shape in shapes.items() if shape[0] != count and count in shape}
    require(
        len(lengths) == 1,
        "data",
        got=f"leading axes { {name: shape[0] for name, shape in shapes.items()} }",
        expected="the same number of rows in every array",
        fix="Rows run along the first axis of each array; trim the odd one."
        if not turned
        else f"Rows run along the first axis of each array, and {', '.join(turned)} has {count} along another one: "
        f"pass numpy.moveaxis(array, {next(iter(turned.values()))}, 0), and turn it back at the beginning of the model "
        "if the model needs it the other way round.",
    )


def wide_arrays(shapes: Mapping[str, tuple[int, ...]], num_rows: int) -> str:
    """A word about arrays that have so many more columns than rows that their rows may run along another axis."""
    wide = {name: shape for name, shape in shapes.items() if max(shape[1:], default=0) >= MANY_COLUMNS * num_rows}
    if not wide:
        return ""
    name, shape = next(iter(wide.items()))
    return (
        f"Rows run along the first axis, so that {name} of shape {shape} has {num_rows} rows. If its rows run along "
        "another axis, pass it transposed, and turn it back at the beginning of the model if need be. "
    )


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
