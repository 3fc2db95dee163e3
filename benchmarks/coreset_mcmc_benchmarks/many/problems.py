"""Simulated problems with many parameters, the same for everyone, and how many rows their coresets get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import coreset_mcmc as cm


class Made(NamedTuple):
    """A model and its rows."""

    model: cm.Model
    data: Any


class Problem(NamedTuple):
    """How it is made, and what is asked of it."""

    make: Callable[[], Made]
    sizes: tuple[int, ...]
    """Rows of the coreset."""
    goal: str


def logistic(num_features: int, num_rows: int, intercept: float) -> Made:
    """Heavy-tailed columns, and coefficients that add up to a standard deviation of about one."""
    generator = np.random.default_rng([1, num_features, num_rows])
    x = generator.standard_t(5, size=(num_rows, num_features))
    coefficients = generator.normal(size=num_features) / np.sqrt(1.7 * num_features)
    chance = 1.0 / (1.0 + np.exp(-(x @ coefficients + intercept)))
    y = (generator.random(num_rows) < chance).astype(float)
    return Made(cm.models.logistic_regression(num_features), {"x": x, "y": y})


def linear(num_features: int, num_rows: int) -> Made:
    """Normal errors of unknown size."""
    generator = np.random.default_rng([2, num_features, num_rows])
    x = generator.normal(size=(num_rows, num_features))
    y = x @ generator.normal(size=num_features) / np.sqrt(num_features) + generator.normal(size=num_rows)
    return Made(cm.models.linear_regression(num_features), {"x": x, "y": y})


def levels(family: str, num_rows: int, num_levels: int = 300) -> Made:
    """Counts with ten columns and a factor whose levels have from five rows to a twentieth of all."""
    import pandas as pd  # noqa: PLC0415 - in the child process

    generator = np.random.default_rng([3, num_levels, num_rows])
    shares = np.geomspace(5, num_rows / 20, num_levels)
    counts = np.maximum((shares / shares.sum() * num_rows).astype(int), 5)
    level = generator.permutation(np.repeat(np.arange(num_levels), counts))
    x = generator.normal(size=(len(level), 10))
    mean = np.exp(0.5 + x @ (0.1 * generator.normal(size=10)) + 0.4 * generator.normal(size=num_levels)[level])
    if family == "negativebinomial":
        mean = mean * generator.gamma(3.0, 1.0 / 3.0, size=len(level))
    frame = pd.DataFrame(
        {f"x{place}": x[:, place] for place in range(10)} | {"level": level, "y": generator.poisson(mean)}
    )
    columns = " + ".join(f"x{place}" for place in range(10))
    made = cm.from_formula(f"y ~ {columns} + C(level)", frame, family=family)
    return Made(made, None)


def groups(num_groups: int, num_rows: int) -> Made:
    """Effects with a standard deviation of 0.3 in groups of unequal sizes, some of them with few rows or none."""
    data = cm.models.hierarchical_logistic_regression_data(
        np.random.default_rng([4, num_groups, num_rows]), num_rows, num_features=5, num_groups=num_groups
    )
    return Made(cm.models.hierarchical_logistic_regression(5, num_groups), data)


PROBLEMS: dict[str, Problem] = {
    "logistic-30-rare": Problem(lambda: logistic(29, 100_000, -4.4), (100, 300), "0.02, 0.01"),
    "logistic-100": Problem(lambda: logistic(99, 1_000_000, -1.0), (500,), "0.02"),
    "logistic-300": Problem(lambda: logistic(299, 1_000_000, -1.0), (500,), "0.05"),
    "poisson-300-levels": Problem(lambda: levels("poisson", 1_000_000), (1_500,), ""),
    "negativebinomial-300-levels": Problem(lambda: levels("negativebinomial", 1_000_000), (1_500,), ""),
    "linear-1000": Problem(lambda: linear(1_000, 200_000), (500,), "0.1"),
    "groups-500": Problem(lambda: groups(500, 1_000_000), (1_000,), ""),
    "groups-2000": Problem(lambda: groups(2_000, 1_000_000), (1_500,), ""),
}
QUICK = {"logistic-30-rare": Problem(lambda: logistic(11, 2_000, -1.0), (20,), "")}
