"""Uniform rows without replacement in O(S) time and memory, whatever N is.

Sorting N random keys, as ``jax.random.permutation`` does, costs milliseconds at N = 10^5: more than the rest of a
Coreset MCMC step. Instead a keyed bijection of {0..N-1} is evaluated at the S places that are wanted. It is a
generalised Feistel network on Z_a x Z_b with a b >= N (Black and Rogaway 2002; Mitchell et al. 2022 shuffle on GPUs
the same way). A value of N or more is walked on along its cycle, all places together, which costs a network each time;
so a and b are near sqrt(N) with a b - N as small as can be, mostly 0 to 2. Small N uses the exact sort.
"""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Key

EXACT_BELOW = 1_024
"""Up to this many rows a sort is as fast, and exactly uniform over all permutations."""

MOST_GRIDS = 256
"""Heights that are tried for the grid a b; a few dozen find an area of N + 2 or less."""

NUM_ROUNDS = 6
"""Luby-Rackoff needs four rounds for a pseudo-random permutation; two more, because our round function is a hash."""


def permuted(key: Key, size: int, places: jax.Array) -> jax.Array:
    """Where a random permutation of ``range(size)``, fixed by ``key``, sends each of ``places``."""
    if size <= EXACT_BELOW:
        return jax.random.permutation(key, size)[places]
    return _feistel(key, size, places)


def without_replacement(key: Key, size: int, count: int) -> jax.Array:
    """``count`` distinct row numbers below ``size``, uniformly at random."""
    if count > size:
        raise ValueError(f"cannot draw {count} distinct rows out of {size}")
    return permuted(key, size, jnp.arange(count))


def grid(size: int) -> tuple[int, int]:
    """Height and width, near each other and below 2^16, of the smallest area that has room for ``size`` values."""
    root = math.isqrt(size - 1) + 1
    lowest = max(root // 2, root - MOST_GRIDS, -(-size // 2**16))
    shapes = ((height, -(-size // height)) for height in range(root, lowest - 1, -1))
    return min(shapes, key=lambda shape: shape[0] * shape[1])


def _mix(bits: jax.Array) -> jax.Array:
    """A 32-bit avalanche: each input bit flips each output bit with probability near one half."""
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x7FEB352D)
    bits = (bits ^ (bits >> 15)) * jnp.uint32(0x846CA68B)
    return bits ^ (bits >> 16)


def _below(bits: jax.Array, bound: int) -> jax.Array:
    """Map 32 uniform bits to {0..bound-1} by their upper part, for a bound of at most 2^16."""
    low, high = bits & 0xFFFF, bits >> 16
    return (high * bound + ((low * bound) >> 16)) >> 16


def _wrap(value: jax.Array, bound: int) -> jax.Array:
    """``value % bound`` for a value below twice the bound, without a division."""
    return jnp.where(value >= bound, value - jnp.uint32(bound), value)


def _feistel(key: Key, size: int, places: jax.Array) -> jax.Array:
    if size >= 2**31:
        raise ValueError(f"row numbers are 32-bit: at most {2**31 - 1} rows can be shuffled, got {size}")
    rows, columns = grid(size)
    round_keys = jax.random.bits(key, (NUM_ROUNDS,), jnp.uint32)

    def scramble(value: jax.Array) -> jax.Array:
        left, right = value // jnp.uint32(columns), value % jnp.uint32(columns)
        for number in range(NUM_ROUNDS):
            if number % 2 == 0:
                left = _wrap(left + _below(_mix(right ^ round_keys[number]), rows), rows)
            else:
                right = _wrap(right + _below(_mix(left ^ round_keys[number]), columns), columns)
        result: jax.Array = left * jnp.uint32(columns) + right
        return result

    def walk(state: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        value, is_first = state
        return jnp.where(is_first | (value >= size), scramble(value), value), jnp.array(False)

    def has_left(state: tuple[jax.Array, jax.Array]) -> jax.Array:
        value, is_first = state
        return is_first | jnp.any(value >= size)

    if rows * columns == size:
        return scramble(places.astype(jnp.uint32)).astype(jnp.int32)
    start = (places.astype(jnp.uint32), jnp.array(True))
    return jax.lax.while_loop(has_left, walk, start)[0].astype(jnp.int32)
