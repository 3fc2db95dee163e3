"""Logistic regression with effects of two crossed groupings, each with an unknown spread.

y ~ Bernoulli(logistic(a + x'beta + first_g + second_h)), first_g ~ N(0, exp(log_scale_1)^2), second_h ~ N(0,
exp(log_scale_2)^2); a ~ N(0, 3^2), beta and both log scales standard normal. The groups of the first have sizes from
a single row up: many of them are hardly informed by their rows.
"""

from __future__ import annotations

from functools import lru_cache

import jax
import jax.numpy as jnp
import numpy as np

import coreset_mcmc as cm
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.models.regressors import Coefficients, Regressors, RowRegressors

NUM_FEATURES = 5
SMALL_GROUPS = 0.1
"""Of the first grouping: groups with a single row."""


def _log_prior(position: Position) -> jax.Array:
    total = -0.5 * (jnp.sum(position["beta"] ** 2) + (position["intercept"] / 3.0) ** 2)
    for name in ("first", "second"):
        effects, log_scale = position[name], position[f"log_scale_{name}"]
        total += -effects.size * log_scale - 0.5 * jnp.sum((effects * jnp.exp(-log_scale)) ** 2) - 0.5 * log_scale**2
    return jnp.asarray(total)


def _of_rows(batch: Batch) -> RowRegressors:
    return RowRegressors(batch["x"], (batch["first"], batch["second"]))


def _coefficients(position: Position) -> Coefficients:
    return Coefficients(position["intercept"], position["beta"], (position["first"], position["second"]))


REGRESSORS = Regressors(_of_rows, _coefficients)


def _log_likelihood(position: Position, predicted: jax.Array, batch: Batch) -> jax.Array:
    del position
    return -jax.nn.softplus((1.0 - 2.0 * batch["y"]) * predicted)


@lru_cache
def crossed_groups(num_first: int, num_second: int) -> cm.Model:
    """Data: {"x": (N, 5), "first": (N,), "second": (N,), "y": (N,)}."""
    return cm.Model.from_linear_predictor(
        _log_prior,
        REGRESSORS.predictor,
        _log_likelihood,
        regressors=REGRESSORS,
        initial_position={
            "intercept": np.zeros(()),
            "beta": np.zeros(NUM_FEATURES),
            "first": np.zeros(num_first),
            "second": np.zeros(num_second),
            "log_scale_first": np.zeros(()),
            "log_scale_second": np.zeros(()),
        },
        name="crossed groups",
    )


def crossed_groups_data(
    generator: np.random.Generator, num_rows: int, num_first: int, num_second: int
) -> dict[str, np.ndarray]:
    """Groups of unequal sizes, a tenth of the first grouping with one row each; one outcome in seven or so."""
    num_single = int(SMALL_GROUPS * num_first)
    others = generator.dirichlet(np.ones(num_first - num_single))
    first = num_single + generator.choice(num_first - num_single, size=num_rows, p=others)
    first[:num_single] = np.arange(num_single)
    second = generator.integers(num_second, size=num_rows)
    x = generator.normal(size=(num_rows, NUM_FEATURES))
    predicted = (
        -2.0
        + x @ (0.5 * generator.normal(size=NUM_FEATURES))
        + 0.5 * generator.normal(size=num_first)[first]
        + 0.3 * generator.normal(size=num_second)[second]
    )
    y = (generator.random(num_rows) < 1.0 / (1.0 + np.exp(-predicted))).astype(float)
    return {"x": x, "first": first, "second": second, "y": y}
