"""Rows that bound the support: which row is the first to forbid a position on the way from a possible one.

Where the support of a likelihood depends on the parameters (a maximum, a threshold, a generalised Pareto tail), a
position is impossible as soon as one row forbids it, and no average over other rows says so. On the line from a
position that every row allows to one that some row forbids, the row that forbids first is the one that bounds the
support in that direction. Points on several lines go through the rows in one pass; the next pass looks between the last
point that all rows allow and the first that one forbids, so that the edge is known sixteen times better after each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.trees import coordinate_names, flat_positions, positions_of
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.models.model import Model

NUM_LINES, NUM_POINTS, NUM_PASSES = 4, 16, 4
"""Lines that are searched together, points on each in one pass, and passes at most."""


MOST_NAMED = 4
"""Coordinates of an edge that are told."""


class Bound(NamedTuple):
    """A row that bounds the support, and where."""

    row: int
    edge: np.ndarray
    """The flat position (d,) next to the edge that every row still allows."""


@dataclass(frozen=True)
class _FirstForbidden:
    """For each row of a block and each line the number of the first point that it forbids, or of points if none is."""

    model: Model

    def __call__(self, batch: Batch, weights: jax.Array, positions: Position) -> tuple[jax.Array, ...]:
        del weights
        points = jax.tree.map(lambda leaf: leaf.reshape(NUM_LINES, NUM_POINTS, *leaf.shape[1:]), positions)

        def of_line(line: Position) -> jax.Array:
            values = jax.lax.map(lambda position: self.model.log_likelihood(position, batch), line)
            is_allowed = jnp.isfinite(values)
            return jnp.where(jnp.all(is_allowed, axis=0), NUM_POINTS, jnp.argmin(is_allowed, axis=0))

        found = jax.lax.map(of_line, points)
        return tuple(found[number] for number in range(NUM_LINES))


def bounding_rows(rows: Rows, model: Model, allowed: Position, forbidden: Position) -> list[Bound]:
    """The rows that bound the support between positions that all rows allow and positions that some row forbids.

    ``allowed`` and ``forbidden`` have a leading axis of any length; the first few that are far apart are looked at. A
    parameter that is a whole number stays what it is at the forbidden position. Empty if no row forbids anything there.
    """
    to = flat_positions(forbidden)
    places = np.linspace(0, len(to) - 1, NUM_LINES).astype(int)
    to = to[places]
    start = flat_positions(allowed)
    start = start[np.linspace(0, len(start) - 1, NUM_LINES).astype(int)]
    low, high = np.zeros(NUM_LINES), np.ones(NUM_LINES)
    first_rows = np.full(NUM_LINES, -1, np.int64)
    for _ in range(NUM_PASSES):
        shares = low[:, None] + (high - low)[:, None] * np.arange(1, NUM_POINTS + 1) / NUM_POINTS
        flat = start[:, None] + shares[..., None] * (to - start)[:, None]
        points = _with_whole_numbers(forbidden, places, flat)
        number, first_rows, is_unique = _first_in_all(rows, model, points)
        is_found = number < NUM_POINTS
        at = np.minimum(number, NUM_POINTS - 1)
        high = np.where(is_found, shares[np.arange(NUM_LINES), at], high)
        low = np.where(is_found & (number > 0), shares[np.arange(NUM_LINES), np.maximum(at - 1, 0)], low)
        if np.all(is_unique | ~is_found):
            break
    edges = start + low[:, None] * (to - start)
    bounds = {int(row): edge for row, edge in zip(first_rows, edges, strict=True) if row >= 0}
    return [Bound(row, edge) for row, edge in bounds.items()]


def told(bounds: list[Bound], position: Position) -> str:
    """Rows and edges in words; ``position`` names the coordinates."""
    names = coordinate_names(position)
    parts = []
    for bound in bounds:
        edge = ", ".join(f"{name} = {value:.6g}" for name, value in zip(names, bound.edge[:MOST_NAMED], strict=False))
        more = ", ..." if len(names) > MOST_NAMED else ""
        parts.append(f"row {bound.row} forbids what lies beyond {edge}{more}")
    return "; ".join(parts)


def _with_whole_numbers(forbidden: Position, places: np.ndarray, flat: np.ndarray) -> Position:
    """The points (lines * points, ...) as positions, with whole numbers as they are at the forbidden ends."""
    ends = jax.tree.map(lambda leaf: np.repeat(np.asarray(leaf)[places], NUM_POINTS, axis=0), forbidden)
    one = jax.tree.map(lambda leaf: leaf[0], ends)
    moved = positions_of(one, flat.reshape(-1, flat.shape[-1]))

    def chosen(end: np.ndarray, new: np.ndarray) -> np.ndarray:
        return new if np.issubdtype(end.dtype, np.floating) else end

    result: Position = jax.tree.map(chosen, ends, moved)
    return result


def _first_in_all(rows: Rows, model: Model, points: Position) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each line the first forbidden point, a row that forbids it (-1 if none), and whether no other does."""
    number, row = np.full(NUM_LINES, NUM_POINTS), np.full(NUM_LINES, -1, np.int64)
    count, seen = np.zeros(NUM_LINES, int), 0
    program = _FirstForbidden(model.compiled or model)
    for part in rows.values(program, points, description="rows that bound the support"):
        for line, found in enumerate(np.asarray(values) for values in part):
            lowest = int(found.min(initial=NUM_POINTS))
            if lowest < number[line]:
                number[line], row[line] = lowest, seen + int(found.argmin())
                count[line] = 0
            if lowest == number[line] < NUM_POINTS:
                count[line] += int(np.sum(found == lowest))
        seen += len(part[0])
    return number, row, count == 1
