"""Flat positions as trees, on the host."""

from __future__ import annotations

import jax
import numpy as np

from coreset_mcmc.core.types import Position


def positions_of(position: Position, flat: np.ndarray) -> Position:
    """Flat positions (K, d) as a tree like ``position`` with a leading axis, on the host."""
    leaves, structure = jax.tree.flatten(position)
    places = np.cumsum([0, *(np.size(leaf) for leaf in leaves)])
    parts = [
        flat[:, first:last].reshape(len(flat), *np.shape(leaf)).astype(np.asarray(leaf).dtype)
        for leaf, first, last in zip(leaves, places[:-1], places[1:], strict=True)
    ]
    return jax.tree.unflatten(structure, parts)
