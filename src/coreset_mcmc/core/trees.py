"""Positions as flat vectors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.types import Position


def dimension(position: Position) -> int:
    """The number of scalar coordinates of a position."""
    return sum(jnp.size(leaf) for leaf in jax.tree.leaves(position))


def flattened(positions: Position) -> jax.Array:
    """Positions with a leading axis as rows (K, d)."""
    return jax.vmap(lambda position: ravel_pytree(position)[0])(positions)
