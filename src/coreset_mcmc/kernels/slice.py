"""Slice kernels: along random directions (hit-and-run) and along the coordinates in turn.

Section 3.2 of the paper recommends slice sampling with doubling because it needs no step size and so follows a target
that moves with the weights. Defaults are the paper's: initial width 10, at most 20 doublings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import require, require_count, require_positive
from coreset_mcmc.core.types import Key, Position, pytree, static
from coreset_mcmc.kernels.base import Kernel, KernelInfo, KernelState
from coreset_mcmc.kernels.line import num_uniforms, slice_on_line
from coreset_mcmc.posterior.target import CoresetTarget, move


class _Progress(NamedTuple):
    state: KernelState
    num_evaluations: jax.Array
    num_found: jax.Array


def slices_along(
    key: Key,
    state: KernelState,
    target: CoresetTarget,
    num_lines: int,
    direction_of: Callable[[jax.Array], Position],
    kernel: HitAndRunSlice | UnivariateSlice,
) -> tuple[KernelState, KernelInfo]:
    """Slice moves along ``num_lines`` lines, each through the end point of the one before.

    The uniforms of all lines are drawn at once: a call of the generator costs as much as several evaluations.
    """
    count = num_uniforms(kernel.max_doublings, kernel.max_shrinkages)
    uniforms = jax.random.uniform(key, (num_lines, count), dtype=state.log_density.dtype)

    def one_line(number: jax.Array, progress: _Progress) -> _Progress:
        position, log_density = progress.state
        direction = direction_of(number)
        went = slice_on_line(
            uniforms[number],
            target.along(position, direction),
            log_density,
            width=kernel.width,
            max_doublings=kernel.max_doublings,
        )
        return _Progress(
            KernelState(move(position, went.distance, direction), went.log_density),
            progress.num_evaluations + went.num_evaluations,
            progress.num_found + went.found,
        )

    none = jnp.zeros((), jnp.int32)
    end = jax.lax.fori_loop(0, num_lines, one_line, _Progress(state, none, none))
    info = KernelInfo(
        acceptance_rate=end.num_found / num_lines,
        num_evaluations=end.num_evaluations,
        diverging=end.num_found < num_lines,
    )
    return end.state, info


@pytree
@dataclass(frozen=True)
class HitAndRunSlice(Kernel):
    """Slice moves along random directions, uniform unless a scale shapes them.

    Args:
        width: initial width of the bracket; it doubles as needed.
        scale: a (d, d) factor L for the flattened position; directions are then L u with u uniform on the sphere,
            which mixes as fast as on a target whitened by L L' = covariance.
        num_directions: lines in one step (the paper uses one, its follow-up three).
        max_doublings: cap on the doublings of the bracket.
        max_shrinkages: cap on the proposals on one line; on reaching it the chain stays and the step is flagged.
    """

    width: float = 10.0
    scale: jax.Array | None = None
    num_directions: int = static(default=1)
    max_doublings: int = static(default=20)
    max_shrinkages: int = static(default=100)

    has_data_dependent_loops = True

    def __post_init__(self) -> None:
        require_positive("HitAndRunSlice width", self.width)
        require_count("num_directions", self.num_directions, at_least=1, fix="Leave it out for one line a step.")

    def check(self, position: Position, target: CoresetTarget) -> None:
        super().check(position, target)
        if self.scale is not None:
            dimension = sum(jnp.size(leaf) for leaf in jax.tree.leaves(position))
            require(
                jnp.shape(self.scale) == (dimension, dimension),
                "HitAndRunSlice scale",
                got=f"shape {jnp.shape(self.scale)}",
                expected=f"shape ({dimension}, {dimension}), a factor of the covariance of the flattened position",
                fix="Leave it out for directions that are uniform on the sphere.",
            )

    def step(self, key: Key, state: KernelState, target: CoresetTarget) -> tuple[KernelState, KernelInfo]:
        flat, unravel = ravel_pytree(state.position)
        direction_key, line_key = jax.random.split(key)
        noise = jax.random.normal(direction_key, (self.num_directions, flat.size), flat.dtype)
        directions = noise / jnp.linalg.norm(noise, axis=1, keepdims=True)
        if self.scale is not None:
            directions = directions @ jnp.asarray(self.scale, flat.dtype).T
        return slices_along(
            line_key, state, target, self.num_directions, lambda number: unravel(directions[number]), self
        )


@pytree
@dataclass(frozen=True)
class UnivariateSlice(Kernel):
    """Slice moves along each coordinate in turn; one step is one pass over all of them.

    Arguments as for :class:`HitAndRunSlice`.
    """

    width: float = 10.0
    max_doublings: int = static(default=20)
    max_shrinkages: int = static(default=100)

    has_data_dependent_loops = True

    def __post_init__(self) -> None:
        require_positive("UnivariateSlice width", self.width)

    def step(self, key: Key, state: KernelState, target: CoresetTarget) -> tuple[KernelState, KernelInfo]:
        flat, unravel = ravel_pytree(state.position)

        def coordinate_direction(number: jax.Array) -> Position:
            return unravel(jax.nn.one_hot(number, flat.size, dtype=flat.dtype))

        return slices_along(key, state, target, flat.size, coordinate_direction, self)
