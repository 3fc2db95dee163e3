"""Operations of PyTensor in JAX where PyTensor's own conversion is missing or fails.

They are looked up here first and nothing is registered with PyTensor, so that a user's own models convert as before.

- Numbers that follow from shapes alone stay numbers while JAX traces. PyTensor computes them by JAX, whose results
  under a trace are no numbers any more, and mixes lengths of axes with constants of eight bits.
- ``erfcx``, of which tails of the normal distribution are made, has a version that is exact in both tails.
- Logarithms have a slope of zero where they are minus infinity or undefined. In a formula with branches an infinite
  slope of the one that is not taken, times zero, would be NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.models.scaled_erfc import STEEPEST, erfcx

MOST_SIZES = 64
"""Numbers in an array that is taken for a shape."""

Function = Callable[..., Any]


def convert(default: Function) -> Function:
    """What turns an operation into a JAX function: one of ours, or else PyTensor's ``default``."""

    def converted(op: Any, node: Any = None, **options: Any) -> Function:
        ours = _own_conversion(op, node)
        function: Function = ours if ours is not None else default(op, node=node, **options)
        return _by_numbers(function) if node is not None and _may_be_sizes(op, node) else function

    return converted


def _own_conversion(op: Any, node: Any) -> Function | None:
    from pytensor.scalar import basic, math
    from pytensor.tensor.basic import ARange
    from pytensor.tensor.elemwise import Elemwise
    from pytensor.tensor.shape import Reshape

    scalars = {math.Erfcx: _bounded_erfcx, basic.Log: _log, basic.Log1p: _log1p}
    if isinstance(op, Elemwise):
        return scalars.get(type(op.scalar_op))
    if isinstance(op, ARange):
        return _arange(op.dtype)
    return _reshape if isinstance(op, Reshape) else None


def _bounded_erfcx(x: Any) -> jax.Array:
    """Held where it is beyond any sum, on the left, so that a product with zero stays zero."""
    return erfcx(jnp.maximum(x, STEEPEST))


def _log(x: Any) -> jax.Array:
    is_positive = jnp.asarray(x) > 0
    outside = jnp.where(jnp.asarray(x) == 0, -jnp.inf, jnp.nan)
    return jnp.where(is_positive, jnp.log(jnp.where(is_positive, x, 1)), outside)


def _log1p(x: Any) -> jax.Array:
    is_inside = jnp.asarray(x) > -1
    outside = jnp.where(jnp.asarray(x) == -1, -jnp.inf, jnp.nan)
    return jnp.where(is_inside, jnp.log1p(jnp.where(is_inside, x, 0)), outside)


def _arange(dtype: str) -> Function:
    def arange(start: Any, stop: Any, step: Any) -> jax.Array:
        return jnp.arange(_number(start), _number(stop), _number(step), dtype=dtype)

    return arange


def _reshape(x: Any, shape: Any) -> jax.Array:
    lengths = np.asarray(shape) if not _is_traced(shape) else shape
    return jnp.reshape(x, tuple(int(length) for length in lengths))


def _may_be_sizes(op: Any, node: Any) -> bool:
    """Whether all results are few whole numbers, or truth values, so far as the types tell."""
    from pytensor.tensor.basic import ARange

    if isinstance(op, ARange):
        return False  # a range as long as the rows would be a constant of that length
    return all(
        getattr(item.type, "dtype", "").startswith(("int", "uint", "bool")) and getattr(item.type, "ndim", 0) <= 1
        for item in node.outputs
    )


def _by_numbers(function: Function) -> Function:
    """The function, carried out at once where its arguments are few numbers."""

    def by_numbers(*arguments: Any) -> Any:
        if any(_is_traced(item) or np.size(item) > MOST_SIZES for item in arguments):
            return function(*arguments)
        with jax.ensure_compile_time_eval():
            return _plain(function(*map(_plain, arguments)))

    return by_numbers


def _is_traced(item: Any) -> bool:
    return any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(item))


def _number(item: Any) -> Any:
    return item if _is_traced(item) else np.asarray(item).item()


def _plain(item: Any) -> Any:
    """Python's whole numbers for those of NumPy and JAX, whose types may be too narrow for a length."""
    if not isinstance(item, jax.Array | np.ndarray | np.generic) or item.dtype.kind not in "iub":
        return item
    if np.ndim(item) == 0:
        return np.asarray(item).item()
    return jnp.asarray(item) if item.dtype.kind == "b" else jnp.asarray(item, np.int64)
