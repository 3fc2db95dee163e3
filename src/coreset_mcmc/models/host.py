"""Log-likelihoods in NumPy or SciPy, which JAX cannot see into.

Compiled code calls back to Python: one call for a block of rows and for all positions that are evaluated at once, so
the user's function stays vectorised over rows and a loop over positions is all that is added. Derivatives are taken by
differences (:mod:`coreset_mcmc.models.differences`) where the function is smooth; JAX differentiates a call like any
other function, to second order. An exception in the user's function stops the run, and the user sees that exception. A
call costs a few tenths of a millisecond besides the user's own work.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.entry_point import UsersError
from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.trees import first_position, flat_positions, positions_of
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.models.differences import MOST_COORDINATES, is_smooth, lengths_at, stencil
from coreset_mcmc.models.independence import check_rows_are_independent, start_and_another
from coreset_mcmc.models.rows import first_rows, num_rows_of, some_rows

NUM_TRIED = 64
"""Rows on which the lengths of differences are found."""


@dataclass(frozen=True)
class HostFunction:
    """A Python function of a position, and perhaps of rows, that compiled code calls.

    Args:
        function: takes NumPy arrays.
        vectorized: whether it takes many positions at once, along a leading axis of each of their leaves.
        subject: what it is called in messages.
        lengths: of each coordinate, from which the steps of differences follow; empty if there are no derivatives.
    """

    function: Callable[..., Any]
    vectorized: bool
    subject: str
    lengths: tuple[float, ...] = ()

    def many(self, positions: Position, *batch: Any) -> np.ndarray:
        """Values for positions with one leading axis, (K,) or (K, B); overflow far away is no news."""
        with np.errstate(all="ignore"):
            return self._many(positions, *batch)

    def _many(self, positions: Position, *batch: Any) -> np.ndarray:
        count = jax.tree.leaves(positions)[0].shape[0]
        expected = (count, *(num_rows_of(rows) for rows in batch))
        if self.vectorized:
            return self._checked(self.function(positions, *batch), expected)
        values = np.empty(expected)
        for number in range(count):
            position = jax.tree.map(lambda leaf, number=number: leaf[number], positions)
            values[number] = self._checked(self.function(position, *batch), expected[1:])
        return values

    def _checked(self, values: Any, expected: tuple[int, ...]) -> np.ndarray:
        try:
            array = np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(
                self.subject,
                got=f"{type(values).__name__} ({error})",
                expected=f"numbers of shape {expected}",
                fix="Return a NumPy array of real numbers.",
            ) from error
        require(
            array.shape == expected,
            self.subject,
            got=f"shape {array.shape}",
            expected=f"shape {expected}" + (", one value for each row" if len(expected) else ", a single number"),
            fix="Do not sum over rows, and return a value for each row of whatever batch is passed."
            if "likelihood" in self.subject
            else "Sum the log-densities of all parameters.",
        )
        return array

    def __call__(self, position: Position, *batch: Any) -> jax.Array:
        """Inside compiled code."""
        if not self.lengths:
            return self._called(0, position, *batch)
        flat, unravel = ravel_pytree(position)
        result: jax.Array = _with_slopes(self, unravel)(flat, *batch)
        return result

    def derivatives(self, order: int, position: Position, *batch: Any) -> jax.Array:
        """Value, gradient and, to second order, Hessian, in line: (B, width), or (width,) without rows."""
        return self._called(order, position, *batch)

    def _called(self, order: int, position: Position, *batch: Any) -> jax.Array:
        packs = [Packing.of(position, 0), *(Packing.of(rows, 1) for rows in batch)]
        words = [pack.packed(tree) for pack, tree in zip(packs, (position, *batch), strict=True)]
        width = (stencil(order, self.lengths).width,) if order else ()
        result = jax.ShapeDtypeStruct((*words[-1].shape[: len(batch)], *width, 2), jnp.uint32)
        bits = jax.pure_callback(partial(self._from_compiled, order, packs), result, *words, vmap_method="expand_dims")
        return jax.lax.bitcast_convert_type(bits, jnp.float64)

    def _from_compiled(self, order: int, packs: list[Packing], positions: Any, *batch: Any) -> np.ndarray:
        """Leading axes of positions, from ``vmap``, become one; rows have axes of length one there."""
        try:
            words = np.asarray(positions)
            outer = words.shape[:-1]
            in_line = words.reshape(-1, words.shape[-1])
            batches = [_batches(np.asarray(rows), len(in_line)) for rows in batch]
            if all(len(rows) == 1 for rows in batches):
                values = self.around(order, packs[0].unpacked(in_line), *self._rows(packs, batches, 0))
            else:
                values = np.concatenate(
                    [
                        self.around(order, packs[0].unpacked(in_line[[number]]), *self._rows(packs, batches, number))
                        for number in range(len(in_line))
                    ]
                )
            return np.ascontiguousarray(values).reshape(*outer, *values.shape[1:], 1).view(np.uint32)
        except BaseException as error:
            raise UsersError(error) from error

    def around(self, order: int, positions: Position, *batch: Any) -> np.ndarray:
        """Values (K, ...), or with their derivatives (K, ..., width), in Python."""
        if order == 0:
            return self.many(positions, *batch)
        rule = stencil(order, self.lengths)
        flat = flat_positions(positions)
        near = (flat[:, None] + rule.displacements).reshape(-1, flat.shape[1])
        values = self.many(positions_of(first_position(positions), near), *batch)
        return rule.derivatives(values.reshape(len(flat), -1, *values.shape[1:]))

    def _rows(self, packs: list[Packing], batches: list[np.ndarray], number: int) -> list[Any]:
        return [pack.unpacked(rows[number]) for pack, rows in zip(packs[1:], batches, strict=True)]


def _with_slopes(function: HostFunction, unravel: Any) -> Any:
    """A function of a flat position, and perhaps of rows, that JAX may differentiate twice; rows have no slopes."""

    @jax.custom_jvp
    def value(flat: jax.Array, *batch: Any) -> jax.Array:
        return function.derivatives(0, unravel(flat), *batch)

    @jax.custom_jvp
    def to_first_order(flat: jax.Array, *batch: Any) -> jax.Array:
        return function.derivatives(1, unravel(flat), *batch)

    @value.defjvp
    def along(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
        found = to_first_order(*primals)
        return found[..., 0], found[..., 1:] @ tangents[0]

    @to_first_order.defjvp
    def twice_along(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
        found, count = function.derivatives(2, unravel(primals[0]), *primals[1:]), primals[0].size
        first = found[..., : 1 + count]
        hessian = found[..., 1 + count :].reshape(*found.shape[:-1], count, count)
        slope = first[..., 1:] @ tangents[0]
        return first, jnp.concatenate([slope[..., None], hessian @ tangents[0]], axis=-1)

    return value


def _batches(rows: np.ndarray, count: int) -> np.ndarray:
    """Rows (1, B, words) if they are the same for all positions, which ``vmap`` may have repeated."""
    batches = rows.reshape(-1, *rows.shape[-2:])
    return batches[:1] if len(batches) < count or (batches == batches[:1]).all() else batches


@dataclass(frozen=True)
class Packing:
    """A pytree as 32-bit words along one axis, behind ``num_leading`` axes that all leaves share.

    One array crosses to Python faster than many. And callbacks run on a thread to which the scope of double precision
    does not reach: JAX would round 64-bit arguments there, but it leaves words alone.
    """

    structure: Any
    kinds: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    num_leading: int

    @classmethod
    def of(cls, tree: Any, num_leading: int) -> Packing:
        leaves, structure = jax.tree.flatten(tree)
        arrays = [jnp.asarray(leaf) for leaf in leaves]
        return cls(
            structure,
            tuple(str(array.dtype) for array in arrays),
            tuple(tuple(array.shape[num_leading:]) for array in arrays),
            num_leading,
        )

    def packed(self, tree: Any) -> jax.Array:
        """Inside compiled code."""

        def words(leaf: Any) -> jax.Array:
            array = jnp.asarray(leaf)
            wide = array if array.dtype.itemsize >= 4 else array.astype(jnp.int32)
            bits = jax.lax.bitcast_convert_type(wide, jnp.uint32)
            return bits.reshape(*bits.shape[: self.num_leading], -1)

        return jnp.concatenate([words(leaf) for leaf in jax.tree.leaves(tree)], axis=-1)

    def unpacked(self, words: np.ndarray) -> Any:
        """In Python, from words (leading, count)."""
        leaves, start = [], 0
        for kind, shape in zip(self.kinds, self.shapes, strict=True):
            carrier = np.dtype(kind) if np.dtype(kind).itemsize >= 4 else np.dtype(np.int32)
            end = start + int(np.prod(shape)) * carrier.itemsize // 4
            values = np.ascontiguousarray(words[:, start:end]).view(carrier)
            leaves.append(values.astype(kind, copy=False).reshape(words.shape[0], *shape))
            start = end
        return jax.tree.unflatten(self.structure, leaves)


def try_out(log_prior: HostFunction, log_likelihood: HostFunction, start: Any, batch: Batch) -> None:
    """Call the functions in plain Python before anything is compiled: mistakes show as they would there."""
    given = start(jax.random.key(0)) if callable(start) else start
    positions = start_and_another(jax.tree.map(_as_float, given))
    first = jax.tree.map(lambda leaf: leaf[:1], positions)
    rows = jax.tree.map(_as_float, batch)
    log_prior.many(first)
    log_likelihood.many(first, first_rows(rows, 1))
    is_inside = np.isfinite(log_prior.many(positions)).all()  # a user's function may raise where it has no values

    def evaluate(positions: Position, batches: tuple[Batch, ...]) -> tuple[Any, ...]:
        return tuple(log_likelihood.many(positions, some) for some in batches)

    check_rows_are_independent(evaluate, positions if is_inside else first, rows, subject=log_likelihood.subject)


def lengths_of(
    log_prior: HostFunction, log_likelihood: HostFunction, start: Any, batch: Batch, *, smooth: bool | None
) -> tuple[float, ...]:
    """Lengths for differences; empty if there are none to be had, with a warning where that was found out."""
    given = jax.tree.map(_as_float, start(jax.random.key(0)) if callable(start) else start)
    leaves = jax.tree.leaves(given)
    is_real = all(leaf.dtype == np.float64 for leaf in leaves) and bool(leaves)
    if smooth is False or not is_real or sum(leaf.size for leaf in leaves) > MOST_COORDINATES:
        return ()
    rows = some_rows(jax.tree.map(_as_float, batch), NUM_TRIED)
    positions = flat_positions(start_and_another(given))

    def prior(flat: np.ndarray) -> np.ndarray:
        return log_prior.many(positions_of(given, flat))

    def likelihood(flat: np.ndarray) -> np.ndarray:
        possible = np.flatnonzero(np.isfinite(prior(flat)))
        values = np.full((len(flat), num_rows_of(rows)), -np.inf)
        if len(possible):
            values[possible] = log_likelihood.many(positions_of(given, flat[possible]), rows)
        return values

    lengths = lengths_at(prior, likelihood, positions[0])
    possible = positions[np.isfinite(prior(positions))]
    if smooth is None and not is_smooth(likelihood, possible, lengths):
        warnings.warn(
            f"{log_likelihood.subject} is not smooth: slopes from differences between nearby positions do not agree. "
            "It is trained without derivatives and sampled by slices, which takes longer. If it is smooth (it may "
            "compute in single precision), pass smooth=True; smooth=False silences this.",
            stacklevel=2,
        )
        return ()
    return tuple(map(float, lengths))


def _as_float(leaf: Any) -> np.ndarray:
    """As compiled code passes them: floats in double precision, whole numbers as they are."""
    array = np.asarray(leaf)
    return array.astype(np.float64) if np.issubdtype(array.dtype, np.floating) else array
