"""Derivatives of functions that JAX cannot see into, by differences between nearby positions.

Along coordinate i the function is evaluated at +h_i and -h_i, and for second derivatives along pairs of coordinates as
well; all these positions go to Python in one call. Steps follow from *lengths*: how far a coordinate moves until the
log-likelihood of a typical row changes by about one. A ten-thousandth of that is the step of first derivatives, a
thousandth that of second ones: what is cut off is then 1e-8 and 1e-6 of them, rounding adds 1e-12 and 1e-9, and a
length that is wrong by a factor of a hundred, because the start is far away, still leaves two digits of the Hessian.

That is enough for what derivatives are used for here: finding the mode, choosing rows, shaping chains. None of it needs
to be exact; where densities are compared they are the function's own values.

A function that jumps, or that draws random numbers, has no derivatives. So they are tried out before any work.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

FIRST, SECOND = 1e-4, 1e-3
"""Steps of first and second derivatives, in lengths."""
MOST_COORDINATES = 20
"""With more, the d (d + 1) + 1 evaluations of a Hessian are too many."""
POWERS = np.arange(-40, 17, 2)
"""Lengths that are tried, as powers of two of the size of a coordinate."""
SMOOTH = 0.01
"""Largest relative difference between slopes from two steps."""
LEAST_SLOPE = 1e-3
"""Slopes times lengths below this, where the function changes by one over a length, are those of a staircase."""

Function = Callable[[np.ndarray], np.ndarray]
"""From flat positions (K, d) to values (K,) or (K, B)."""


class Stencil(NamedTuple):
    """Values of one position and its neighbours, and what follows from them."""

    order: int
    steps: np.ndarray
    """(d,)"""

    @property
    def displacements(self) -> np.ndarray:
        """(S, d): none, each coordinate up, each down, and for second derivatives pairs of them up and down."""
        diagonal = np.diag(self.steps)
        parts = [np.zeros((1, len(self.steps))), diagonal, -diagonal]
        if self.order == 2:
            one, other = np.triu_indices(len(self.steps), 1)
            both = diagonal[one] + diagonal[other]
            parts += [both, -both]
        return np.concatenate(parts)

    @property
    def width(self) -> int:
        """Numbers that follow for each value: itself, the gradient, the Hessian."""
        count = len(self.steps)
        return 1 + count + (count**2 if self.order == 2 else 0)

    def derivatives(self, values: np.ndarray) -> np.ndarray:
        """From values (K, S, ...) of K positions: (K, ..., width).

        One-sided where a side is impossible, and zero where there is nothing to compare with: such a position is
        impossible itself, and no derivative of it is ever used.
        """
        count = len(self.steps)
        here, up, down = values[:, :1], values[:, 1 : 1 + count], values[:, 1 + count : 1 + 2 * count]
        steps = self.steps.reshape(1, count, *(1,) * (values.ndim - 2))
        with np.errstate(invalid="ignore", over="ignore"):
            first = (up - down) / (2.0 * steps)
            first = np.where(np.isfinite(first), first, (up - here) / steps)
            first = np.where(np.isfinite(first), first, (here - down) / steps)
            parts = [here, np.where(np.isfinite(first), first, 0.0)]
            if self.order == 2:
                parts.append(self._second(values, here, up, down))
        return np.moveaxis(np.concatenate(parts, axis=1), 1, -1)

    def _second(self, values: np.ndarray, here: np.ndarray, up: np.ndarray, down: np.ndarray) -> np.ndarray:
        count = len(self.steps)
        one, other = np.triu_indices(count, 1)
        pairs = values[:, 1 + 2 * count :]
        both_up, both_down = pairs[:, : len(one)], pairs[:, len(one) :]
        result = np.zeros((len(values), count, count, *values.shape[2:]))
        along = up - 2.0 * here + down
        result[:, np.arange(count), np.arange(count)] = along
        mixed = 0.5 * (both_up + both_down - 2.0 * here - along[:, one] - along[:, other])
        result[:, one, other] = result[:, other, one] = mixed
        scale = np.outer(self.steps, self.steps).reshape(1, count, count, *(1,) * (values.ndim - 2))
        result = np.where(np.isfinite(result), result, 0.0) / scale
        return result.reshape(len(values), count**2, *values.shape[2:])


def stencil(order: int, lengths: tuple[float, ...]) -> Stencil:
    """For first or for second derivatives."""
    return Stencil(order, (FIRST if order == 1 else SECOND) * np.asarray(lengths))


def lengths_at(log_prior: Function, log_likelihood: Function, start: np.ndarray) -> np.ndarray:
    """How far each coordinate may move from a flat start (d,) until typical rows, or the prior, change by about one.

    Where they never change that much, until they have changed by half of what they ever do; the size of the coordinate
    where nothing changes. Powers of two, so that similar data lead to the same lengths. The likelihood is asked only
    where the prior is finite.
    """
    unit: np.ndarray = 2.0 ** np.round(np.log2(np.maximum(np.abs(start), 1.0)))
    reaches = np.repeat(2.0**POWERS, 2) * np.tile([1.0, -1.0], len(POWERS))
    lengths: np.ndarray = unit.copy()
    for place in range(len(start)):
        positions = np.repeat(start[None], 1 + len(reaches), axis=0)
        positions[1:, place] += reaches * unit[place]
        changes = _changes(log_prior(positions), log_likelihood, positions)
        wanted = 0.5 * min(1.0, float(changes.max()))
        if wanted > 0.0:
            lengths[place] = abs(reaches[np.argmax(changes >= wanted)]) * unit[place]
    return lengths


def _changes(priors: np.ndarray, log_likelihood: Function, positions: np.ndarray) -> np.ndarray:
    """Of all positions (1 + K, d) but the first, from the first: (K,), zero where they are impossible."""
    is_possible = np.isfinite(priors)
    with np.errstate(invalid="ignore"):
        values = log_likelihood(positions[is_possible])
        rows = np.mean(np.abs(values - values[:1]), axis=1)
        changes = np.zeros(len(positions))
        changes[is_possible] = np.maximum(rows, np.abs(priors[is_possible] - priors[0]))
    result: np.ndarray = np.where(np.isfinite(changes), changes, 0.0)[1:]
    return result


def is_smooth(log_likelihood: Function, positions: np.ndarray, lengths: np.ndarray) -> bool:
    """Whether slopes of rows from two steps agree at all flat positions (P, d), and are slopes at some of them."""
    fine, coarse = (Stencil(1, factor * FIRST * lengths) for factor in (1.0, 4.0))
    steep = np.zeros(len(lengths), bool)
    for position in positions:
        slopes = []
        for rule in (fine, coarse):
            values = log_likelihood(position + rule.displacements)[None]
            slopes.append(lengths[:, None] * rule.derivatives(values)[0, :, 1:].T)
        norms = [np.linalg.norm(slope, axis=1) for slope in slopes]
        gap = np.linalg.norm(slopes[0] - slopes[1], axis=1)
        if not np.all(gap <= SMOOTH * np.maximum(*norms) + LEAST_SLOPE * np.sqrt(slopes[0].shape[1])):
            return False
        steep |= norms[0] > LEAST_SLOPE * np.sqrt(slopes[0].shape[1])
    return bool(np.all(steep | ~_is_read(log_likelihood, positions[0], lengths)))


def _is_read(log_likelihood: Function, position: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Marks (d,) coordinates along which rows change at all over a length."""
    moved = log_likelihood(position + np.diag(lengths)) - log_likelihood(position[None])
    with np.errstate(invalid="ignore"):
        result: np.ndarray = np.any(np.nan_to_num(moved, nan=0.0, neginf=0.0, posinf=0.0) != 0.0, axis=1)
        return result
