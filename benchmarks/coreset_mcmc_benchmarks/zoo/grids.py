"""The truth in one or two dimensions: the full posterior on a grid of positions, all rows, every point.

For a smooth density that vanishes at the ends of its box the trapezoid rule converges faster than any power of the
spacing; at a jump the error is of the order of one cell. The box shrinks around all that carries mass until a step
no longer helps, so it may be given generously. Positions are functions of the coordinates of the grid.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import coreset_mcmc as cm
from coreset_mcmc_benchmarks.verdicts.problems import Moments
from coreset_mcmc_benchmarks.zoo.kept import kept

Box = Sequence[tuple[float, float]]
Place = Callable[[jax.Array], Any]
"""From the coordinates of a point of the grid to a position."""
Shown = Callable[[np.ndarray], np.ndarray]
"""From coordinates (G, k) to the quantities that are compared, (G, m)."""

POINTS = {1: 20_001, 2: 161}
"""On each axis."""
NATS = 30.0
"""What lies this far below the highest point carries no mass."""
MARGIN, MOST_ROUNDS = 2, 12
CELLS = 4_000_000
"""Log-likelihoods at once."""
FEWEST_POINTS = {1: 10.0, 2: 12.0}
"""Points that share the mass, at least: those of a Gaussian whose standard deviation is a cell, or three of them."""


def log_posterior(model: cm.Model, rows: Any, place: Place, points: np.ndarray) -> np.ndarray:
    """Up to a constant, at points (G, k); what is no number is impossible."""
    with jax.enable_x64(True):
        data = jax.tree.map(jnp.asarray, rows)
        chunk = max(CELLS // len(jax.tree.leaves(data)[0]), 1)

        def at(point: jax.Array) -> jax.Array:
            position = place(point)
            return model.log_prior(position) + jnp.sum(model.log_likelihood(position, data))

        values = jax.jit(lambda some: jax.lax.map(at, some, batch_size=min(chunk, len(points))))(jnp.asarray(points))
    result: np.ndarray = np.nan_to_num(np.asarray(values), nan=-np.inf)
    return result


def points_of(box: Box) -> tuple[list[np.ndarray], np.ndarray]:
    """The axes, and all points in the order of their product."""
    axes = [np.linspace(low, high, POINTS[len(box)]) for low, high in box]
    return axes, np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=-1)


def shrunk(axes: list[np.ndarray], possible: np.ndarray) -> Box:
    """The box around what carries mass, and a little more."""
    sides = []
    for number, axis in enumerate(axes):
        others = tuple(other for other in range(len(axes)) if other != number)
        inside = np.flatnonzero(possible.any(axis=others))
        first, last = max(inside[0] - MARGIN, 0), min(inside[-1] + MARGIN, len(axis) - 1)
        sides.append((float(axis[first]), float(axis[last])))
    return sides


def unchanged_place(point: jax.Array) -> Any:
    """A position that is the vector itself."""
    return point


@kept
def grid_moments(
    model: cm.Model, rows: Any, box: Box, place: Place = unchanged_place, shown: Shown | None = None
) -> Moments:
    """Mean and covariance of what is shown, by default the coordinates of the grid."""
    for _ in range(MOST_ROUNDS):
        axes, points = points_of(box)
        values = log_posterior(model, rows, place, points)
        possible = (values > values.max() - NATS).reshape([len(axis) for axis in axes])
        smaller = shrunk(axes, possible)
        before, after = (np.prod([high - low for low, high in sides]) for sides in (box, smaller))
        if after > 0.8 * before:
            break
        box = smaller
    mass = np.exp(values - values.max())
    mass /= mass.sum()
    spread = 1.0 / np.sum(mass**2)
    if spread < FEWEST_POINTS[len(axes)]:
        raise ValueError(f"The grid is too coarse: its mass lies on {spread:.1f} points.")
    quantities = points if shown is None else shown(points)
    mean = mass @ quantities
    centred = quantities - mean
    return Moments(mean, (centred * mass[:, None]).T @ centred, np.inf)
