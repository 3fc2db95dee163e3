"""Problems with many parameters, or with few rows for those they have; the same for everyone.

All are simulated but the paper's own and the flights, whose factors (105 destinations, 16 airlines) have
levels from one flight to tens of thousands.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import coreset_mcmc as cm
from coreset_mcmc.datasets.flights import flights_with_weather
from coreset_mcmc_benchmarks.many.crossed import crossed_groups, crossed_groups_data
from coreset_mcmc_benchmarks.paper.cases import CASES


class Goal(NamedTuple):
    """What a run must reach; zero where nothing is asked."""

    kl: float = 0.0
    seconds: float = 0.0
    mean_error: float = 0.0
    """Of all parameters, in standard deviations."""
    sd_error: float = 0.0
    """As a share."""
    times_nuts: float = 0.0


class Made(NamedTuple):
    """A model and its rows."""

    model: cm.Model
    data: Any


class Problem(NamedTuple):
    """How it is made, and what is asked of it."""

    make: Callable[[Path | None], Made]
    """From the folder of the paper's data, which only the paper's problems need."""
    sizes: tuple[int, ...]
    """Rows of the coreset."""
    goal: Goal
    draws: int = 1_000
    """Of each chain: a goal for the largest error of hundreds of parameters is lost in noise with few of them."""
    case: str = ""
    """The paper's experiment, whose reference is NUTS on all rows."""


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


def groups(num_groups: int, num_rows: int, num_crossed: int = 50) -> Made:
    """Effects of groups with from one row to some thousands, crossed with as many of another kind."""
    generator = np.random.default_rng([4, num_groups, num_rows])
    data = crossed_groups_data(generator, num_rows, num_groups, num_crossed)
    return Made(crossed_groups(num_groups, num_crossed), data)


def flights(response: str) -> Made:
    """Real: what happened to flights, by destination, airline, hour, distance and the weather at the origin.

    Cancellations are rare, and some destinations have none; flights that leave half an hour late are not.
    """
    table = flights_with_weather()
    table["cancelled"] = table["dep_time"].isna().astype(int)
    if response == "late":
        table = table[table["dep_delay"].notna()]
        table["late"] = (table["dep_delay"] > HALF_AN_HOUR).astype(int)
    formula = f"{response} ~ C(dest) + C(carrier) + hour + distance + temp + wind_speed + precip + visib"
    return Made(cm.from_formula(formula, table, family="bernoulli"), None)


def paper(name: str) -> Callable[[Path | None], Made]:
    """One of the paper's regressions."""

    def make(folder: Path | None) -> Made:
        case = CASES[name](folder, None)
        return Made(case.model, case.data)

    return make


LEVELS = Goal(seconds=120, mean_error=0.1, sd_error=0.05)
GROUPS = Goal(mean_error=0.15, sd_error=0.07, times_nuts=10)
FEW = (10, 20, 50)
MANY = 4_000
HALF_AN_HOUR = 30.0
PROBLEMS: dict[str, Problem] = {
    **{f"paper-{name}": Problem(paper(name), FEW, Goal(0.05), case=name) for name in ("poisson", "linear", "logistic")},
    "logistic-30-rare": Problem(lambda _: logistic(29, 100_000, -4.4), (100,), Goal(0.02)),
    "logistic-30-rare-300": Problem(lambda _: logistic(29, 100_000, -4.4), (300,), Goal(0.01)),
    "logistic-100": Problem(lambda _: logistic(99, 1_000_000, -1.0), (500,), Goal(0.02, 60)),
    "logistic-300": Problem(lambda _: logistic(299, 1_000_000, -1.0), (500,), Goal(0.05, 180)),
    "poisson-300-levels": Problem(lambda _: levels("poisson", 1_000_000), (1_500,), LEVELS, MANY),
    "negativebinomial-300-levels": Problem(lambda _: levels("negativebinomial", 1_000_000), (1_500,), LEVELS, MANY),
    "linear-1000": Problem(lambda _: linear(1_000, 200_000), (500,), Goal(0.1, 300)),
    "groups-500": Problem(lambda _: groups(500, 1_000_000), (1_000,), GROUPS, MANY),
    "groups-2000": Problem(lambda _: groups(2_000, 1_000_000), (1_500,), GROUPS),
    "flights-late": Problem(lambda _: flights("late"), (500,), Goal(mean_error=0.1, sd_error=0.05), MANY),
    "flights-cancelled": Problem(lambda _: flights("cancelled"), (500,), Goal(mean_error=0.1, sd_error=0.05), MANY),
}
QUICK = {"logistic-30-rare": Problem(lambda _: logistic(11, 2_000, -1.0), (20,), Goal(0.02))}
