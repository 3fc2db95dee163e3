"""Models that are calibrated: each draws parameters from its prior and rows from those."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pandas as pd

import coreset_mcmc as cm

ROWS = 300
"""Of every model; few, so that the prior matters and a fit is quick."""

Truth = dict[str, np.ndarray]


class Simulated(NamedTuple):
    """One replication."""

    truth: Truth
    """By the names of the posterior's variables."""
    model: cm.Model
    data: Any


class Calibrated(NamedTuple):
    """A model that can be simulated."""

    simulate: Callable[[np.random.Generator], Simulated]
    size: int
    """Rows of the coreset."""
    words: str


def logistic_model(columns: int) -> cm.Model:
    """Standard normal coefficients."""
    return cm.Model.from_linear_predictor(
        lambda position: -0.5 * jnp.sum(position["b"] ** 2),
        lambda position, rows: rows["x"] @ position["b"],
        lambda position, predicted, rows: -jnp.logaddexp(0.0, (1 - 2 * rows["y"]) * predicted),
        initial_position={"b": np.zeros(columns)},
        name="logistic",
    )


LOGISTIC, LOGISTIC_TWELVE = logistic_model(3), logistic_model(12)
POISSON = cm.Model(
    lambda position: -0.5 * jnp.sum(position["b"] ** 2),
    lambda position, rows: rows["y"] * (rows["x"] @ position["b"]) - jnp.exp(rows["x"] @ position["b"]),
    initial_position={"b": np.zeros(2)},
    name="Poisson",
)
SHARE = cm.Model(
    lambda position: jnp.where((position["p"] > 0) & (position["p"] < 1), 0.0, -jnp.inf),
    lambda position, rows: rows["y"] * jnp.log(position["p"]) + (1 - rows["y"]) * jnp.log1p(-position["p"]),
    initial_position={"p": np.array(0.5)},
    name="share",
)
POSITIVE = cm.Model(
    lambda position: jnp.where(position["m"] >= 0, -0.5 * (position["m"] / 0.1) ** 2, -jnp.inf),
    lambda position, rows: -0.5 * (rows["y"] - position["m"]) ** 2,
    initial_position={"m": np.array(0.1)},
    name="positive mean",
)
GROUPS = 6
GROUPED = cm.Model(
    lambda position: (
        -0.5 * jnp.sum(position["z"] ** 2) - 0.5 * position["mean"] ** 2 - 0.5 * position["log_scale"] ** 2
    ),
    lambda position, rows: (
        -0.5 * (rows["y"] - position["mean"] - jnp.exp(position["log_scale"]) * position["z"][rows["group"]]) ** 2
    ),
    initial_position={"z": np.zeros(GROUPS), "mean": np.array(0.0), "log_scale": np.array(0.0)},
    name="groups",
)
SPARSE = cm.models.sparse_regression(3, inclusion_probability=0.5, variance_shape=10.0)


def columns(rng: np.random.Generator, count: int) -> np.ndarray:
    """An intercept and normal columns."""
    return np.column_stack([np.ones(ROWS), rng.normal(size=(ROWS, count - 1))])


def logistic(rng: np.random.Generator, model: cm.Model = LOGISTIC, count: int = 3) -> Simulated:
    """A logistic regression."""
    b, x = rng.normal(size=count), columns(rng, count)
    y = (rng.random(ROWS) < 1 / (1 + np.exp(-x @ b))).astype(float)
    return Simulated({"b": b}, model, {"x": x, "y": y})


def with_term(rng: np.random.Generator) -> Simulated:
    """Twelve coefficients and forty rows in the coreset: fewer than the 135 from which on no Gaussian term is used."""
    return logistic(rng, LOGISTIC_TWELVE, 12)


def poisson(rng: np.random.Generator) -> Simulated:
    """A Poisson regression."""
    b, x = rng.normal(size=2), columns(rng, 2)
    return Simulated({"b": b}, POISSON, {"x": x, "y": rng.poisson(np.exp(x @ b)).astype(float)})


def share(rng: np.random.Generator) -> Simulated:
    """A probability in its interval."""
    p = rng.random()
    return Simulated({"p": np.array(p)}, SHARE, {"y": (rng.random(ROWS) < p).astype(float)})


def positive(rng: np.random.Generator) -> Simulated:
    """A mean that cannot be negative, often at the edge."""
    m = abs(rng.normal(0.0, 0.1))
    return Simulated({"m": np.array(m)}, POSITIVE, {"y": rng.normal(m, 1.0, ROWS)})


def grouped(rng: np.random.Generator) -> Simulated:
    """Effects of groups with a scale of their own."""
    truth = {"z": rng.normal(size=GROUPS), "mean": np.array(rng.normal()), "log_scale": np.array(rng.normal())}
    group = np.arange(ROWS) % GROUPS
    centre = truth["mean"] + np.exp(truth["log_scale"]) * truth["z"][group]
    return Simulated(truth, GROUPED, {"y": rng.normal(centre, 1.0), "group": group})


def sparse(rng: np.random.Generator) -> Simulated:
    """Coefficients from a spike or a slab: discrete parameters."""
    shape, scale = 10.0, 1.0
    variance = 1 / rng.gamma(shape / 2, 2 / (shape * scale))
    gamma = (rng.random(3) < 0.5).astype(int)
    beta = rng.normal(size=3) * np.where(gamma == 1, 1.0, 0.1)
    x = rng.normal(size=(ROWS, 3))
    y = x @ beta + rng.normal(size=ROWS) * np.sqrt(variance)
    truth = {"beta": beta, "gamma": gamma, "variance": np.array(variance)}
    return Simulated(truth, SPARSE, {"x": x, "y": y})


@cache
def fixed_column() -> np.ndarray:
    """The same in every table, centred, so that programs are shared and the intercept means what it says."""
    column = np.random.default_rng(7).normal(size=ROWS)
    standard: np.ndarray = (column - column.mean()) / column.std()
    return standard


def by_formula(rng: np.random.Generator) -> Simulated:
    """A regression by formula with priors in words."""
    intercept, slope = rng.normal(size=2)
    x = fixed_column()
    y = (rng.random(ROWS) < 1 / (1 + np.exp(-intercept - slope * x))).astype(int)
    priors = {"Intercept": "Normal(0, 1)", "x": "Normal(0, 1)"}
    made = cm.from_formula("y ~ x", pd.DataFrame({"y": y, "x": x}), family="bernoulli", priors=priors)
    return Simulated({"Intercept": np.array(intercept), "x": np.array(slope)}, made, None)


MODELS = {
    "logistic": Calibrated(logistic, 60, "logistic regression"),
    "poisson": Calibrated(poisson, 60, "Poisson regression"),
    "bounded": Calibrated(share, 60, "a probability in its interval"),
    "edge": Calibrated(positive, 60, "a mean that cannot be negative"),
    "hierarchical": Calibrated(grouped, 100, "effects of groups"),
    "discrete": Calibrated(sparse, 60, "spike and slab"),
    "formula": Calibrated(by_formula, 60, "logistic regression by formula"),
    "gaussian-term": Calibrated(with_term, 40, "twelve coefficients, 40 rows and a Gaussian term"),
}
