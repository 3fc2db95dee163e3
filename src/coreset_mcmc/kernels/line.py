"""Slice sampling on a line, with doubling and its acceptance test (Neal 2003, Figures 4, 5 and 6).

The current point is t = 0 and everything is a scalar coordinate along the line, so no component of the direction is
ever divided by. BlackJAX has a slice sampler too; its doubling evaluates all 2 (p + 1) bracket ends up front and each
evaluation is a full one, which makes it several times slower here (``coreset-mcmc bench slice-kernels``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

LogDensityOnLine = Callable[[jax.Array], jax.Array]
AcceptanceTest = Callable[[jax.Array, jax.Array], tuple[jax.Array | bool, jax.Array | int]]

WIDTH_TOLERANCE = 1.1
"""Neal's guard against rounding when the bracket is halved back down to its initial width."""


class LineMove(NamedTuple):
    """Where the slice sampler went on the line."""

    distance: jax.Array
    log_density: jax.Array
    num_evaluations: jax.Array
    found: jax.Array


class Bracket(NamedTuple):
    """An interval on the line and the log-density at its ends."""

    left: jax.Array
    right: jax.Array
    left_value: jax.Array
    right_value: jax.Array
    num_doublings: jax.Array


def num_uniforms(max_doublings: int, max_shrinkages: int) -> int:
    """How many uniform numbers one move consumes at most: the level, the offset, the sides and the proposals."""
    return 2 + max_doublings + max_shrinkages


def slice_on_line(
    uniforms: jax.Array,
    log_density: LogDensityOnLine,
    current: jax.Array,
    *,
    width: jax.Array | float,
    max_doublings: int,
) -> LineMove:
    """Draw a new coordinate from the slice through t = 0, whose log-density is ``current``.

    ``log_density`` must return -inf rather than NaN. If all proposals fail, of which there are as many as
    ``uniforms`` allow (see :func:`num_uniforms`), the chain stays.
    """
    level = current + jnp.log(uniforms[0])
    goes_left = uniforms[2 : 2 + max_doublings] < 0.5
    bracket = _double(log_density, level, -width * uniforms[1], width, goes_left)
    proposals = uniforms[2 + max_doublings :]

    def search(acceptance_test: AcceptanceTest) -> LineMove:
        return _shrink(log_density, level, current, bracket, proposals, acceptance_test)

    move = jax.lax.cond(
        bracket.num_doublings > 0,
        lambda: search(
            lambda distance, is_inside: _acceptable(log_density, level, bracket, distance, width, is_inside)
        ),
        lambda: search(_always_acceptable),
    )
    result: LineMove = move._replace(num_evaluations=2 + bracket.num_doublings + move.num_evaluations)
    return result


def _always_acceptable(distance: jax.Array, is_inside: jax.Array) -> tuple[bool, int]:
    """Without a doubling the bracket has one width only, and the test of Figure 6 passes without a look."""
    del distance, is_inside
    return True, 0


def _double(
    log_density: LogDensityOnLine, level: jax.Array, left: jax.Array, width: jax.Array | float, goes_left: jax.Array
) -> Bracket:
    """Figure 4: double the bracket to a random side until both ends are outside the slice."""
    max_doublings = goes_left.shape[0]

    def must_grow(bracket: Bracket) -> jax.Array:
        is_inside = (level < bracket.left_value) | (level < bracket.right_value)
        return is_inside & (bracket.num_doublings < max_doublings)

    def grow(bracket: Bracket) -> Bracket:
        length = bracket.right - bracket.left
        to_left = goes_left[bracket.num_doublings]
        end = jnp.where(to_left, bracket.left - length, bracket.right + length)
        value = log_density(end)
        return Bracket(
            left=jnp.where(to_left, end, bracket.left),
            right=jnp.where(to_left, bracket.right, end),
            left_value=jnp.where(to_left, value, bracket.left_value),
            right_value=jnp.where(to_left, bracket.right_value, value),
            num_doublings=bracket.num_doublings + 1,
        )

    right = left + width
    start = Bracket(left, right, log_density(left), log_density(right), jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(must_grow, grow, start)


class _Search(NamedTuple):
    left: jax.Array
    right: jax.Array
    distance: jax.Array
    log_density: jax.Array
    num_proposals: jax.Array
    num_evaluations: jax.Array
    found: jax.Array


def _shrink(
    log_density: LogDensityOnLine,
    level: jax.Array,
    current: jax.Array,
    bracket: Bracket,
    uniforms: jax.Array,
    acceptance_test: AcceptanceTest,
) -> LineMove:
    """Figure 5: propose within the bracket; a rejected proposal becomes its new end."""

    def must_search(packed: jax.Array) -> jax.Array:
        search = _Search(*packed)
        return (search.found == 0) & (search.num_proposals < uniforms.shape[0])

    def propose(packed: jax.Array) -> jax.Array:
        search = _Search(*packed)
        uniform = uniforms[search.num_proposals.astype(jnp.int32)]
        distance = search.left + uniform * (search.right - search.left)
        value = log_density(distance)
        is_inside = level < value
        acceptable, evaluations = acceptance_test(distance, is_inside)
        found = is_inside & acceptable
        return _packed(
            _Search(
                left=jnp.where(~found & (distance < 0), distance, search.left),
                right=jnp.where(~found & (distance >= 0), distance, search.right),
                distance=jnp.where(found, distance, search.distance),
                log_density=jnp.where(found, value, search.log_density),
                num_proposals=search.num_proposals + 1,
                num_evaluations=search.num_evaluations + 1 + evaluations,
                found=found,
            ),
            current.dtype,
        )

    start = _Search(bracket.left, bracket.right, jnp.zeros_like(current), current, *(jnp.zeros((), jnp.int32),) * 3)
    end = _Search(*jax.lax.while_loop(must_search, propose, _packed(start, current.dtype)))
    return LineMove(end.distance, end.log_density, end.num_evaluations.astype(jnp.int32), end.found != 0)


def _packed(search: _Search, dtype: Any) -> jax.Array:
    """One vector instead of seven scalars: XLA on a CPU pays for each output of a loop body, every time round."""
    return jnp.stack([jnp.asarray(item, dtype) for item in search])


class _Halving(NamedTuple):
    left: jax.Array
    right: jax.Array
    left_value: jax.Array
    right_value: jax.Array
    differs: jax.Array
    is_acceptable: jax.Array
    num_evaluations: jax.Array


def _acceptable(
    log_density: LogDensityOnLine,
    level: jax.Array,
    bracket: Bracket,
    distance: jax.Array,
    width: jax.Array | float,
    is_inside: jax.Array,
) -> tuple[jax.Array, jax.Array]:
    """Figure 6: could doubling from ``distance`` have led to the same bracket? Runs only after a doubling.

    Halve the bracket towards the proposal. Once the halves that hold it and the current point differ, an
    intermediate bracket with both ends outside the slice means that doubling would have stopped there.
    """

    def must_halve(halving: _Halving) -> jax.Array:
        is_wide = halving.right - halving.left > WIDTH_TOLERANCE * width
        return is_inside & halving.is_acceptable & is_wide

    def halve(halving: _Halving) -> _Halving:
        middle = 0.5 * (halving.left + halving.right)
        to_left = distance < middle
        value = log_density(middle)
        left_value = jnp.where(to_left, halving.left_value, value)
        right_value = jnp.where(to_left, value, halving.right_value)
        differs = halving.differs | ((middle > 0) != to_left)
        stops_here = differs & (level >= left_value) & (level >= right_value)
        return _Halving(
            left=jnp.where(to_left, halving.left, middle),
            right=jnp.where(to_left, middle, halving.right),
            left_value=left_value,
            right_value=right_value,
            differs=differs,
            is_acceptable=~stops_here,
            num_evaluations=halving.num_evaluations + 1,
        )

    start = _Halving(
        bracket.left,
        bracket.right,
        bracket.left_value,
        bracket.right_value,
        jnp.array(False),
        jnp.array(True),
        jnp.zeros((), jnp.int32),
    )
    end = jax.lax.while_loop(must_halve, halve, start)
    return end.is_acceptable, end.num_evaluations
