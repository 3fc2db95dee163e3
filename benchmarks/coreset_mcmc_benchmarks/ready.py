"""Waiting for results, which JAX otherwise computes in the background."""

from __future__ import annotations

from typing import TypeVar

import jax

Tree = TypeVar("Tree")


def ready(tree: Tree) -> Tree:
    """The same arrays, once they are there."""
    waited: Tree = jax.tree.map(lambda leaf: leaf.block_until_ready(), tree)
    return waited
