"""What is done with leaves: programs, and their arguments.

A program says what to do with one leaf and how to put two results together, the earlier rows first. It is a hashable
value, so that whoever runs it compiles once; what changes from pass to pass are the arguments, pytrees of arrays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.compilation import quick_compilation
from coreset_mcmc.core.types import Batch
from coreset_mcmc.data.leaf import Leaf, Padded, widened

RowFunction = Callable[..., Any]
"""``function(batch, weights, *arguments)`` for a block of widened rows and how often each counts: a pytree.

One that evaluates each row many times says so by an attribute ``is_repeated``: its program is compiled with care.
"""


class Program(ABC):
    """What to do with a leaf; two equal programs do the same."""

    @abstractmethod
    def on_leaf(self, leaf: Leaf, arguments: Any) -> Any:
        """The result for these rows; it must not hold on to them."""

    @abstractmethod
    def merge(self, one: Any, other: Any) -> Any:
        """The result for the rows of both, those of ``one`` coming first."""


class Task(NamedTuple):
    """A program with its arguments."""

    program: Program
    arguments: Any = ()


@dataclass(frozen=True)
class SumOver(Program):
    """The sum over blocks of what a hashable function of their rows returns."""

    function: RowFunction

    def on_leaf(self, leaf: Leaf, arguments: Any) -> Any:
        result = summed(self.function, leaf.layout.block_rows, leaf.padded, arguments)
        return jax.tree.map(np.asarray, result)

    def merge(self, one: Any, other: Any) -> Any:
        return jax.tree.map(np.add, one, other)


@dataclass(frozen=True)
class PerRow(Program):
    """What a hashable function returns for each row, in the order of the rows: for parts, not for whole passes."""

    function: RowFunction

    def on_leaf(self, leaf: Leaf, arguments: Any) -> Any:
        result = for_each_row(self.function, leaf.layout.block_rows, leaf.padded, arguments)
        return jax.tree.map(lambda array: np.asarray(array)[: leaf.count], result)

    def merge(self, one: Any, other: Any) -> Any:
        return jax.tree.map(lambda first, second: np.concatenate([first, second]), one, other)


def _blocks(block_rows: int, padded: Padded, index: Any) -> tuple[Batch, Any]:
    def cut(array: Any) -> Any:
        return jax.lax.dynamic_slice_in_dim(array, index * block_rows, block_rows)

    return widened(jax.tree.map(cut, padded.batch)), cut(padded.weights)


def _summed(function: RowFunction, block_rows: int, padded: Padded, arguments: Any) -> Any:
    def of_block(index: Any) -> Any:
        return function(*_blocks(block_rows, padded, index), *arguments)

    shapes = jax.eval_shape(lambda: of_block(0))
    nothing = jax.tree.map(lambda shape: jnp.zeros(shape.shape, shape.dtype), shapes)
    num_blocks = (padded.num_rows + block_rows - 1) // block_rows
    return jax.lax.fori_loop(0, num_blocks, lambda index, total: jax.tree.map(jnp.add, total, of_block(index)), nothing)


def _for_each_row(function: RowFunction, block_rows: int, padded: Padded, arguments: Any) -> Any:
    length = padded.weights.shape[0]

    def of_block(index: Any) -> Any:
        return function(*_blocks(block_rows, padded, index), *arguments)

    shapes = jax.eval_shape(lambda: of_block(0))
    nothing = jax.tree.map(lambda shape: jnp.zeros((length, *shape.shape[1:]), shape.dtype), shapes)
    num_blocks = (padded.num_rows + block_rows - 1) // block_rows

    def put(index: Any, values: Any) -> Any:
        return jax.tree.map(
            lambda whole, part: jax.lax.dynamic_update_slice_in_dim(whole, part, index * block_rows, 0),
            values,
            of_block(index),
        )

    return jax.lax.fori_loop(0, num_blocks, put, nothing)


LONG_LEAF = 2**16
"""Leaves of this length come from so many rows that a program pays for being compiled with care."""


@cache
def _compiled(function: Callable[..., Any], *, is_quick: bool) -> Callable[..., Any]:
    """Compiled once for each row function, block and shape."""
    options = quick_compilation(1) if is_quick else {}
    return jax.jit(function, static_argnums=(0, 1), compiler_options=options or None)


def _compiled_for(function: Callable[..., Any], row_function: RowFunction, padded: Padded) -> Any:
    """Soon rather than fast where rows are few, but for what is evaluated many times in a pass."""
    is_quick = padded.weights.shape[0] < LONG_LEAF and not getattr(row_function, "is_repeated", False)
    return _compiled(function, is_quick=is_quick)


def summed(function: RowFunction, block_rows: int, padded: Padded, arguments: Any) -> Any:
    """The sum over all blocks of a leaf."""
    return _compiled_for(_summed, function, padded)(function, block_rows, padded, arguments)


def for_each_row(function: RowFunction, block_rows: int, padded: Padded, arguments: Any) -> Any:
    """The values of all blocks of a leaf, one after the other."""
    return _compiled_for(_for_each_row, function, padded)(function, block_rows, padded, arguments)


def trace_summed(function: RowFunction, block_rows: int, padded: Any, arguments: Any) -> Any:
    """The program behind :func:`summed` for arguments of these shapes and types, traced."""
    return _compiled_for(_summed, function, padded).trace(function, block_rows, padded, arguments)


def trace_for_each_row(function: RowFunction, block_rows: int, padded: Any, arguments: Any) -> Any:
    """The same for :func:`for_each_row`."""
    return _compiled_for(_for_each_row, function, padded).trace(function, block_rows, padded, arguments)
