"""Slices for positions with whole numbers or truth values beside real numbers.

A whole number k is the floor of a real number u that is uniform between k and k + 1: on u the density is a step
function, which slice sampling takes as it is, and the floor of what it leaves is a draw of k (an auxiliary variable,
integrated out exactly). So each discrete coordinate moves along a line of its own by the same slices as everything
else, with brackets that double as far as the support goes: nothing has to be enumerated, and no step size to be tuned.
The real numbers move along random lines, shaped by a scale if there is one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import require, require_positive
from coreset_mcmc.core.types import Key, Position, pytree, static
from coreset_mcmc.kernels.base import Kernel, KernelInfo, KernelState
from coreset_mcmc.kernels.line import LineMove, num_uniforms, slice_on_line
from coreset_mcmc.posterior.target import CoresetTarget


@pytree
@dataclass(frozen=True)
class MixedSlice(Kernel):
    """Slice moves of every discrete coordinate in turn, and of the real ones along as many random lines as there are.

    Args:
        width: initial width of the bracket of real coordinates, in units of the scale; it doubles as needed.
        discrete_width: the same for whole numbers.
        scale: a (d, d) factor of the covariance of the flattened position, discrete coordinates included.
        max_doublings: cap on the doublings of a bracket.
        max_shrinkages: cap on the proposals on one line; on reaching it the chain stays and the step is flagged.
    """

    width: float = 10.0
    discrete_width: float = 4.0
    scale: jax.Array | None = None
    max_doublings: int = static(default=20)
    max_shrinkages: int = static(default=100)

    has_data_dependent_loops = True

    def __post_init__(self) -> None:
        require_positive("MixedSlice width", self.width)
        require_positive("MixedSlice discrete_width", self.discrete_width)

    def check(self, position: Position, target: CoresetTarget) -> None:
        del target
        dimension = sum(jnp.size(leaf) for leaf in jax.tree.leaves(position))
        shape = (dimension, dimension) if self.scale is None else jnp.shape(self.scale)
        require(
            shape == (dimension, dimension),
            "MixedSlice scale",
            got=f"shape {shape}",
            expected=f"shape ({dimension}, {dimension}), a factor of the covariance of the flattened position",
            fix="Leave it out for directions that are uniform on the sphere.",
        )

    def step(self, key: Key, state: KernelState, target: CoresetTarget) -> tuple[KernelState, KernelInfo]:
        flat, unravel = flat_numbers(state.position)
        is_real = real_coordinates(state.position)
        num_real, num_lines = int(is_real.sum()), is_real.size
        direction_key, offset_key, line_key = jax.random.split(key, 3)
        directions, offsets = self._lines(direction_key, offset_key, is_real, flat.dtype)
        count = num_uniforms(self.max_doublings, self.max_shrinkages)
        uniforms = jax.random.uniform(line_key, (num_lines, count), dtype=state.log_density.dtype)
        widths = jnp.where(jnp.arange(num_lines) < num_real, self.width, self.discrete_width)

        def one_line(number: jax.Array, carry: tuple[Any, ...]) -> tuple[Any, ...]:
            at, log_density, num_evaluations, num_found = carry
            from_here = at + offsets[number]

            def there(t: jax.Array) -> jax.Array:
                moved = from_here + t * directions[number]
                return jnp.where(is_real, moved, jnp.floor(moved))

            went: LineMove = slice_on_line(
                uniforms[number],
                lambda t: _log_density(target, unravel, there(t)),
                log_density,
                width=widths[number],
                max_doublings=self.max_doublings,
            )
            end = jnp.where(went.found, there(went.distance), at)
            return end, went.log_density, num_evaluations + went.num_evaluations, num_found + went.found

        none = jnp.zeros((), jnp.int32)
        at, log_density, num_evaluations, num_found = jax.lax.fori_loop(
            0, num_lines, one_line, (flat, state.log_density, none, none)
        )
        info = KernelInfo(num_found / num_lines, num_evaluations, num_found < num_lines)
        return KernelState(unravel(at), log_density), info

    def _lines(self, key: Key, offset_key: Key, is_real: np.ndarray, dtype: Any) -> tuple[jax.Array, jax.Array]:
        """Directions (lines, d) and where on the unit interval above a whole number each of them starts (lines, d)."""
        num_real = int(is_real.sum())
        noise = jax.random.normal(key, (num_real, is_real.size), dtype)
        if self.scale is None:
            noise = jnp.where(is_real, noise, 0.0)
        random = noise / jnp.linalg.norm(noise, axis=1, keepdims=True)
        if self.scale is not None:
            random = jnp.where(is_real, random @ jnp.asarray(self.scale, dtype).T, 0.0)
        single = np.eye(is_real.size)[~is_real]
        offsets = jax.random.uniform(offset_key, (len(single), 1), dtype) * single
        return jnp.concatenate([random, single]), jnp.concatenate([jnp.zeros_like(random), offsets])


def real_coordinates(position: Position) -> np.ndarray:
    """Marks (d,) the flat coordinates that are real numbers."""
    parts = [
        np.full(jnp.size(leaf), jnp.issubdtype(jnp.result_type(leaf), jnp.floating))
        for leaf in jax.tree.leaves(position)
    ]
    return np.concatenate(parts)


def flat_numbers(position: Position) -> tuple[jax.Array, Any]:
    """The position as one vector of floating-point numbers, and the way back, which keeps the types of the leaves."""
    as_floats = jax.tree.map(lambda leaf: jnp.asarray(leaf).astype(jnp.result_type(float)), position)
    flat, unravel_floats = ravel_pytree(as_floats)

    def unravel(at: jax.Array) -> Position:
        return jax.tree.map(lambda new, old: new.astype(jnp.asarray(old).dtype), unravel_floats(at), position)

    return flat, unravel


def _log_density(target: CoresetTarget, unravel: Any, at: jax.Array) -> jax.Array:
    """Minus infinity where the type of a leaf cannot hold the number, such as 2 for a truth value."""
    position = unravel(at)
    is_held = jnp.all(flat_numbers(position)[0] == at)
    return jnp.where(is_held, target.log_density(position), -jnp.inf)
