"""Slice moves in plain Python for densities that are Python themselves: along ellipses, then along lines.

*Ellipses.* The target is taken for a multivariate t distribution, whose centre and scale training knows, times a rest.
Given its radius a t distribution is a Gaussian, so a move may go along the ellipse through the current point and a
draw of that Gaussian, on which the Gaussian has the same density everywhere; the rest is sliced, and the angle shrinks
until a point is inside (generalised elliptical slice sampling, Nishihara, Murray and Adams 2014; Murray, Adams and
MacKay 2010). Where the t distribution is right the first point is taken and a draw costs one evaluation, where
trajectories would cost a gradient for each of their steps. It is exact whatever the centre and the scale.

*Lines.* Where the target is of another shape the angles become small. Moves along random lines, with doubling and its
test (Neal 2003), then do the work.

A move is a generator: it yields a position and is sent its log-density. So each is written for one chain, and those of
all chains share calls of the user's function.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

Density = Callable[[np.ndarray], np.ndarray]
"""From flat positions (K, d) to log-densities (K,), never NaN."""
DEGREES = 10.0
"""Of freedom of the t distribution: tails heavier than those of a Gaussian, and nearly as flat a rest."""
WIDTH = 8.0
"""Of the first bracket on a line, in standard deviations: wide enough that it hardly ever has to be doubled."""
MOST_DOUBLINGS, MOST_PROPOSALS = 40, 100
"""On one line or ellipse; beyond it the chain stays and the step is flagged."""
WIDTH_TOLERANCE = 1.1
"""Guards against rounding when a bracket is halved back to its first width."""


class Point(NamedTuple):
    """Where a chain is, flat (d,), and its log-density there."""

    flat: np.ndarray
    value: float


class Move(NamedTuple):
    """Where a move has ended."""

    point: Point
    num_evaluations: int
    found: bool
    """Whether the search ended before its cap."""


Search = Generator[np.ndarray, float, Move]


class Shape(NamedTuple):
    """What is known of the target: a centre (d,) and a lower triangular factor (d, d) of its covariance."""

    centre: np.ndarray
    scale: np.ndarray

    def whitened(self, flat: np.ndarray) -> np.ndarray:
        """In coordinates in which the target is round, around zero."""
        result: np.ndarray = solve_triangular(self.scale, flat - self.centre, lower=True)
        return result

    def placed(self, whitened: np.ndarray) -> np.ndarray:
        """Back again."""
        result: np.ndarray = self.centre + self.scale @ whitened
        return result


def along_ellipse(generator: np.random.Generator, start: Point, shape: Shape) -> Search:
    """One move along a random ellipse."""
    here = shape.whitened(start.flat)
    half = 0.5 * (DEGREES + len(here))

    def rest(whitened: np.ndarray, value: float) -> float:
        return value + half * float(np.log1p(whitened @ whitened / DEGREES))

    radius = np.sqrt((DEGREES + here @ here) / generator.chisquare(2.0 * half))
    other = radius * generator.normal(size=len(here))
    level = rest(here, start.value) - generator.exponential()
    angle = generator.uniform(0.0, 2.0 * np.pi)
    lowest, highest = angle - 2.0 * np.pi, angle
    for number in range(1, MOST_PROPOSALS + 1):
        whitened = here * np.cos(angle) + other * np.sin(angle)
        flat = shape.placed(whitened)
        value = yield flat
        if rest(whitened, value) > level:
            return Move(Point(flat, value), number, True)
        lowest, highest = (angle, highest) if angle < 0.0 else (lowest, angle)
        angle = generator.uniform(lowest, highest)
    return Move(start, MOST_PROPOSALS, False)


def along_line(generator: np.random.Generator, start: Point, scale: np.ndarray) -> Search:
    """One move along a random line: Figures 4 to 6 of Neal (2003)."""
    noise = generator.normal(size=len(start.flat))
    direction = scale @ (noise / np.linalg.norm(noise))
    level = start.value - generator.exponential()
    left = -WIDTH * generator.uniform()
    right = left + WIDTH
    at_left = yield start.flat + left * direction
    at_right = yield start.flat + right * direction
    count, num_doublings = 2, 0
    while (level < at_left or level < at_right) and num_doublings < MOST_DOUBLINGS:
        length = right - left
        if generator.uniform() < 0.5:
            left -= length
            at_left = yield start.flat + left * direction
        else:
            right += length
            at_right = yield start.flat + right * direction
        num_doublings += 1
    count += num_doublings
    bracket = (left, right, at_left, at_right)
    for _ in range(MOST_PROPOSALS):
        distance = generator.uniform(left, right)
        flat = start.flat + distance * direction
        value = yield flat
        count += 1
        is_found = level < value
        if is_found and num_doublings:
            is_found, tested = yield from _is_acceptable(start.flat, direction, distance, level, bracket)
            count += tested
        if is_found:
            return Move(Point(flat, value), count, True)
        left, right = (distance, right) if distance < 0.0 else (left, distance)
    return Move(start, count, False)


def _is_acceptable(
    flat: np.ndarray, direction: np.ndarray, distance: float, level: float, bracket: tuple[float, float, float, float]
) -> Generator[np.ndarray, float, tuple[bool, int]]:
    """Whether doubling from the proposal could have led to the same bracket."""
    left, right, at_left, at_right = bracket
    differs, count = False, 0
    while right - left > WIDTH_TOLERANCE * WIDTH:
        middle = 0.5 * (left + right)
        to_left = distance < middle
        at_middle = yield flat + middle * direction
        count += 1
        differs = differs or (middle > 0.0) != to_left
        if to_left:
            right, at_right = middle, at_middle
        else:
            left, at_left = middle, at_middle
        if differs and level >= at_left and level >= at_right:
            return False, count
    return True, count


def together(searches: Sequence[Search], density: Density) -> list[Move]:
    """Run searches side by side: what all of them ask for next is evaluated in one call."""
    ended: dict[int, Move] = {}
    asked = {number: next(search) for number, search in enumerate(searches)}
    while asked:
        values = density(np.stack(list(asked.values())))
        for number, value in zip(list(asked), values, strict=True):
            try:
                asked[number] = searches[number].send(float(value))
            except StopIteration as stopped:
                ended[number] = stopped.value
                del asked[number]
    return [ended[number] for number in range(len(searches))]
