"""Poisson regression with rate softplus([1, x]'beta) and N(0, I) priors (appendix C.1 of the paper).

l_n = y_n log softplus(eta_n) - softplus(eta_n); the constant log y_n! is dropped.
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
from coreset_mcmc.models.model import Model
from coreset_mcmc.models.special import log_softplus, softplus


def _log_prior(position: Position) -> jax.Array:
    return -0.5 * jnp.sum(position["beta"] ** 2)


def _predictor(position: Position, batch: Batch) -> jax.Array:
    return intercept_plus(batch["x"], position["beta"])


def _log_likelihood(position: Position, predicted: jax.Array, batch: Batch) -> jax.Array:
    del position
    result: jax.Array = batch["y"] * log_softplus(predicted) - softplus(predicted)
    return result


@lru_cache
def poisson_regression(num_features: int) -> Model:
    """y ~ Poisson(softplus(beta_0 + x'beta)); N(0, 1) priors."""
    require_count("num_features", num_features, at_least=1, fix="Pass the number of columns of x.")

    def check_data(data: Any) -> None:
        _, y = regression_columns(data, num_features)
        check_support(
            y,
            (y >= 0) & (y == np.floor(y)),
            expected="whole numbers of at least 0",
            fix="Pass counts; for rates multiply by the exposure first.",
        )

    return Model.from_linear_predictor(
        _log_prior,
        _predictor,
        _log_likelihood,
        regressors=WITH_INTERCEPT,
        initial_position={"beta": np.zeros(num_features + 1)},
        check_data=check_data,
        dims={"beta": ("coefficient",)},
        log_concave=True,
        name="poisson_regression",
    )
