"""From a PyTensor graph with its data inside to a JAX function of the data's rows.

PyMC keeps data in the graph, as constants or shared variables. Those that run along the rows become inputs of unknown
length, and so do sizes that merely repeat the number of rows. What comes out is traced anew for each size of a batch.

``pymc.sampling.jax`` would do the last step, but importing it sets the number of devices and the precision of the whole
process; PyTensor's JAX backend sets the precision too, which is put back here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import InputError

Variable = Any
"""A PyTensor variable; the library is imported only where it is used."""

SIZE_OPERATIONS = ("Alloc", "BroadcastTo", "SpecifyShape")
"""Operations whose inputs after the first are lengths of axes."""


@dataclass(frozen=True)
class RowSource:
    """A part of the graph that holds data of the rows, and what stands in for it."""

    variable: Variable
    name: str
    values: np.ndarray
    """Rows along the first axis."""
    axis: int
    """Where the rows run in the graph."""

    def new_input(self) -> Variable:
        from pytensor.tensor import TensorType

        known = [None if length != 1 else 1 for length in self.values.shape[1:]]
        return TensorType(str(self.values.dtype), shape=(None, *known))(self.name)


def backend() -> Any:
    """PyTensor's dispatcher to JAX, imported without changing the precision of the process."""
    with ThreadPoolExecutor(1) as other_thread:  # scopes of precision belong to a thread: this one sees the global
        before = other_thread.submit(lambda: jax.config.read("jax_enable_x64")).result()
    from pytensor.link.jax.dispatch import jax_funcify

    with ThreadPoolExecutor(1) as other_thread:
        after = other_thread.submit(lambda: jax.config.read("jax_enable_x64")).result()
    if after != before:
        jax.config.update("jax_enable_x64", before)
    return jax_funcify


def to_jax(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Callable[..., list[jax.Array]]:
    """A JAX function of ``inputs``; shared variables are frozen at their values.

    Checks of parameters become a log-density of minus infinity, as in PyMC's own samplers. To be called in double
    precision.
    """
    from pytensor.compile.mode import get_mode
    from pytensor.graph.fg import FunctionGraph

    jax_funcify = backend()
    graph = FunctionGraph(inputs=list(inputs), outputs=freeze_shared(outputs), clone=True)
    with warnings.catch_warnings(), jax.ensure_compile_time_eval():  # constants stay numbers, even while tracing
        warnings.simplefilter("ignore")  # about assertions, which JAX cannot raise
        get_mode("JAX").including("local_check_parameter_to_ninf_switch").optimizer.rewrite(graph)
        try:
            function = jax_funcify(graph)
        except NotImplementedError as error:
            raise InputError(
                "PyMC model",
                got=str(error).strip().splitlines()[0],
                expected="operations that PyTensor can turn into JAX",
                fix="Write that part with pytensor.tensor operations, or register a conversion with "
                "pytensor.link.jax.dispatch.jax_funcify, or pass the log-likelihood itself: cm.Model.from_callable.",
            ) from error

    @jax.jit  # traced once for each shape, wherever it is used
    def on_arrays(*values: Any) -> list[jax.Array]:
        return function(*(value if isinstance(value, dict) else jnp.asarray(value) for value in values))

    return on_arrays


def random_to_jax(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Callable[..., list[jax.Array]]:
    """As :func:`to_jax` for a graph that draws random numbers: the first argument of the function is a key."""
    from pytensor.compile.sharedvalue import SharedVariable
    from pytensor.graph.replace import clone_replace
    from pytensor.graph.traversal import graph_inputs
    from pytensor.tensor.random.type import RandomType

    outputs = rebuilt(outputs, _categories(outputs))
    states = [item for item in graph_inputs(outputs) if isinstance(item.type, RandomType)]
    fresh = [item.type() for item in states]
    replaced = clone_replace(list(outputs), replace=dict(zip(states, fresh, strict=True)), rebuild_strict=False)
    function = to_jax([*fresh, *inputs], replaced)
    assert all(isinstance(item, SharedVariable) for item in states)

    def draw(key: jax.Array, *values: Any) -> list[jax.Array]:
        keys = jax.random.split(key, max(len(states), 1))
        return function(*({"jax_state": keys[place]} for place in range(len(states))), *values)

    return draw


def _categories(outputs: Sequence[Variable]) -> dict[Variable, Variable]:
    """Draws of categories as the largest of log-probabilities with Gumbel noise.

    PyTensor's JAX backend draws them with the logit of each probability where its logarithm belongs (2.38, 3.3).
    """
    import pytensor.tensor as pt
    from pytensor.graph.traversal import ancestors
    from pytensor.tensor.random.basic import CategoricalRV

    nodes = {item.owner for item in ancestors(outputs) if item.owner and isinstance(item.owner.op, CategoricalRV)}
    replacements = {}
    for node in nodes:
        state, size, probabilities = node.inputs
        has_size = hasattr(size.type, "ndim")
        shape = pt.concatenate([size, probabilities.shape[-1:]]) if has_size else probabilities.shape
        noise = pt.random.gumbel(0.0, 1.0, size=shape, rng=state)
        chosen = pt.argmax(pt.log(probabilities) + noise, axis=-1)
        replacements[node.outputs[1]] = pt.cast(chosen, node.outputs[1].dtype)
    return replacements


def freeze_shared(outputs: Sequence[Variable]) -> list[Variable]:
    """Shared numbers become constants; random states stay."""
    from pytensor.compile.sharedvalue import SharedVariable
    from pytensor.graph.replace import clone_replace
    from pytensor.graph.traversal import graph_inputs
    from pytensor.tensor import TensorType, constant

    shared = [item for item in graph_inputs(outputs) if isinstance(item, SharedVariable)]
    numbers = {item: constant(item.get_value()) for item in shared if isinstance(item.type, TensorType)}
    return clone_replace(list(outputs), replace=numbers, rebuild_strict=False) if numbers else list(outputs)


def evaluate(variable: Variable) -> np.ndarray:
    """The value of a graph that depends on data alone."""
    held = value_held(variable)
    return np.asarray(to_jax([], [variable])()[0]) if held is None else held


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
    return rebuilt(outputs, {**batches, **_lengths_as(num_rows, outputs, sizes)})


def row_sources(
    outputs: Sequence[Variable],
    size: int,
    names: Mapping[Variable, str] | None = None,
    known: Sequence[RowSource] = (),
) -> list[RowSource]:
    """Everything in the graph that has one entry for each row, with equal constants under one name.

    ``names`` are wishes, such as the name of the response for its values; pm.Data keep their own. Sources that are
    ``known`` from another graph of the model keep their names too.
    """
    from pytensor.graph.traversal import graph_inputs

    names = names or {}
    candidates = {item: value_held(item) for item in graph_inputs(outputs)}
    order = sorted(candidates, key=lambda item: item not in names)
    chosen: list[RowSource] = []
    for item in order:
        values = candidates[item]
        axis = _row_axis(values, size)
        if values is None or axis is None:
            continue
        rows = np.moveaxis(values, axis, 0)
        others = [*known, *chosen]
        twin = next((old.name for old in others if old.variable is item or _are_equal(old.values, rows)), None)
        used = {old.name for old in others}
        chosen.append(RowSource(item, twin or _free_name(names.get(item) or item.name, used), rows, axis))
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
    replacements |= dict.fromkeys(lengths, num_rows) | _lengths_as(num_rows, outputs, {size})
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


def _lengths_as(num_rows: Variable, outputs: Sequence[Variable], sizes: set[int]) -> dict[Variable, Variable]:
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
