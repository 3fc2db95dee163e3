"""A PyTensor graph with its data inside, rebuilt as a graph of the data's rows.

Data that run along the rows become inputs of unknown length, and so do sizes that merely repeat the number of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from coreset_mcmc.interop.pymc.row_sources import RowSource, Variable

SIZE_OPERATIONS = ("Alloc", "BroadcastTo", "SpecifyShape")
"""Operations whose inputs after the first are lengths of axes."""


def minibatches(outputs: Sequence[Variable]) -> dict[Variable, Variable]:
    """Each random minibatch in the graph, and the full data that it is taken from."""
    from pymc.data import MinibatchOp
    from pytensor.graph.traversal import ancestors

    found = [item for item in ancestors(outputs) if item.owner is not None and isinstance(item.owner.op, MinibatchOp)]
    return {item: item.owner.inputs[item.owner.outputs.index(item)] for item in found}


def with_all_rows(outputs: Sequence[Variable]) -> list[Variable]:
    """The graph with the full data in the place of random minibatches."""
    batches = minibatches(outputs)
    if not batches:
        return list(outputs)
    num_rows = next(iter(batches.values())).shape[0]
    sizes = {int(item.type.shape[0]) for item in batches if item.type.shape[0] is not None}
    return rebuilt(outputs, {**batches, **lengths_as(num_rows, outputs, sizes)})


def over_rows(
    outputs: Sequence[Variable], sources: Sequence[RowSource], size: int, lengths: Iterable[Variable]
) -> tuple[dict[str, Variable], list[Variable]]:
    """The graph with its row data as inputs, by name; sizes that repeat the number of rows follow the inputs.

    Args:
        outputs: what to rebuild.
        sources: the data of the rows.
        size: the number of rows; as the length of an axis it means just that.
        lengths: shared variables that hold the length of a named dimension along the rows.
    """
    import pytensor.tensor as pt

    inputs: dict[str, Variable] = {}
    owners: dict[str, RowSource] = {}
    replacements: dict[Variable, Variable] = {}
    for source in sources:
        first = owners.setdefault(source.name, source)
        given: Variable = inputs.setdefault(source.name, first.new_input())
        if first.values.shape != source.values.shape:
            given = given.reshape((given.shape[0], *source.values.shape[1:]))
        replacements[source.variable] = pt.moveaxis(given, 0, source.axis)
    if not inputs:
        return {}, list(outputs)
    num_rows = next(iter(inputs.values())).shape[0]
    replacements |= dict.fromkeys(lengths, num_rows) | lengths_as(num_rows, outputs, {size})
    return inputs, with_checks_of_rows(rebuilt(outputs, replacements), list(inputs.values()))


def rebuilt(
    outputs: Sequence[Variable],
    replacements: Mapping[Variable, Variable],
    remake: Callable[[Any, list[Variable]], list[Variable] | None] | None = None,
) -> list[Variable]:
    """The graph with parts replaced and every operation on them made anew.

    ``clone_replace`` keeps the types of unchanged kinds of inputs, and with them the number of rows. ``remake(op,
    inputs)`` may put something else in the place of an operation.
    """
    from pytensor.graph.traversal import io_toposort

    new = dict(replacements)
    for node in io_toposort([], outputs):
        inputs = [new.get(item, item) for item in node.inputs]
        others = remake(node.op, inputs) if remake is not None else None
        if others is None and all(old is fresh for old, fresh in zip(node.inputs, inputs, strict=True)):
            continue
        for old, fresh in zip(node.outputs, others or node.op.make_node(*inputs).outputs, strict=True):
            fresh.name = old.name
            new.setdefault(old, fresh)
    return [new.get(item, item) for item in outputs]


def with_checks_of_rows(outputs: Sequence[Variable], inputs: Sequence[Variable]) -> list[Variable]:
    """The graph with each row's own check of its parameters.

    PyMC gives all rows minus infinity when the parameters of one are impossible. Here that row alone gets it, so that a
    row does not depend on others; the sum is the same.
    """
    import pytensor.tensor as pt
    from pymc.logprob.utils import CheckParameterValue
    from pytensor.graph.traversal import ancestors

    def remake(operation: Any, given: list[Variable]) -> list[Variable] | None:
        if not isinstance(operation, CheckParameterValue) or not operation.can_be_replaced_by_ninf:
            return None
        value, *conditions = given
        parts = [part for condition in conditions for part in _conjuncts(condition)]
        of_rows = [
            part
            for part in parts
            if 0 < part.type.ndim == value.type.ndim and any(item in ancestors([part]) for item in inputs)
        ]
        if not of_rows:
            return None
        checked = pt.switch(reduce(pt.and_, of_rows), value, -np.inf)
        rest = [pt.all(part) for part in parts if part not in of_rows]
        return [operation(checked, *rest) if rest else checked]

    return rebuilt(outputs, {}, remake)


def _conjuncts(condition: Variable) -> list[Variable]:
    """What all has to hold for a condition that PyMC has folded into one truth value."""
    import pytensor.tensor as pt
    from pytensor.tensor.basic import MakeVector, ScalarFromTensor
    from pytensor.tensor.math import All

    node = condition.owner
    is_fold = node is not None and (
        isinstance(node.op, ScalarFromTensor | MakeVector)
        or (isinstance(node.op, All) and len(node.op.axis or ()) in (0, node.inputs[0].type.ndim))
    )
    if not is_fold:
        return [pt.as_tensor(condition)]
    return [part for item in node.inputs for part in _conjuncts(item)]


def lengths_as(num_rows: Variable, outputs: Sequence[Variable], sizes: set[int]) -> dict[Variable, Variable]:
    """What to replace so that constant lengths of axes and sizes of draws among ``sizes`` become ``num_rows``."""
    import pytensor.tensor as pt
    from pytensor.graph.basic import Constant
    from pytensor.graph.traversal import ancestors

    lengths: list[Variable] = []
    replacements: dict[Variable, Variable] = {}
    for node in {item.owner for item in ancestors(outputs) if item.owner is not None}:
        size = node.op.size_param(node) if hasattr(node.op, "size_param") else None
        if type(node.op).__name__ in SIZE_OPERATIONS:
            lengths += node.inputs[1:]
        elif isinstance(size, Constant):
            if np.ndim(size.data) == 1 and len(size.data) and int(size.data[0]) in sizes:
                replacements[size] = pt.stack([num_rows, *(int(length) for length in size.data[1:])])
        elif size is not None and size.owner is not None:
            lengths += size.owner.inputs[:1]
    return replacements | {length: num_rows for length in lengths if _known_length(length) in sizes}


def _known_length(length: Variable) -> int | None:
    """The value of a length that is made of constants."""
    from pymc.pytensorf import constant_fold
    from pytensor.graph.basic import Constant
    from pytensor.graph.traversal import graph_inputs
    from pytensor.tensor import TensorType, get_underlying_scalar_constant_value

    if not isinstance(length.type, TensorType) or length.type.ndim or not length.type.dtype.startswith("int"):
        return None
    value = get_underlying_scalar_constant_value(length, raise_not_constant=False)
    if value is length and all(isinstance(item, Constant) for item in graph_inputs([length])):
        (value,) = constant_fold([length], raise_not_constant=False)
    return int(value) if isinstance(value, int | np.ndarray | np.integer) else None


def inlined(outputs: Sequence[Variable]) -> list[Variable]:
    """The graph with operations that are graphs themselves, such as draws from a mixture, written out.

    Their inner graphs would keep the number of rows in their types.
    """
    from pytensor.compile.builders import OpFromGraph
    from pytensor.graph.replace import clone_replace
    from pytensor.graph.traversal import ancestors
    from pytensor.tensor.rewriting.ofg import inline_ofg_node

    current = list(outputs)
    while True:
        owners = [item.owner for item in ancestors(current) if item.owner is not None]
        node = next((owner for owner in owners if isinstance(owner.op, OpFromGraph)), None)
        if node is None:
            return current
        inner = dict(zip(node.outputs, inline_ofg_node(node), strict=True))
        current = clone_replace(current, replace=inner, rebuild_strict=False)
