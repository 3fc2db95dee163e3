"""Pytrees of positions: names of their leaves, their flat form, and the leading axes of draws and chains."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import require_count
from coreset_mcmc.core.types import Position


def leaf_names(tree: Any, default: str) -> Any:
    """The same tree with the path of its keys, joined by dots, in place of each leaf; a bare leaf is ``default``."""
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: jax.tree_util.keystr(path, simple=True, separator=".") or default, tree
    )


def named_leaves(tree: Any, default: str) -> dict[str, Any]:
    """Leaves by the path of their keys; a bare array is called ``default``."""
    return dict(zip(jax.tree.leaves(leaf_names(tree, default)), jax.tree.leaves(tree), strict=True))


def coordinate_names(position: Position) -> tuple[str, ...]:
    """A name for each scalar coordinate in the order of the flat position: ``beta[0]``, ``scale``."""
    names = []
    for name, leaf in named_leaves(position, "position").items():
        names += [f"{name}[{','.join(map(str, place))}]" if place else name for place in np.ndindex(np.shape(leaf))]
    return tuple(names)


def dimension(position: Position) -> int:
    """The number of scalar coordinates of a position."""
    return sum(jnp.size(leaf) for leaf in jax.tree.leaves(position))


def num_positions(positions: Position) -> int:
    """The length of the leading axis, which all leaves share."""
    return int(jax.tree.leaves(positions)[0].shape[0])


def first_position(positions: Position) -> Position:
    """The first entry along the leading axis."""
    return jax.tree.map(lambda leaf: leaf[0], positions)


def flattened(positions: Position) -> jax.Array:
    """Positions with a leading axis as rows (K, d)."""
    return jax.vmap(lambda position: ravel_pytree(position)[0])(positions)


def flat_positions(positions: Position) -> np.ndarray:
    """The same on the host."""
    leaves = [np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(positions)]
    return np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)


def positions_of(position: Position, flat: np.ndarray) -> Position:
    """Flat positions (K, d) as a tree like ``position`` with a leading axis, on the host."""
    leaves, structure = jax.tree.flatten(position)
    places = np.cumsum([0, *(np.size(leaf) for leaf in leaves)])
    parts = [
        flat[:, first:last].reshape(len(flat), *np.shape(leaf)).astype(np.asarray(leaf).dtype)
        for leaf, first, last in zip(leaves, places[:-1], places[1:], strict=True)
    ]
    return jax.tree.unflatten(structure, parts)


def flat_draws(draws: Position) -> np.ndarray:
    """Draws (T, K, d) on the host, from leaves with leading step and chain axes."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(draws)]
    return np.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves], axis=2)


def chain_first(draws: Any) -> Any:
    """From leaves (draw, chain, ...), as samplers make them, to (chain, draw, ...), as ArviZ has them; or back."""
    return jax.tree.map(lambda leaf: np.swapaxes(np.asarray(leaf), 0, 1), draws)


def pooled(positions: Position) -> Position:
    """One leading axis, on the host, in place of the first two."""
    return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[2:]), positions)


def thinned(positions: Position, draws: int | None) -> Position:
    """At most ``draws`` evenly spaced draws over all chains, from leaves (chain, draw, ...); None keeps all of them."""
    flat = pooled(positions)
    if draws is None:
        return flat
    require_count("draws", draws, at_least=1, fix="Leave it out for the default.")
    count = num_positions(flat)
    places = np.linspace(0, count - 1, min(draws, count)).astype(int)
    return jax.tree.map(lambda leaf: leaf[places], flat)
