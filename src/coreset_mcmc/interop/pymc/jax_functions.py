"""A PyTensor graph as a JAX function.

``pymc.sampling.jax`` would do this, but importing it sets the number of devices and the precision of the whole process.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.interop.pymc.backend import dispatchers
from coreset_mcmc.interop.pymc.branches import with_limited_branches
from coreset_mcmc.interop.pymc.conversions import convert
from coreset_mcmc.interop.pymc.graph import rebuilt
from coreset_mcmc.interop.pymc.row_sources import Variable, value_held


def to_jax(inputs: Sequence[Variable], outputs: Sequence[Variable]) -> Callable[..., list[jax.Array]]:
    """A JAX function of ``inputs``; shared variables are frozen at their values.

    Checks of parameters become a log-density of minus infinity, as in PyMC's own samplers. To be called in double
    precision.
    """
    from pytensor.compile.mode import get_mode
    from pytensor.graph.fg import FunctionGraph
    from pytensor.link.utils import fgraph_to_python

    graph = FunctionGraph(inputs=list(inputs), outputs=with_limited_branches(freeze_shared(outputs)), clone=True)
    with (
        dispatchers() as (jax_funcify, jax_typify),
        warnings.catch_warnings(),
        jax.ensure_compile_time_eval(),  # constants stay numbers, even while tracing
    ):
        warnings.simplefilter("ignore")  # about assertions, which JAX cannot raise
        get_mode("JAX").including("local_check_parameter_to_ninf_switch").excluding("fusion").optimizer.rewrite(graph)
        try:
            function = fgraph_to_python(graph, convert(jax_funcify), type_conversion_fn=jax_typify)
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
        result: list[jax.Array] = function(
            *(value if isinstance(value, dict) else jnp.asarray(value) for value in values)
        )
        return result

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
