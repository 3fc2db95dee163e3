"""Steps: log-likelihoods that are constant almost everywhere, and parameters that are whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

import coreset_mcmc as cm
from coreset_mcmc_benchmarks.draws import Draws
from coreset_mcmc_benchmarks.verdicts.problems import Moments, Problem
from coreset_mcmc_benchmarks.zoo.entry import ROWS, SIZE, Entry, generator
from coreset_mcmc_benchmarks.zoo.grids import grid_moments, log_posterior
from coreset_mcmc_benchmarks.zoo.several_modes import normal_prior

FAMILY = "steps"
MOST = 40
"""The largest whole number that a prior admits."""

ROUNDED = cm.Model(
    normal_prior(5.0),
    lambda position, rows: -0.5 * (rows["y"] - jnp.floor(position[0])) ** 2,
    initial_position=np.array([0.5]),
    name="rounded",
)
CHANGE = cm.Model(
    lambda position: jnp.where((position[0] > 0) & (position[0] < 1), 0.0, -jnp.inf),
    lambda position, rows: -0.5 * (rows["y"] - rows["size"] * (rows["x"] > position[0])) ** 2,
    initial_position=np.array([0.5]),
    name="change point",
)
CHANGE_AND_LEVEL = cm.Model(
    lambda position: jnp.where((position[0] > 0) & (position[0] < 1), -0.5 * (position[1] / 10) ** 2, -jnp.inf),
    lambda position, rows: -0.5 * (rows["y"] - position[1] * (rows["x"] > position[0])) ** 2,
    initial_position=np.array([0.5, 0.0]),
    name="change point and level",
)


def binomial_counts(position: jax.Array, rows: Any) -> jax.Array:
    """A number of trials, rounded down."""
    trials = jnp.floor(position[0])
    possible = trials >= rows["y"]
    safe = jnp.where(possible, trials, rows["y"])
    value = gammaln(safe + 1) - gammaln(safe - rows["y"] + 1) + (safe - rows["y"]) * jnp.log(0.7)
    return jnp.where(possible, value, -jnp.inf)


TRIALS = cm.Model(normal_prior(10.0, 12.0), binomial_counts, initial_position=np.array([25.5]), name="trials")


def whole_prior(position: Any) -> jax.Array:
    """Uniform from 1 to ``MOST``."""
    return jnp.where((position["k"] >= 1) & (position["k"] <= MOST), 0.0, -jnp.inf)


def whole_likelihood(position: Any, rows: Any) -> Any:
    """Counts whose rate is a whole number."""
    rate = jnp.maximum(jnp.asarray(position["k"], float), 1e-3) * rows["exposure"]
    return rows["y"] * jnp.log(rate) - rate


WHOLE = cm.Model(whole_prior, whole_likelihood, initial_position={"k": np.array(5)}, name="whole rate")


def rounded(name: str, level: float, count: int) -> Problem:
    """Only the floor of the parameter is seen."""
    data = {"y": generator(name).normal(level, 1.0, count)}
    return Problem(ROUNDED, data, grid_moments(ROUNDED, data, [(-20.0, 20.0)]), (min(SIZE, count),))


def change(name: str, size: float) -> Problem:
    """A jump of known size at an unknown place."""
    rng = generator(name)
    x = rng.random(ROWS)
    data = {"x": x, "y": rng.normal(size * (x > 0.37), 1.0), "size": np.full(ROWS, size)}
    return Problem(CHANGE, data, grid_moments(CHANGE, data, [(0.0, 1.0)]), (SIZE,))


def change_and_level(name: str) -> Problem:
    """A jump of unknown size at an unknown place."""
    rng = generator(name)
    x = rng.random(ROWS)
    data = {"x": x, "y": rng.normal(0.5 * (x > 0.6), 1.0)}
    return Problem(CHANGE_AND_LEVEL, data, grid_moments(CHANGE_AND_LEVEL, data, [(0.0, 1.0), (-3.0, 3.0)]), (SIZE,))


def trials(name: str, count: int) -> Problem:
    """Steps, and rows that bound the support."""
    data = {"y": generator(name).binomial(15, 0.3, count).astype(float)}
    return Problem(TRIALS, data, grid_moments(TRIALS, data, [(0.0, 60.0)]), (min(SIZE, count),))


def as_numbers(draws: Draws) -> Draws:
    """Whole numbers are compared by their moments, too."""
    return {name: values.astype(float) for name, values in draws.items()}


def whole(name: str, exposure: float) -> Problem:
    """A parameter of integer type; the truth is a sum over all its values."""
    data = {"y": generator(name).poisson(7 * exposure, ROWS).astype(float), "exposure": np.full(ROWS, exposure)}
    values = np.arange(1.0, MOST + 1)
    heights = log_posterior(WHOLE, data, lambda point: {"k": point[0]}, values[:, None])
    mass = np.exp(heights - heights.max())
    mass /= mass.sum()
    mean = float(mass @ values)
    covariance = np.array([[float(mass @ (values - mean) ** 2)]])
    return Problem(WHOLE, data, Moments(np.array([mean]), covariance, np.inf), (SIZE,), fold=as_numbers)


def entries() -> Iterator[Entry]:
    """All problems of this family."""
    makes: dict[str, Callable[[str], Problem]] = {
        "floor-many-rows": partial(rounded, level=3.0, count=ROWS),
        "floor-between-steps": partial(rounded, level=-2.5, count=ROWS),
        "floor-few-rows": partial(rounded, level=1.2, count=6),
        "change-point-strong": partial(change, size=2.0),
        "change-point-weak": partial(change, size=0.4),
        "change-point-and-level": change_and_level,
        "number-of-trials": partial(trials, count=ROWS),
        "number-of-trials-few-rows": partial(trials, count=30),
        "whole-rate": partial(whole, exposure=0.01),
        "whole-rate-weak": partial(whole, exposure=0.002),
    }
    for name, make in makes.items():
        yield Entry(name, FAMILY, partial(make, name))
