"""Regressions: leverage, separation, collinear columns, scales, rare events, few rows, repeated rows, wrong starts.

One linear, one logistic and one Poisson model with an intercept and a slope share shapes; what changes is the table.
The linear truth is in closed form, the others are on a grid of whitened coordinates around the mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import coreset_mcmc as cm
from coreset_mcmc_benchmarks.verdicts.problems import Moments, Problem
from coreset_mcmc_benchmarks.zoo.by_importance import climbed, importance_moments
from coreset_mcmc_benchmarks.zoo.entry import ROWS, SIZE, Entry, generator
from coreset_mcmc_benchmarks.zoo.grids import grid_moments
from coreset_mcmc_benchmarks.zoo.kept import kept

PRIOR_SCALE = 10.0


def prior(position: jax.Array) -> jax.Array:
    """Wide and normal."""
    return -0.5 * jnp.sum((position / PRIOR_SCALE) ** 2)


def predictor(position: jax.Array, rows: Any) -> Any:
    """Linear."""
    return rows["x"] @ position


def regression(row: Callable[[jax.Array, jax.Array], jax.Array], name: str, columns: int) -> cm.Model:
    """A response with some log-density given the predictor."""
    return cm.Model.from_linear_predictor(
        prior,
        predictor,
        lambda position, predicted, rows: row(predicted, rows["y"]),
        initial_position=np.zeros(columns),
        name=name,
    )


def linear_row(predicted: jax.Array, y: jax.Array) -> jax.Array:
    """Noise of unit scale."""
    return -0.5 * (y - predicted) ** 2


def logistic_row(predicted: jax.Array, y: jax.Array) -> jax.Array:
    """A response of zeros and ones."""
    return -jnp.logaddexp(0.0, (1 - 2 * y) * predicted)


def poisson_row(predicted: jax.Array, y: jax.Array) -> jax.Array:
    """Counts with a logarithmic link."""
    return y * predicted - jnp.exp(predicted)


LINEAR, LOGISTIC, POISSON = (
    regression(row, name, 2)
    for row, name in ((linear_row, "linear"), (logistic_row, "logistic"), (poisson_row, "Poisson"))
)
MANY = 30
LINEAR_MANY, LOGISTIC_MANY, POISSON_MANY = (
    regression(row, name, MANY)
    for row, name in ((linear_row, "linear, many"), (logistic_row, "logistic, many"), (poisson_row, "Poisson, many"))
)


class Table(NamedTuple):
    """Columns and the coefficients that make the response."""

    x: np.ndarray
    coefficients: np.ndarray


def with_intercept(column: np.ndarray) -> np.ndarray:
    """Two columns."""
    return np.column_stack([np.ones(len(column)), column])


def leverage(rng: np.random.Generator, count: int) -> Table:
    """A few rows far out decide the slope."""
    column = rng.normal(size=count)
    column[:3] = [60.0, -45.0, 80.0]
    return Table(with_intercept(column), np.array([0.3, 0.04]))


def collinear(rng: np.random.Generator, count: int) -> Table:
    """Two columns that differ in the fourth digit."""
    column = rng.normal(size=count)
    return Table(np.column_stack([column, column + 1e-4 * rng.normal(size=count)]), np.array([0.5, 0.5]))


def scales(rng: np.random.Generator, count: int) -> Table:
    """Columns in units that are a million million apart."""
    return Table(rng.normal(size=(count, 2)) * np.array([1e-6, 1e6]), np.array([0.0, 1e-6]))


def moderate_scales(rng: np.random.Generator, count: int) -> Table:
    """Columns in units that are a million apart."""
    return Table(rng.normal(size=(count, 2)) * np.array([1e-2, 1e4]), np.array([5.0, 1e-4]))


def repeated(rng: np.random.Generator, count: int) -> Table:
    """Four different rows, again and again."""
    return Table(with_intercept(np.array([-1.0, 0.0, 1.0, 3.0])[rng.integers(0, 4, count)]), np.array([0.2, 0.4]))


def rare(rng: np.random.Generator, count: int) -> Table:
    """Events are seen in a few rows."""
    return Table(with_intercept(rng.normal(size=count)), np.array([-5.5, 0.7]))


def ordinary(rng: np.random.Generator, count: int) -> Table:
    """Nothing is hard about it."""
    return Table(with_intercept(rng.normal(size=count)), np.array([0.5, -0.5]))


def response(rng: np.random.Generator, model: cm.Model, predicted: np.ndarray) -> Any:
    """Of the kind of the model."""
    if model.name.startswith("linear"):
        return rng.normal(predicted, 1.0)
    if model.name.startswith("logistic"):
        return (rng.random(len(predicted)) < 1 / (1 + np.exp(-predicted))).astype(float)
    return rng.poisson(np.exp(predicted)).astype(float)


def linear_moments(x: np.ndarray, y: np.ndarray) -> Moments:
    """In closed form."""
    precision = x.T @ x + np.eye(x.shape[1]) / PRIOR_SCALE**2
    return Moments(np.linalg.solve(precision, x.T @ y), np.linalg.inv(precision), np.inf)


@kept
def whitened_moments(model: cm.Model, data: Any) -> Moments:
    """On a grid whose axes are those of the Gaussian at the mode."""
    with jax.enable_x64(True):
        rows = jax.tree.map(jnp.asarray, data)
        mode, precision = climbed(
            lambda point: model.log_prior(point) + jnp.sum(model.log_likelihood(point, rows)), np.zeros(2)
        )
    shape = np.linalg.cholesky(np.linalg.inv(precision))

    def place(point: Any) -> Any:
        return mode + point @ shape.T

    return grid_moments(model, data, [(-60.0, 60.0)] * 2, place=place, shown=place)


Maker = Callable[[np.random.Generator, int], Table]


def regressed(
    name: str, model: cm.Model, table: Maker, count: int = ROWS, size: int = SIZE, start: float | None = None
) -> Problem:
    """A model on a table."""
    rng = generator(name)
    x, coefficients = table(rng, count)
    data = {"x": x, "y": response(rng, model, x @ coefficients)}
    truth = linear_moments(x, data["y"]) if model is LINEAR else whitened_moments(model, data)
    initvals = None if start is None else np.full(2, start)
    return Problem(model, data, truth, (min(size, count),), initvals=initvals)


def separated(name: str, overlap: int) -> Problem:
    """A column that tells zeros from ones, but for a few rows."""
    x = generator(name).normal(size=ROWS)
    y = (x > 0).astype(float)
    near = np.argsort(np.abs(x))[:overlap]
    y[near] = 1 - y[near]
    data = {"x": with_intercept(x), "y": y}
    return Problem(LOGISTIC, data, whitened_moments(LOGISTIC, data), (SIZE,))


def many(name: str, model: cm.Model, size: int, kind: str = "normal") -> Problem:
    """Thirty columns and fewer rows in the coreset than a quadratic function has coefficients: a Gaussian term."""
    rng = generator(name)
    x = rng.normal(size=(ROWS, MANY)) / np.sqrt(MANY)
    if kind == "levels":
        x = np.eye(MANY)[rng.integers(0, MANY, ROWS)]
    data = {"x": x, "y": response(rng, model, x @ rng.normal(size=MANY))}
    if model is LINEAR_MANY:
        return Problem(model, data, linear_moments(x, data["y"]), (size,))
    truth = importance_moments(model, data, np.zeros(MANY), lambda point: point)
    return Problem(model, data, truth, (size,))


def entries() -> Iterator[Entry]:
    """All problems of these families."""
    families: dict[str, dict[str, Callable[[str], Problem]]] = {
        "leverage": {
            "linear-leverage": partial(regressed, model=LINEAR, table=leverage),
            "logistic-leverage": partial(regressed, model=LOGISTIC, table=leverage),
            "poisson-leverage": partial(regressed, model=POISSON, table=leverage),
        },
        "collinear": {
            "linear-collinear": partial(regressed, model=LINEAR, table=collinear),
            "logistic-collinear": partial(regressed, model=LOGISTIC, table=collinear),
            "poisson-collinear": partial(regressed, model=POISSON, table=collinear),
        },
        "scales": {
            "linear-scales": partial(regressed, model=LINEAR, table=scales),
            "logistic-scales": partial(regressed, model=LOGISTIC, table=scales),
            "logistic-moderate-scales": partial(regressed, model=LOGISTIC, table=moderate_scales),
            "poisson-moderate-scales": partial(regressed, model=POISSON, table=moderate_scales),
        },
        "duplicates": {
            "linear-duplicates": partial(regressed, model=LINEAR, table=repeated),
            "logistic-duplicates": partial(regressed, model=LOGISTIC, table=repeated),
            "poisson-duplicates": partial(regressed, model=POISSON, table=repeated),
        },
        "rare events": {
            "logistic-rare": partial(regressed, model=LOGISTIC, table=rare),
            "poisson-rare": partial(regressed, model=POISSON, table=rare),
        },
        "separation": {
            "logistic-separated": partial(separated, overlap=0),
            "logistic-nearly-separated": partial(separated, overlap=3),
        },
        "tiny N": {
            "linear-three-rows": partial(regressed, model=LINEAR, table=ordinary, count=3),
            "logistic-five-rows": partial(regressed, model=LOGISTIC, table=ordinary, count=5),
            "poisson-one-row": partial(regressed, model=POISSON, table=ordinary, count=1),
        },
        "wrong starts": {
            "linear-start-far-away": partial(regressed, model=LINEAR, table=ordinary, start=1e6),
            "logistic-start-far-away": partial(regressed, model=LOGISTIC, table=ordinary, start=80.0),
            "poisson-start-far-away": partial(regressed, model=POISSON, table=ordinary, start=8.0),
        },
        "few rows in the coreset": {
            "linear-four-rows": partial(regressed, model=LINEAR, table=ordinary, size=4),
            "logistic-four-rows": partial(regressed, model=LOGISTIC, table=ordinary, size=4),
            "poisson-three-rows-leverage": partial(regressed, model=POISSON, table=leverage, size=3),
        },
        "Gaussian term": {
            "linear-thirty-columns": partial(many, model=LINEAR_MANY, size=SIZE),
            "logistic-thirty-columns": partial(many, model=LOGISTIC_MANY, size=SIZE),
            "logistic-thirty-columns-forty-rows": partial(many, model=LOGISTIC_MANY, size=40),
            "poisson-thirty-columns": partial(many, model=POISSON_MANY, size=SIZE),
            "logistic-thirty-levels": partial(many, model=LOGISTIC_MANY, size=SIZE, kind="levels"),
        },
    }
    for family, makes in families.items():
        for name, make in makes.items():
            yield Entry(name, family, partial(make, name))
