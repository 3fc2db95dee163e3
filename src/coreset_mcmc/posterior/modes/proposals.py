"""Where to look for modes: draws at many scales, few rows at a time, mirrors, lines.

No single way finds all modes. Draws of the prior find what has a wide basin. Climbers that see a handful of rows end
where those rows want them to be, as in the random sample consensus of Fischler and Bolles (1981): a cluster of rows
that pulls nobody from afar still has a peak of its own. Lines through a mode along each parameter find narrow peaks
beside broad ones. Everything here is NumPy on the host.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

FREEDOM = 3.0
"""Of the t-distribution by which prior draws are spread: heavier tails than the prior's own Gaussian."""
SUBSET_SIZES = (1, 2, 3, 5, 8, 16)
"""Rows that a climber sees."""
WEIGHT_OF_SUBSET = 10.0
"""Of all rows of a subset together, for each parameter and one more."""
NUM_NEIGHBOURS, MOST_COMPARED = 8, 1_024
"""A position is a peak of a population if none of its neighbours, among the highest, is higher."""
POINTS_ON_LINE, REACH_OF_LINE = 96, 4.0


class Spread(NamedTuple):
    """Where the prior has its mass, one number for each parameter (d,)."""

    centre: np.ndarray
    scale: np.ndarray


def around(starts: np.ndarray, spread: Spread) -> np.ndarray:
    """The widest sensible distance (d,) from the user's starts (K, d)."""
    reach: np.ndarray = np.maximum(spread.scale, np.max(np.abs(starts - spread.centre), axis=0))
    return reach


def population(
    generator: np.random.Generator, count: int, starts: np.ndarray, spread: Spread, ends: np.ndarray, width: float
) -> np.ndarray:
    """Draws (count, d): of the prior, at all scales around the starts, and between the ends (E, d) of first climbs."""
    dimension, each = starts.shape[1], count // 4
    heavy = generator.normal(size=(each, dimension)) / np.sqrt(generator.chisquare(FREEDOM, (each, 1)) / FREEDOM)
    uniform = generator.uniform(-1.0, 1.0, (each, dimension))
    of_prior = spread.centre + width * spread.scale * np.concatenate([heavy, 3.0 * uniform])
    reach = around(starts, spread)
    smallest, largest = np.minimum(reach, 1.0) * 0.01, width * 3.0 * reach
    share = generator.random((each, 1))
    near = starts[generator.integers(len(starts), size=each)]
    near = near + smallest ** (1.0 - share) * largest**share * generator.normal(size=(each, dimension))
    return np.concatenate([of_prior, near, between(generator, count - 3 * each, ends, smallest)])


def between(generator: np.random.Generator, count: int, ends: np.ndarray, smallest: np.ndarray) -> np.ndarray:
    """Coordinates of one end, some of another, and a jitter at a random scale of their spread."""
    one, other = (ends[generator.integers(len(ends), size=count)] for _ in range(2))
    is_other = generator.random(one.shape) < generator.random((count, 1))
    size = 10.0 ** generator.uniform(-3.0, 0.3, (count, 1))
    jitter = size * np.maximum(np.std(ends, axis=0), smallest) * generator.normal(size=one.shape)
    result: np.ndarray = np.where(is_other, other, one) + jitter
    return result


def subsets(
    generator: np.random.Generator, count: int, values: np.ndarray, chances: np.ndarray, dimension: int
) -> np.ndarray:
    """Weights (count, n) of a handful of rows each, of which the first is drawn by chance.

    Every other subset is a row and those that are most like it, by the values (n, p) of the rows.
    """
    num_rows = len(chances)
    weights = np.zeros((count, num_rows))
    possible = int(np.count_nonzero(chances))
    for number in range(count):
        size = min(SUBSET_SIZES[number % len(SUBSET_SIZES)], possible)
        chosen = generator.choice(num_rows, size, replace=False, p=chances)
        if number % 2:
            distance = np.sum((values - values[chosen[0]]) ** 2, axis=1)
            chosen = np.argsort(np.where(chances > 0, distance, np.inf), kind="stable")[:size]
        weights[number, chosen] = max(WEIGHT_OF_SUBSET * (dimension + 1) / size, 1.0)
    return weights


def peaks(flat: np.ndarray, heights: np.ndarray, count: int) -> np.ndarray:
    """Places (at most ``count``,) of the highest positions that are higher than all of their neighbours."""
    order = np.argsort(-heights, kind="stable")
    order = order[np.isfinite(heights[order])][:MOST_COMPARED]
    if len(order) <= 1:
        return np.asarray(order)
    chosen = flat[order]
    low, high = np.quantile(chosen, [0.1, 0.9], axis=0)
    scaled = (chosen - low) / np.where(high > low, high - low, 1.0)
    squares = np.sum(scaled**2, axis=1)
    distances = squares[:, None] + squares - 2.0 * scaled @ scaled.T
    number = min(NUM_NEIGHBOURS, len(order) - 1)
    nearest = np.argpartition(distances, number, axis=1)[:, : number + 1]
    is_peak = nearest.min(axis=1) >= np.arange(len(order))
    return np.asarray(order[is_peak][:count])


def lines(generator: np.random.Generator, through: np.ndarray, reach: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Points (len(places), POINTS_ON_LINE, d) on lines through a position along some parameters."""
    half = POINTS_ON_LINE // 4
    near = 10.0 ** (np.linspace(-3.0, 0.5, half) + generator.uniform(0.0, 3.5 / half))
    even = REACH_OF_LINE * (np.arange(2 * half) + generator.random()) / half - REACH_OF_LINE
    steps = np.sort(np.concatenate([-near, even, near]))
    points = np.repeat(np.repeat(through[None, None], len(places), axis=0), len(steps), axis=1)
    for number, place in enumerate(places):
        points[number, :, place] += reach[place] * steps
    return points


def peaks_on_lines(heights: np.ndarray) -> np.ndarray:
    """Marks points (L, P) that are higher than both neighbours on their line."""
    padded = np.pad(heights, ((0, 0), (1, 1)), constant_values=-np.inf)
    is_peak: np.ndarray = np.isfinite(heights) & (heights >= padded[:, :-2]) & (heights >= padded[:, 2:])
    return is_peak
