"""Terms of some of the rows: survival models that index by a mask, responses that are missing.

``mu[~censored]`` has the length of the rows that are not censored, and belongs to rows of the model all the same. Such
a term is rebuilt for all rows: the index is taken out, data that the term has for its own rows alone are spread over
all, and the rows that are not its own count zero. Terms of different lengths without a common index are rows of their
own, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.interop.pymc.graph import lengths_as, rebuilt
from coreset_mcmc.interop.pymc.row_sources import Variable, row_sources, value_held


@dataclass(frozen=True, eq=False)
class Subset:
    """Which of all rows a term is about."""

    places: np.ndarray
    """Row numbers, increasing: one for each value of the term."""
    size: int
    """Of the whole."""

    @property
    def length(self) -> int:
        """Of the term."""
        return len(self.places)

    @property
    def source_of(self) -> np.ndarray:
        """For each row its place in the term; the first one where it has none."""
        found = np.zeros(self.size, dtype=np.int64)
        found[self.places] = np.arange(self.length)
        return found

    @property
    def mask(self) -> np.ndarray:
        """Which rows are in it."""
        found = np.zeros(self.size, dtype=bool)
        found[self.places] = True
        return found

    def is_like(self, other: Subset) -> bool:
        """Whether it has the same rows."""
        return self.size == other.size and np.array_equal(self.places, other.places)


def indexed_rows(term: Variable, length: int | None) -> Subset | None:
    """The rows that a term of this length takes by an index, the same wherever it does."""
    if length is None:
        return None
    found = [subset for _, subset in _indexed([term], length)]
    return found[0] if found and all(subset.is_like(found[0]) for subset in found) else None


def one_after_the_other(lengths: Mapping[str, int]) -> dict[str, Subset]:
    """Terms of different rows, by name."""
    size, start, found = sum(lengths.values()), 0, {}
    for name, length in lengths.items():
        found[name] = Subset(np.arange(start, start + length), size)
        start += length
    return found


def rows_in_use(subsets: Sequence[Subset | None]) -> np.ndarray | None:
    """Numbers of the rows that some term is about; None if that is all of them."""
    masks = [subset.mask for subset in subsets if subset is not None]
    if len(masks) < len(subsets) or not masks:
        return None
    used = np.logical_or.reduce(masks)
    return None if used.all() else np.flatnonzero(used)


def on_all_rows(
    output: Variable, subset: Subset, dims: Sequence[Variable]
) -> tuple[Variable, dict[Variable, Variable]]:
    """A graph of the rows of a subset as one of all rows, and what takes the place of the data of those rows.

    ``dims`` are variables that hold the lengths of named dimensions.
    """
    import pytensor.tensor as pt

    whole = {node.outputs[0]: node.inputs[0] for node, _ in _indexed([output], subset.length)}
    spread = {
        source.variable: _constant(np.moveaxis(source.values[subset.source_of], 0, source.axis), source.variable.name)
        for source in row_sources([output], subset.length)
    }
    size = pt.constant(subset.size, dtype="int64")
    lengths = {item: size for item in dims if (held := value_held(item)) is not None and held == subset.length}
    try:
        (result,) = rebuilt([output], {**spread, **whole, **lengths, **lengths_as(size, [output], {subset.length})})
    except (ValueError, TypeError, AssertionError) as error:
        words = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise InputError(
            f"PyMC model, a term of {subset.length} of {subset.size} rows",
            got=f"something besides data that is made for these rows alone ({words})",
            expected="terms that index what all rows have, as in mu[~censored]",
            fix="Let the term use data and parameters of the rows that it is about, by one mask; or write one term of "
            "all rows with pt.switch(censored, log_survival, log_density) as a pm.Potential.",
        ) from error
    return result, spread


def counting_own(log_density: Variable, subset: Subset, used: np.ndarray | None) -> Variable:
    """Rows that are not those of the term count zero."""
    import pytensor.tensor as pt

    if subset.mask.all() or (used is not None and np.array_equal(used, subset.places)):
        return log_density
    mask = _constant(subset.mask, None)
    return pt.switch(mask.reshape((-1, *[1] * (log_density.type.ndim - 1))), log_density, 0.0)


def _constant(values: np.ndarray, name: str | None) -> Variable:
    from pytensor.tensor import TensorType
    from pytensor.tensor.basic import TensorConstant

    return TensorConstant(TensorType(str(values.dtype), shape=values.shape), values, name=name)


def _indexed(outputs: Sequence[Variable], length: int) -> list[tuple[Any, Subset]]:
    """Where data of all rows are indexed by which of them belong to a term, and which those are."""
    from pytensor.graph.traversal import io_toposort

    found = []
    for node in io_toposort([], outputs):
        if type(node.op).__name__ not in ("AdvancedSubtensor", "AdvancedSubtensor1") or len(node.inputs) != 2:
            continue
        index = _value_of(node.inputs[1])
        subset = None if index is None else _subset(node.inputs[0], index, length)
        if subset is not None and row_sources([node.inputs[0]], subset.size):
            found.append((node, subset))
    return found


def _value_of(index: Variable) -> np.ndarray | None:
    """An index that is made of data alone."""
    import pytensor
    from pytensor.graph.traversal import graph_inputs
    from pytensor.tensor import TensorType

    if not isinstance(index.type, TensorType) or index.type.ndim != 1:
        return None
    held = value_held(index)
    if held is not None or any(value_held(item) is None for item in graph_inputs([index])):
        return held
    return np.asarray(pytensor.function([], index, mode="FAST_COMPILE")())


def _subset(indexed: Variable, index: np.ndarray, length: int) -> Subset | None:
    if index.dtype == bool:
        return Subset(np.flatnonzero(index), len(index)) if index.sum() == length < len(index) else None
    is_increasing = len(index) == length and index.dtype.kind == "i" and bool(np.all(np.diff(index) > 0))
    size = _length_of(indexed) if is_increasing and index[0] >= 0 else None
    return Subset(index, size) if size is not None and size > length and size > index[-1] else None


def _length_of(variable: Variable) -> int | None:
    """The length of the first axis, from its type or from the data that it is made of."""
    from pytensor.graph.traversal import graph_inputs

    if variable.type.shape[0] is not None:
        return int(variable.type.shape[0])
    lengths = {
        held.shape[0] for item in graph_inputs([variable]) if (held := value_held(item)) is not None and held.ndim
    }
    return max(lengths, default=None)
