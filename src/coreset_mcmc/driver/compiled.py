"""Chunks of steps as compiled programs: what :mod:`coreset_mcmc.driver.run` calls over and over.

Steps whose kinds change as they go, first a search and then rounds of sampling, say, are better taken on the host
(:class:`~coreset_mcmc.driver.programs.OnHost`), each kind with programs of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.compilation import compiler, quick_compilation
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.core.randomness import key_of
from coreset_mcmc.core.types import Key
from coreset_mcmc.driver.steps import Steps

CAPACITY = 512
"""Most steps in one chunk: the length of the buffers that collect the info."""


def _first_state(method: Any, problem: Any, key: Key) -> Any:
    def firmly_typed(leaf: Any) -> jax.Array:
        leaf = jnp.asarray(leaf)
        is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return leaf if is_key else jax.lax.convert_element_type(leaf, leaf.dtype)

    return jax.tree.map(firmly_typed, method.init(key, problem))


@cache
def _first(*, is_quick: bool) -> Any:
    return jax.jit(_first_state, compiler_options=quick_compilation(1) if is_quick else None)


def first_for(method: Steps) -> Any:
    """The compiled function of a method, a problem and a key that makes the state before any step.

    It has the types that every later one has: a number that came from Python is "weakly typed"; after one step it no
    longer is, and the chunk would compile twice.
    """
    return _first(is_quick=method.takes_few_steps and bool(quick_compilation(1)))


def _steps(
    method: Any,
    problem: Any,
    key: Key,
    state: Any,
    start: jax.Array,
    length: jax.Array,
    *,
    record: Callable[[Any], Any] | None,
) -> tuple[Any, Any, jax.Array]:
    """Up to ``length`` steps from step number ``start``; zero steps compile and do nothing."""
    step = jax.jit(method.step, inline=True)

    def observe(state: Any, info: Any) -> Any:
        return info, record(state) if record is not None else None

    _, info_shape = jax.eval_shape(step, key, state, problem)
    shapes = jax.eval_shape(observe, state, info_shape)
    buffers = jax.tree.map(lambda leaf: jnp.zeros((CAPACITY, *leaf.shape), leaf.dtype), shapes)

    def go_on(carry: tuple[jax.Array, Any, Any]) -> jax.Array:
        number, state, _ = carry
        result: jax.Array = (number < length) & ~state.done
        return result

    def one_step(carry: tuple[jax.Array, Any, Any]) -> tuple[jax.Array, Any, Any]:
        number, state, buffers = carry
        state, info = step(jax.random.fold_in(key, start + number), state, problem)
        buffers = jax.tree.map(lambda buffer, leaf: buffer.at[number].set(leaf), buffers, observe(state, info))
        return number + 1, state, buffers

    number, state, buffers = jax.lax.while_loop(go_on, one_step, (jnp.zeros((), jnp.int32), state, buffers))
    return state, buffers, number


_STATIC = ("record",)
_chunk = jax.jit(_steps, static_argnames=_STATIC)


@cache
def _quick_chunk() -> Callable[..., Any]:
    """The same, compiled in half of the time, where this XLA knows how."""
    options = quick_compilation(1)
    return jax.jit(_steps, static_argnames=_STATIC, compiler_options=options) if options else _chunk


def num_compiled_programs() -> int:
    """Chunks compiled so far, of whatever method."""
    chunks = (_chunk, _quick_chunk())
    return sum({id(chunk): chunk._cache_size() for chunk in chunks}.values())  # type: ignore[attr-defined]


def chunk_for(method: Steps) -> Callable[..., Any]:
    """How to compile: few steps rather start soon than run fast."""
    return _quick_chunk() if method.takes_few_steps else _chunk


@double_precision
def trace_ahead(method: Steps, problem: Any) -> Callable[[], None]:
    """Trace what a run of such a method on such a problem will need, whatever their numbers.

    Returns what compiles it, and runs nothing. That may happen in another thread: it calls none of the model's
    functions, which may lean on global state (NumPyro's stack of handlers does). JAX finds the programs again.
    """
    key = key_of(0)
    first = first_for(method).trace(method, problem, key)
    state, start, length = first.out_info, np.int64(0), np.int32(0)
    chunk: Any = chunk_for(method)
    steps = chunk.trace(method, problem, key, state, start, length, record=None)

    parts = compiler(first), compiler(steps)

    def compile_them() -> None:
        for part in parts:
            part()

    return compile_them
