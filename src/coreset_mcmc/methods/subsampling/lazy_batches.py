"""Rows in random order without replacement, fetched only as far as a step looks.

A Metropolis-Hastings decision that needs 100 of 10^5 rows should cost 100 rows. Drawing a permutation of all rows, or
the set difference to those already seen, would cost O(N) in every step. Here the order is a keyed permutation that is
evaluated at the places wanted, and rows come in blocks of fixed width, as compiled code requires.

The blocks cover the N rows exactly, so none is padded and every row evaluated is a row that counts: narrow blocks
first, then blocks of about :data:`WIDE` rows once a look beyond the needed rows is small change, then what remains.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Key
from coreset_mcmc.data.shuffle import EXACT_BELOW, permuted

WIDE = 1_024
"""About as many rows are in a wide block: the cost of a loop's turn no longer shows."""

WIDE_AFTER = 4
"""Wide blocks begin once this many times their width has been seen, so at most a quarter of the rows is looked at in
vain when a decision falls at the beginning of a block."""


class Blocks(NamedTuple):
    """A run of blocks of equal width."""

    start: int
    width: int
    num_blocks: int

    @property
    def end(self) -> int:
        return self.start + self.width * self.num_blocks


def plan_blocks(size: int, width: int) -> tuple[Blocks, ...]:
    """Runs of blocks that cover ``range(size)`` exactly, the first ones ``width`` rows wide."""
    width = min(width, size)
    wide = width * max(1, WIDE // width)
    num_narrow = min(size // width, WIDE_AFTER * wide // width)
    narrow = Blocks(0, width, num_narrow)
    broad = Blocks(narrow.end, wide, (size - narrow.end) // wide)
    rest = Blocks(broad.end, size - broad.end, 1)
    return tuple(blocks for blocks in (narrow, broad, rest) if blocks.width * blocks.num_blocks > 0)


def row_order(key: Key, size: int) -> Callable[[jax.Array], jax.Array]:
    """A random order of all rows, fixed by ``key``: which rows are at the given places."""
    if size <= EXACT_BELOW:
        order = permuted(key, size, jnp.arange(size))
        return lambda places: order[places]
    return lambda places: permuted(key, size, places)
