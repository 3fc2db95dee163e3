"""Where a PyTensor graph holds data of the rows.

PyMC keeps data in the graph, as constants or shared variables. Those with an axis as long as there are rows are taken
for data of the rows; whether that is right shows when the rows are tried out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Variable = Any
"""A PyTensor variable; the library is imported only where it is used."""


@dataclass(frozen=True)
class RowSource:
    """A part of the graph that holds data of the rows, and what stands in for it."""

    variable: Variable
    name: str
    values: np.ndarray
    """Rows along the first axis."""
    axis: int
    """Where the rows run in the graph."""
    has_own_name: bool = False
    """Whether the user has named it; equal values of something that has a name may be chance."""

    def new_input(self) -> Variable:
        from pytensor.tensor import TensorType

        known = [None if length != 1 else 1 for length in self.values.shape[1:]]
        return TensorType(str(self.values.dtype), shape=(None, *known))(self.name)


def value_held(variable: Variable) -> np.ndarray | None:
    """What a constant or a shared variable holds; None for anything else."""
    from pytensor.compile.sharedvalue import SharedVariable
    from pytensor.graph.basic import Constant
    from pytensor.tensor import TensorType

    if not isinstance(variable.type, TensorType):
        return None
    if isinstance(variable, Constant):
        return np.asarray(variable.data)
    if isinstance(variable, SharedVariable):
        return np.asarray(variable.get_value(borrow=True))
    return None


def row_sources(
    outputs: Sequence[Variable],
    size: int,
    names: Mapping[Variable, str] | None = None,
    known: Sequence[RowSource] = (),
) -> list[RowSource]:
    """Everything in the graph that has one entry for each row, with equal constants under one name.

    ``names`` are those of responses, for their values; pm.Data keep their own, though others may hold equal values as
    long as they are placeholders. Sources that are ``known`` from another graph of the model keep their names too.
    """
    from pytensor.graph.traversal import graph_inputs

    names = names or {}
    candidates = {item: value_held(item) for item in graph_inputs(outputs)}
    own_names = {item: name for item in candidates if (name := names.get(item) or item.name)}
    order = sorted(candidates, key=lambda item: item not in own_names)
    chosen: list[RowSource] = []
    for item in order:
        values = candidates[item]
        axis = _row_axis(values, size)
        if values is None or axis is None:
            continue
        rows = np.moveaxis(values, axis, 0)
        others = [*known, *chosen]
        own_name = own_names.get(item)
        twin = next((old for old in others if old.variable is item), None) or next(
            (old for old in others if own_name in (None, old.name) and _are_equal(old.values, rows)), None
        )
        name = twin.name if twin else _free_name(own_name, {old.name for old in others})
        chosen.append(RowSource(item, name, rows, axis, has_own_name=own_name is not None))
    return chosen


def _row_axis(values: np.ndarray | None, size: int) -> int | None:
    """The first axis if it counts rows, or else another one."""
    if values is None or size not in values.shape:
        return None
    return values.shape.index(size)


def _are_equal(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether two sources hold the same rows, up to axes of length one and the like."""
    if one.dtype != other.dtype or one.size != other.size or len(one) != len(other):
        return False
    return np.array_equal(one.reshape(len(one), -1), other.reshape(len(other), -1))


def _free_name(wish: str | None, used: set[str]) -> str:
    if wish and wish not in used:
        return wish
    stem = wish or "data"
    return next(f"{stem}_{number}" for number in range(len(used) + 1) if f"{stem}_{number}" not in used)
