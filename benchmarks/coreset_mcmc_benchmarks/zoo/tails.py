"""Heavy tails, and censoring: locations with outliers, a flat prior with tails, survival times that were not seen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.stats import norm

import coreset_mcmc as cm
from coreset_mcmc_benchmarks.verdicts.problems import Problem
from coreset_mcmc_benchmarks.zoo.entry import ROWS, SIZE, Entry, generator
from coreset_mcmc_benchmarks.zoo.grids import Box, grid_moments
from coreset_mcmc_benchmarks.zoo.several_modes import normal_prior

HEAVY, CENSORED, STARTS = "heavy tails", "censoring", "wrong starts"


def student(freedom: float) -> Callable[[jax.Array, Any], jax.Array]:
    """Location and log scale."""

    def log_likelihood(position: jax.Array, rows: Any) -> jax.Array:
        standard = (rows["y"] - position[0]) * jnp.exp(-position[1])
        return -position[1] - 0.5 * (freedom + 1) * jnp.log1p(standard**2 / freedom)

    return log_likelihood


STUDENT = cm.Model(normal_prior(20.0), student(3.0), initial_position=np.zeros(2), name="Student t")
CAUCHY_PRIOR = cm.Model(
    lambda position: -jnp.sum(jnp.log1p(position**2)),
    lambda position, rows: -0.5 * ((rows["y"] - position[0]) / rows["noise"]) ** 2,
    initial_position=np.zeros(1),
    name="Cauchy prior",
)


def weibull(position: jax.Array, rows: Any) -> Any:
    """Log scale and log shape; rows that were not seen to end count by their survival."""
    shape = jnp.exp(position[1])
    log_time = jnp.log(rows["y"]) - position[0]
    hazard = position[1] - position[0] + (shape - 1) * log_time
    return rows["seen"] * hazard - jnp.exp(shape * log_time)


def tobit(position: jax.Array, rows: Any) -> jax.Array:
    """Mean and log scale of measurements that end at a limit."""
    standard = (rows["y"] - position[0]) * jnp.exp(-position[1])
    return jnp.where(rows["seen"] > 0, -position[1] - 0.5 * standard**2, norm.logcdf(-standard))


WEIBULL = cm.Model(normal_prior(5.0), weibull, initial_position=np.zeros(2), name="Weibull")
TOBIT = cm.Model(normal_prior(5.0), tobit, initial_position=np.zeros(2), name="limited measurements")


def with_outliers(
    name: str, count: int, outliers: int, size: float, start: tuple[float, float] | None = None
) -> Problem:
    """Rows of a Student t, some of which are moved far away."""
    y = 1.0 + generator(name).standard_t(3.0, count)
    y[:outliers] += size
    data = {"y": y}
    box: Box = [(-10.0, 10.0), (-3.0, 5.0)]
    initvals = None if start is None else np.array(start)
    return Problem(STUDENT, data, grid_moments(STUDENT, data, box), (min(SIZE, count),), initvals=initvals)


def cauchy_prior(name: str, count: int, noise: float) -> Problem:
    """Data and prior disagree; with noisy rows the prior's tails remain."""
    data = {"y": generator(name).normal(15.0, noise, count), "noise": np.full(count, noise)}
    return Problem(CAUCHY_PRIOR, data, grid_moments(CAUCHY_PRIOR, data, [(-60.0, 60.0)]), (min(SIZE, count),))


def survival(name: str, chance_seen: float) -> Problem:
    """All times beyond a limit are known to be longer, no more."""
    times = 2.0 * generator(name).weibull(1.5, ROWS)
    limit = np.quantile(times, chance_seen)
    data = {"y": np.minimum(times, limit), "seen": (times <= limit).astype(float)}
    return Problem(WEIBULL, data, grid_moments(WEIBULL, data, [(-3.0, 12.0), (-4.0, 4.0)]), (SIZE,))


def limited(name: str, chance_seen: float) -> Problem:
    """Measurements above a limit are recorded as the limit."""
    values = generator(name).normal(1.0, 2.0, ROWS)
    limit = np.quantile(values, chance_seen)
    data = {"y": np.minimum(values, limit), "seen": (values <= limit).astype(float)}
    return Problem(TOBIT, data, grid_moments(TOBIT, data, [(-10.0, 25.0), (-4.0, 4.0)]), (SIZE,))


def entries() -> Iterator[Entry]:
    """All problems of these families."""
    families: dict[str, dict[str, Callable[[str], Problem]]] = {
        HEAVY: {
            "student-clean": partial(with_outliers, count=ROWS, outliers=0, size=0.0),
            "student-one-in-a-hundred-far": partial(with_outliers, count=ROWS, outliers=20, size=1e4),
            "student-one-very-far": partial(with_outliers, count=ROWS, outliers=1, size=1e8),
            "student-few-rows": partial(with_outliers, count=12, outliers=2, size=50.0),
            "cauchy-prior-against-rows": partial(cauchy_prior, count=ROWS, noise=30.0),
            "cauchy-prior-hardly-moved": partial(cauchy_prior, count=10, noise=12.0),
        },
        CENSORED: {
            "survival-half-seen": partial(survival, chance_seen=0.5),
            "survival-one-in-a-hundred-seen": partial(survival, chance_seen=0.01),
            "limit-at-the-median": partial(limited, chance_seen=0.5),
            "limit-one-in-twenty-seen": partial(limited, chance_seen=0.05),
        },
        STARTS: {
            "student-start-far-away": partial(with_outliers, count=ROWS, outliers=0, size=0.0, start=(400.0, 0.0)),
            "student-start-with-a-tiny-scale": partial(
                with_outliers, count=ROWS, outliers=0, size=0.0, start=(5.0, -12.0)
            ),
        },
    }
    for family, makes in families.items():
        for name, make in makes.items():
            yield Entry(name, family, partial(make, name))
