"""Exchanges and changes of sign that leave a posterior as it is.

Relabelling the components of a mixture, or changing the signs of both factors of a product, maps the posterior onto
itself: modes come in copies of equal height and equal volume. Such maps are signed permutations of the coordinates. A
few of them are proposed, for their own sake (a mirrored position is a good place to look for another mode) and to be
tried out: a map is a symmetry if it changes the log-density at none of several unrelated positions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.trees import coordinate_names, named_leaves
from coreset_mcmc.core.types import Position

MOST_SINGLE, MOST_PAIRED = 32, 8
"""Parameters up to which signs are changed one by one, and two by two."""
MOST_COMPONENTS = 8
"""Along an axis, up to which each two are exchanged."""
MOST_COPIES = 128
"""Images of a position that are looked at."""
NUM_TRIALS, FEWEST_TRIALS = 6, 3
"""Positions at which a map is tried, and how many of them the posterior must allow."""
ROUNDING = 1e-9
"""Relative to the size of the sums that are compared."""


class SignedPermutation(NamedTuple):
    """theta -> signs * theta[places]."""

    places: np.ndarray
    signs: np.ndarray
    words: str

    def __call__(self, flat: np.ndarray) -> np.ndarray:
        """The image of flat positions (..., d)."""
        image: np.ndarray = self.signs * flat[..., self.places]
        return image


def proposed_maps(position: Position, is_held: np.ndarray) -> list[SignedPermutation]:
    """Changes of sign of one parameter, two, an array and all; exchanges of two components."""
    return [*_sign_changes(position, is_held), *_exchanges(position)]


def _sign_changes(position: Position, is_held: np.ndarray) -> list[SignedPermutation]:
    names, free = coordinate_names(position), np.flatnonzero(~is_held)
    leaves = named_leaves(position, "position")
    stops = np.cumsum([0, *(np.size(leaf) for leaf in leaves.values())])
    sets: dict[tuple[int, ...], str] = {}
    if len(free) <= MOST_SINGLE:
        sets |= {(place,): names[place] for place in free.tolist()}
    if len(free) <= MOST_PAIRED:
        sets |= {pair: " and ".join(names[place] for place in pair) for pair in combinations(free.tolist(), 2)}
    for name, first, last in zip(leaves, stops[:-1], stops[1:], strict=True):
        sets.setdefault(tuple(place for place in range(first, last) if not is_held[place]), name)
    sets.setdefault(tuple(free.tolist()), "all parameters")
    return [_flip(len(is_held), places, f"the sign of {words}") for places, words in sets.items() if places]


def _flip(dimension: int, places: Iterable[int], words: str) -> SignedPermutation:
    signs = np.ones(dimension)
    signs[list(places)] = -1.0
    return SignedPermutation(np.arange(dimension), signs, words)


def _exchanges(position: Position) -> list[SignedPermutation]:
    """Of two components, in all arrays that have as many along some axis, and in each of these arrays alone."""
    leaves = {name: np.asarray(leaf) for name, leaf in named_leaves(position, "position").items()}
    lengths = sorted({length for leaf in leaves.values() for length in leaf.shape})
    maps: list[SignedPermutation] = []
    for length in lengths:
        if not 2 <= length <= MOST_COMPONENTS:
            continue
        having = [name for name, leaf in leaves.items() if length in leaf.shape]
        for chosen in [having, *([name] for name in having if len(having) > 1)]:
            for pair in combinations(range(length), 2):
                words = f"components {pair[0]} and {pair[1]} of {', '.join(chosen)}"
                maps.append(_exchange(leaves, set(chosen), length, pair, words))
    return maps


def _exchange(
    leaves: dict[str, np.ndarray], chosen: set[str], length: int, pair: tuple[int, int], words: str
) -> SignedPermutation:
    order = np.arange(length)
    order[list(pair)] = order[list(pair)[::-1]]
    places, start = [], 0
    for name, leaf in leaves.items():
        own = start + np.arange(leaf.size).reshape(leaf.shape)
        for axis in range(leaf.ndim):
            if name in chosen and leaf.shape[axis] == length:
                own = np.take(own, order, axis=axis)
        places.append(own.reshape(-1))
        start += leaf.size
    every = np.concatenate(places)
    return SignedPermutation(every, np.ones(len(every)), words)


def symmetries(
    maps: Sequence[SignedPermutation], trials: np.ndarray, heights: Callable[[np.ndarray], np.ndarray]
) -> list[SignedPermutation]:
    """Those of the maps that change the log-density (P,) at none of some positions (T, d)."""
    if not maps:
        return []
    images = np.stack([trials, *(mapped(trials) for mapped in maps)])
    found = heights(images.reshape(-1, trials.shape[1])).reshape(len(images), len(trials))
    is_possible = np.isfinite(found[0])
    if is_possible.sum() < FEWEST_TRIALS:
        return []
    before, after = found[0, is_possible], found[1:, is_possible]
    size = np.abs(before) + np.ptp(before)
    with np.errstate(invalid="ignore"):
        is_same = np.all(np.abs(after - before) <= ROUNDING * (1.0 + size), axis=1)
    return [mapped for mapped, same in zip(maps, is_same, strict=True) if same]


def copies(flat: np.ndarray, maps: Sequence[SignedPermutation]) -> np.ndarray:
    """A position (d,) and its images under all products of some maps (C, d), as far as they are different."""
    found, waiting = [flat], [flat]
    while waiting and len(found) < MOST_COPIES:
        at = waiting.pop(0)
        for mapped in maps:
            image = mapped(at)
            if not any(np.allclose(image, known, rtol=1e-9, atol=1e-12) for known in found):
                found.append(image)
                waiting.append(image)
    return np.stack(found[:MOST_COPIES])


def is_float(position: Position) -> np.ndarray:
    """Marks (d,) coordinates that can move by any amount."""
    kinds = [
        np.full(np.size(leaf), np.issubdtype(np.asarray(leaf).dtype, np.floating)) for leaf in jax.tree.leaves(position)
    ]
    return np.concatenate(kinds) if kinds else np.zeros(0, bool)
