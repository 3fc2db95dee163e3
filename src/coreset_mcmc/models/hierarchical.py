"""Logistic regression with an effect for each group and unknown spread of the effects.

y ~ Bernoulli(logistic(x'beta + effects_g)), effects_g ~ N(mean, exp(log_scale)^2), and beta, mean, log_scale ~ N(0, 1).

The parametrisation is the hierarchically centred one. It mixes well where groups are informed by their rows (Gelfand,
Sahu and Carlin 1995; Papaspiliopoulos, Roberts and Skold 2007), as they are here with hundreds of rows in a group, and
its predictor is affine in the position, which the non-centred product exp(log_scale) * z is not: a slice along a line
costs O(M). The price: where a group has no row of positive weight, its effect and log_scale form Neal's funnel.

The joint density is a poor guide to its mass. With all J effects at their mean it grows like exp(-J log_scale) down to
log_scale = -J: a spike that is higher than anything else when effects are small, with no mass to speak of. A mode near
the mass, if there is one at all, understates the scale, because it sits where the effects have shrunk.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import require_count
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.models.checks import check_support, index_column, regression_columns
from coreset_mcmc.models.model import ChangeBound, Model
from coreset_mcmc.models.regressors import Coefficients, Regressors, RowRegressors
from coreset_mcmc.models.special import inverse_scale, softplus


def _log_prior(position: Position) -> jax.Array:
    effects, mean, log_scale = position["effects"], position["mean"], position["log_scale"]
    standardised = (effects - mean) * inverse_scale(log_scale)
    of_effects = -effects.size * log_scale - 0.5 * jnp.sum(standardised**2)
    result: jax.Array = of_effects - 0.5 * (jnp.sum(position["beta"] ** 2) + mean**2 + log_scale**2)
    return result


def _of_rows(batch: Batch) -> RowRegressors:
    return RowRegressors(batch["x"], (batch["group"],))


def _coefficients(position: Position) -> Coefficients:
    return Coefficients(jnp.zeros(()), position["beta"], (position["effects"],))


REGRESSORS = Regressors(_of_rows, _coefficients)


def _log_likelihood(position: Position, predicted: jax.Array, batch: Batch) -> jax.Array:
    del position
    return -softplus((1.0 - 2.0 * batch["y"]) * predicted)


def _length_of_features(batch: Batch) -> jax.Array:
    result: jax.Array = jnp.linalg.norm(batch["x"], axis=1)
    return result


def _largest_change(largest: jax.Array, position: Position, proposal: Position) -> jax.Array:
    """softplus has slope at most one, so a row changes by no more than its predictor."""
    shift = jax.tree.map(jnp.subtract, proposal, position)
    result: jax.Array = largest * jnp.linalg.norm(shift["beta"]) + jnp.max(jnp.abs(shift["effects"]))
    return result


@lru_cache
def hierarchical_logistic_regression(num_features: int, num_groups: int = 50) -> Model:
    """y ~ Bernoulli(logistic(x'beta + effects[group])). Data: {"x": (N, p), "group": (N,), "y": (N,)}."""
    require_count("num_features", num_features, at_least=1, fix="Pass the number of columns of x.")
    require_count("num_groups", num_groups, at_least=1, fix="Pass the number of groups, also of those without rows.")

    def check_data(data: Any) -> None:
        _, y = regression_columns(data, num_features)
        check_support(
            y, (y == 0) | (y == 1), expected="0 or 1 in every row", fix="Recode the response, e.g. (y == 'yes') * 1."
        )
        index_column(data, "group", num_groups)

    return Model.from_linear_predictor(
        _log_prior,
        REGRESSORS.predictor,
        _log_likelihood,
        regressors=REGRESSORS,
        initial_position={
            "beta": np.zeros(num_features),
            "effects": np.zeros(num_groups),
            "mean": np.zeros(()),
            "log_scale": np.zeros(()),
        },
        change_bound=ChangeBound(_length_of_features, _largest_change),
        check_data=check_data,
        dims={"beta": ("coefficient",), "effects": ("group",)},
        name="hierarchical_logistic_regression",
    )


def hierarchical_logistic_regression_data(
    rng: np.random.Generator, num_rows: int = 10_000, *, num_features: int = 3, num_groups: int = 50
) -> dict[str, np.ndarray]:
    """Groups of unequal sizes, a rare response and effects with standard deviation 0.3."""
    sizes = rng.dirichlet(np.ones(num_groups))
    group = rng.choice(num_groups, size=num_rows, p=sizes)
    x = rng.normal(size=(num_rows, num_features))
    beta = 0.5 * rng.normal(size=num_features)
    effects = -2.0 + 0.3 * rng.normal(size=num_groups)
    probability = 1.0 / (1.0 + np.exp(-(x @ beta + effects[group])))
    return {"x": x, "group": group, "y": (rng.random(num_rows) < probability).astype(float)}
