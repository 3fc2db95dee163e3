"""Models that JAX cannot see into, of 2 to 10 parameters: smooth ones, one with an edge, one that jumps, slow ones.

Each log-likelihood is written as a user would write it, for one position and any rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

Columns = dict[str, np.ndarray]
Position = dict[str, Any]


class Problem(NamedTuple):
    """A model with its rows."""

    data: Columns
    start: Position
    log_prior: Callable[[Position], Any]
    log_likelihood: Callable[[Position, Columns], Any]
    fast: Callable[[Position, Columns], Any] | None = None
    """The same values in less time, for the reference; None if there is no faster way."""
    exact: Callable[[], dict[str, tuple[float, float]]] | None = None
    """Posterior means and standard deviations where they are known."""


def normal_prior(**deviations: float) -> Callable[[Position], float]:
    """Independent normals around zero."""

    def log_prior(position: Position) -> float:
        return -0.5 * sum(float(np.sum((position[name] / sd) ** 2)) for name, sd in deviations.items())

    return log_prior


def maxima(size: int) -> Problem:
    """Yearly maxima: a generalised extreme value distribution whose location has a trend."""
    rng = np.random.default_rng(1)
    time_of = rng.uniform(-1.0, 1.0, size=size)
    y = stats.genextreme.rvs(-0.15, loc=20.0 + 1.5 * time_of, scale=2.0, size=size, random_state=rng)

    def log_likelihood(position: Position, rows: Columns) -> Any:
        location = position["location"] + position["trend"] * rows["time"]
        return stats.genextreme.logpdf(rows["y"], -position["shape"], location, np.exp(position["log_scale"]))

    start = {"location": float(y.mean()), "trend": 0.0, "log_scale": float(np.log(y.std())), "shape": 0.1}
    prior = normal_prior(location=50.0, trend=10.0, log_scale=3.0, shape=0.5)
    return Problem({"time": time_of, "y": y}, start, prior, log_likelihood)


def gumbel(size: int) -> Problem:
    """Two parameters."""
    y = np.asarray(stats.gumbel_r.rvs(loc=1.0, scale=2.0, size=size, random_state=2))

    def log_likelihood(position: Position, rows: Columns) -> Any:
        return stats.gumbel_r.logpdf(rows["y"], position["location"], np.exp(position["log_scale"]))

    start = {"location": 0.0, "log_scale": 0.0}
    return Problem({"y": y}, start, normal_prior(location=5.0, log_scale=2.0), log_likelihood)


def weibull_regression(size: int) -> Problem:
    """Ten parameters."""
    rng = np.random.default_rng(3)
    x = rng.normal(size=(size, 8))
    beta = np.linspace(-0.5, 0.5, 8)
    y = rng.weibull(1.5, size=size) * np.exp(1.0 + x @ beta)

    def log_likelihood(position: Position, rows: Columns) -> Any:
        scale = np.exp(position["intercept"] + rows["x"] @ position["beta"])
        return stats.weibull_min.logpdf(rows["y"], np.exp(position["log_shape"]), scale=scale)

    start: Position = {"intercept": 0.0, "beta": np.zeros(8), "log_shape": 0.0}
    return Problem({"x": x, "y": y}, start, normal_prior(intercept=5.0, beta=1.0, log_shape=1.0), log_likelihood)


def threshold(size: int) -> Problem:
    """A shifted exponential: impossible from the smallest row on."""
    y = 3.0 + np.random.default_rng(4).exponential(0.5, size=size)

    def log_likelihood(position: Position, rows: Columns) -> Any:
        return stats.expon.logpdf(rows["y"], loc=position["threshold"], scale=np.exp(position["log_scale"]))

    def exact() -> dict[str, tuple[float, float]]:
        """By a grid: the smallest row, the mean and the number of rows say all."""
        below = stats.expon.ppf((np.arange(4_000) + 0.5) / 4_000) * (y.mean() - y.min()) / size
        log_scales = np.log(y.mean() - y.min()) + np.linspace(-8.0, 8.0, 801) / np.sqrt(size)
        thresholds, scales = np.meshgrid(y.min() - below, log_scales, indexing="ij")
        height = -size * (scales + (y.mean() - thresholds) * np.exp(-scales))
        height += (
            -0.5 * (thresholds / 10.0) ** 2 - 0.5 * (scales / 2.0) ** 2 + below[:, None] * size / (y.mean() - y.min())
        )
        weights = np.exp(height - height.max())
        weights /= weights.sum()
        found = {}
        for name, values in (("threshold", thresholds), ("log_scale", scales)):
            mean = float(np.sum(weights * values))
            found[name] = (mean, float(np.sqrt(np.sum(weights * (values - mean) ** 2))))
        return found

    start = {"threshold": 0.0, "log_scale": 0.0}
    prior = normal_prior(threshold=10.0, log_scale=2.0)
    return Problem({"y": y}, start, prior, log_likelihood, exact=exact)


def python_loop(size: int) -> Problem:
    """A loop over the rows in Python: a logistic growth curve with normal errors."""
    rng = np.random.default_rng(5)
    age = rng.uniform(0.0, 10.0, size=size)
    y = 5.0 / (1.0 + np.exp(-(age - 4.0))) + rng.normal(scale=0.3, size=size)

    def log_likelihood(position: Position, rows: Columns) -> Any:
        top, middle, log_error = (float(position[name]) for name in ("top", "middle", "log_error"))
        error, values = math.exp(log_error), []
        for when, size_of in zip(rows["age"].tolist(), rows["y"].tolist(), strict=True):
            expected = top / (1.0 + math.exp(min(middle - when, 700.0)))
            values.append(-log_error - 0.5 * ((size_of - expected) / error) ** 2)
        return np.array(values)

    def fast(position: Position, rows: Columns) -> Any:
        expected = position["top"] / (1.0 + np.exp(position["middle"] - rows["age"]))
        return stats.norm.logpdf(rows["y"], expected, np.exp(position["log_error"]))

    start = {"top": 4.0, "middle": 5.0, "log_error": 0.0}
    return Problem(
        {"age": age, "y": y}, start, normal_prior(top=10.0, middle=10.0, log_error=2.0), log_likelihood, fast
    )


def slow(size: int) -> Problem:
    """Yearly maxima, with a millisecond of something else in each call."""
    fast = maxima(size)

    def log_likelihood(position: Position, rows: Columns) -> Any:
        time.sleep(0.001)
        return fast.log_likelihood(position, rows)

    return fast._replace(log_likelihood=log_likelihood, fast=fast.log_likelihood)


def jumps(size: int) -> Problem:
    """Yearly maxima whose location is rounded: no derivatives."""
    fast = maxima(size)

    def log_likelihood(position: Position, rows: Columns) -> Any:
        return fast.log_likelihood({**position, "location": np.round(position["location"], 2)}, rows)

    return fast._replace(log_likelihood=log_likelihood)


PROBLEMS: dict[str, tuple[str, Callable[[int], Problem]]] = {
    "gev": ("generalised extreme values with a trend, SciPy", maxima),
    "gumbel": ("Gumbel, SciPy", gumbel),
    "weibull": ("Weibull regression, SciPy", weibull_regression),
    "threshold": ("shifted exponential: an edge of the support", threshold),
    "loop": ("growth curve, a loop over rows in Python", python_loop),
    "slow": ("extreme values with a millisecond more in each call", slow),
    "jumps": ("extreme values, location rounded: no derivatives", jumps),
}
"""What they are, and how they are made."""
