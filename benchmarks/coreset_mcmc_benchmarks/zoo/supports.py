"""Bounded supports: rows that bound what a parameter can be, parameters in an interval, modes on the edge of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import coreset_mcmc as cm
from coreset_mcmc_benchmarks.verdicts.problems import Problem
from coreset_mcmc_benchmarks.zoo.entry import ROWS, SIZE, Entry, generator
from coreset_mcmc_benchmarks.zoo.grids import Box, grid_moments

BOUNDED, EDGES = "bounded", "edges"

UNIFORM = cm.Model(
    lambda position: jnp.where(position[0] > 0, -0.5 * (position[0] / 10) ** 2, -jnp.inf),
    lambda position, rows: jnp.where(rows["y"] < position[0], -jnp.log(position[0]), -jnp.inf),
    initial_position=np.array([20.0]),
    name="uniform up to an end",
)
SHIFTED = cm.Model(
    lambda position: -0.5 * jnp.sum((position / 10) ** 2),
    lambda position, rows: jnp.where(
        rows["y"] > position[0], position[1] - jnp.exp(position[1]) * (rows["y"] - position[0]), -jnp.inf
    ),
    initial_position=np.array([-5.0, 0.0]),
    name="shifted exponential",
)


def pareto_tail(position: jax.Array, rows: Any) -> jax.Array:
    """Generalised Pareto: log scale and shape; a negative shape bounds the support."""
    shape = jnp.where(jnp.abs(position[1]) < 1e-6, 1e-6, position[1])
    inner = 1 + shape * rows["y"] * jnp.exp(-position[0])
    value = -position[0] - (1 + 1 / shape) * jnp.log(jnp.where(inner > 0, inner, 1.0))
    return jnp.where(inner > 0, value, -jnp.inf)


PARETO = cm.Model(
    lambda position: -0.5 * jnp.sum(position**2 / jnp.array([25.0, 0.25])),
    pareto_tail,
    initial_position=np.array([0.5, 0.1]),
    name="generalised Pareto",
)
SHARE = cm.Model(
    lambda position: jnp.where((position[0] > 0) & (position[0] < 1), 0.0, -jnp.inf),
    lambda position, rows: rows["y"] * jnp.log(position[0]) + (1 - rows["y"]) * jnp.log1p(-position[0]),
    initial_position=np.array([0.5]),
    name="share",
)
SCALE = cm.Model(
    lambda position: jnp.where(position[0] > 0, -0.5 * (position[0] / 5) ** 2, -jnp.inf),
    lambda position, rows: -jnp.log(position[0]) - 0.5 * (rows["y"] / position[0]) ** 2,
    initial_position=np.array([1.0]),
    name="scale",
)
POSITIVE = cm.Model(
    lambda position: jnp.where(position[0] >= 0, -0.5 * (position[0] / 5) ** 2, -jnp.inf),
    lambda position, rows: -0.5 * (rows["y"] - position[0]) ** 2,
    initial_position=np.array([0.5]),
    name="positive mean",
)
CORNER = cm.Model(
    lambda position: jnp.where(jnp.all(position >= 0), -0.5 * jnp.sum((position / 5) ** 2), -jnp.inf),
    lambda position, rows: -0.5 * (rows["y"] - rows["x"] @ position) ** 2,
    initial_position=np.array([0.5, 0.5]),
    name="positive slopes",
)


def on_grid(model: cm.Model, data: dict[str, np.ndarray], box: Box) -> Problem:
    """With the truth of the grid."""
    return Problem(model, data, grid_moments(model, data, box), (min(SIZE, len(data["y"])),))


def uniform(name: str, count: int) -> Problem:
    """The largest row says it all."""
    return on_grid(UNIFORM, {"y": generator(name).uniform(0.0, 3.0, count)}, [(1e-3, 40.0)])


def shifted(name: str, count: int, rate: float) -> Problem:
    """The smallest row bounds the shift."""
    data = {"y": 2.0 + generator(name).exponential(1 / rate, count)}
    return on_grid(SHIFTED, data, [(-8.0, 8.0), (-3.0, 5.0)])


def pareto(name: str, shape: float) -> Problem:
    """Excesses over a threshold."""
    uniforms = generator(name).random(ROWS)
    return on_grid(PARETO, {"y": (uniforms**-shape - 1) / shape}, [(-1.0, 1.0), (-0.8, 0.8)])


def share(name: str, chance: float, count: int) -> Problem:
    """A probability as it is, without a transformation."""
    data = {"y": (generator(name).random(count) < chance).astype(float)}
    return on_grid(SHARE, data, [(1e-9, 1 - 1e-9)])


def scale(name: str, count: int) -> Problem:
    """A scale as it is, without a transformation."""
    return on_grid(SCALE, {"y": generator(name).normal(0.0, 0.5, count)}, [(1e-3, 20.0)])


def positive(name: str, level: float) -> Problem:
    """The data pull over the edge."""
    y = generator(name).normal(0.0, 1.0, ROWS)
    return on_grid(POSITIVE, {"y": y - y.mean() + level}, [(0.0, 5.0)])


def corner(name: str, slopes: tuple[float, float]) -> Problem:
    """Two edges at once, and correlated columns."""
    rng = generator(name)
    x = rng.normal(size=(ROWS, 2)) @ np.array([[1.0, 0.6], [0.0, 0.8]])
    return on_grid(CORNER, {"x": x, "y": x @ np.array(slopes) + rng.normal(size=ROWS)}, [(0.0, 3.0)] * 2)


def entries() -> Iterator[Entry]:
    """All problems of both families."""
    bounded: dict[str, Callable[[str], Problem]] = {
        "uniform-end": partial(uniform, count=ROWS),
        "uniform-end-few-rows": partial(uniform, count=20),
        "shifted-exponential": partial(shifted, count=ROWS, rate=1.0),
        "shifted-exponential-fast": partial(shifted, count=ROWS, rate=20.0),
        "shifted-exponential-few-rows": partial(shifted, count=25, rate=1.0),
        "pareto-bounded": partial(pareto, shape=-0.3),
        "pareto-unbounded": partial(pareto, shape=0.3),
        "share-middle": partial(share, chance=0.4, count=ROWS),
        "scale-as-it-is": partial(scale, count=ROWS),
        "scale-few-rows": partial(scale, count=5),
    }
    edges: dict[str, Callable[[str], Problem]] = {
        "share-none": partial(share, chance=0.0, count=ROWS),
        "share-all-of-few": partial(share, chance=1.0, count=12),
        "mean-at-the-edge": partial(positive, level=0.0),
        "mean-beyond-the-edge": partial(positive, level=-0.15),
        "mean-just-inside": partial(positive, level=0.02),
        "slopes-one-at-the-edge": partial(corner, slopes=(0.5, -0.05)),
        "slopes-in-the-corner": partial(corner, slopes=(-0.1, -0.1)),
    }
    for family, makes in ((BOUNDED, bounded), (EDGES, edges)):
        for name, make in makes.items():
            yield Entry(name, family, partial(make, name))
