"""Logistic regression with independent Cauchy(0, 1) priors (appendix C.1 of the paper).

l_n = -softplus(-(2 y_n - 1) [1, x_n]'beta). Softplus has a slope of at most 1, so no row's log-likelihood changes by
more than |[1, x_n]| |beta* - beta| between two positions: the bound that Confidence MH asks for.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import require_count
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.models.checks import check_support, regression_columns
from coreset_mcmc.models.design import WITH_INTERCEPT, intercept_plus
from coreset_mcmc.models.model import ChangeBound, Model
from coreset_mcmc.models.special import softplus


def _log_prior(position: Position) -> jax.Array:
    return -jnp.sum(jnp.log1p(position["beta"] ** 2))


def _predictor(position: Position, batch: Batch) -> jax.Array:
    return intercept_plus(batch["x"], position["beta"])


def _log_likelihood(position: Position, predicted: jax.Array, batch: Batch) -> jax.Array:
    del position
    return -softplus((1.0 - 2.0 * batch["y"]) * predicted)


def _row_norm(batch: Batch) -> jax.Array:
    return jnp.sqrt(1.0 + jnp.sum(batch["x"] ** 2, axis=-1))


def _largest_change(largest_norm: jax.Array, position: Position, proposal: Position) -> jax.Array:
    result: jax.Array = largest_norm * jnp.linalg.norm(proposal["beta"] - position["beta"])
    return result


@lru_cache
def logistic_regression(num_features: int) -> Model:
    """y ~ Bernoulli(logistic(beta_0 + x'beta)) with y in {0, 1}; Cauchy(0, 1) priors."""
    require_count("num_features", num_features, at_least=1, fix="Pass the number of columns of x.")

    def check_data(data: Any) -> None:
        _, y = regression_columns(data, num_features)
        check_support(
            y, (y == 0) | (y == 1), expected="0 or 1 in every row", fix="Recode the response, e.g. (y == 'yes') * 1."
        )

    return Model.from_linear_predictor(
        _log_prior,
        _predictor,
        _log_likelihood,
        regressors=WITH_INTERCEPT,
        initial_position={"beta": np.zeros(num_features + 1)},
        change_bound=ChangeBound(_row_norm, _largest_change),
        check_data=check_data,
        dims={"beta": ("coefficient",)},
        log_concave=True,
        name="logistic_regression",
    )
