"""Positions around draws: what a distance that is estimated from draws alone cannot see.

Draws of a coreset posterior lie where *it* has its mass. If the log-likelihood is constant there, as inside the step of
a rounded or counted parameter, or if the full posterior has its mass beside them, the draws agree with each other and
say nothing. So each draw theta_j gets a satellite theta'_j, by a displacement whose distribution is symmetric: along
the difference of two other draws, or along one coordinate, by one to thirty times the spread of the draws.

A symmetric pair needs no proposal density. For any function f, by the invariance of Barker's (1965) acceptance,

    E_w f = E_w [ (pi_w(theta) f(theta) + pi_w(theta') f(theta')) / (pi_w(theta) + pi_w(theta')) ],

so satellites enter every mean under pi_w exactly, by the little that pi_w gives them; with f = pi / pi_w it is the mass
of the full posterior there that counts. In any number of dimensions a satellite that neither posterior cares for
changes nothing.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.trees import first_position, flat_positions, positions_of
from coreset_mcmc.core.types import Position

SIZES = (1.0, 3.0, 10.0, 30.0)
"""Standard deviations of the displacements, in those of the draws, in turn."""


def satellites(generator: np.random.Generator, positions: Position) -> Position:
    """One for each of J draws with a leading axis. Whole numbers move by whole numbers, truth values change."""
    flat = flat_positions(positions)
    count = len(flat)
    kinds = _kinds(first_position(positions))
    size = np.resize(SIZES, count) * generator.normal(size=count)
    along_one = _along_one(generator, flat, kinds) * size[:, None]
    pairs = generator.integers(count, size=(2, count))
    along_two = (flat[pairs[0]] - flat[pairs[1]]) * size[:, None]
    is_along_one = (np.arange(count) // len(SIZES) % 2 == 0) | ~np.any(along_two, axis=1)
    step = np.where(is_along_one[:, None], along_one, along_two)
    moved = flat + np.where(kinds == "f", step, np.round(step))
    is_flipped = (kinds == "b") & (np.abs(step) >= 0.5)
    moved = np.where(kinds == "b", np.where(is_flipped, 1.0 - flat, flat), moved)
    return positions_of(first_position(positions), moved)


def _along_one(generator: np.random.Generator, flat: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """For each draw the spread of the draws along one coordinate, in turn from a random one on, and zeros.

    A coordinate along which draws never moved has a spread of one, and so have whole numbers at least.
    """
    count, num_coordinates = flat.shape
    with np.errstate(invalid="ignore", over="ignore"):
        spread = flat.std(axis=0)
    spread = np.where((spread > 0) & np.isfinite(spread), spread, 1.0)
    spread = np.where(kinds == "f", spread, np.maximum(spread, 1.0))
    places = (generator.integers(num_coordinates) + np.arange(count) // (2 * len(SIZES))) % num_coordinates
    result = np.zeros_like(flat)
    result[np.arange(count), places] = spread[places]
    return result


def _kinds(position: Position) -> np.ndarray:
    """For each flat coordinate (d,) "f" for a real number, "b" for a truth value, "i" for a whole number."""

    def kind(leaf: Any) -> np.ndarray:
        dtype = np.asarray(leaf).dtype
        is_real = np.issubdtype(dtype, np.floating)
        return np.full(np.size(leaf), "f" if is_real else "b" if np.issubdtype(dtype, np.bool_) else "i")

    return np.concatenate([kind(leaf) for leaf in jax.tree.leaves(position)])
