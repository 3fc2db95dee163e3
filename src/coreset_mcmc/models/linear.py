"""Linear regression with unknown noise, non-conjugate (appendix C.1 of the paper).

beta_0..beta_p and s = log sigma^2 have independent N(0, 1) priors; l_n = -s/2 - exp(-s) (y_n - [1, x_n]'beta)^2 / 2.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import require_count
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.models.checks import regression_columns
from coreset_mcmc.models.design import WITH_INTERCEPT, intercept_plus
from coreset_mcmc.models.model import Model


def _log_prior(position: Position) -> jax.Array:
    result: jax.Array = -0.5 * (jnp.sum(position["beta"] ** 2) + position["log_variance"] ** 2)
    return result


def _predictor(position: Position, batch: Batch) -> jax.Array:
    return intercept_plus(batch["x"], position["beta"])


def _log_likelihood(position: Position, predicted: jax.Array, batch: Batch) -> jax.Array:
    log_variance = position["log_variance"]
    result: jax.Array = -0.5 * log_variance - 0.5 * jnp.exp(-log_variance) * (batch["y"] - predicted) ** 2
    return result


@lru_cache
def linear_regression(num_features: int) -> Model:
    """y ~ N(beta_0 + x'beta, exp(log_variance)); all parameters N(0, 1) a priori."""
    require_count("num_features", num_features, at_least=1, fix="Pass the number of columns of x.")

    def check_data(data: Any) -> None:
        regression_columns(data, num_features)

    return Model.from_linear_predictor(
        _log_prior,
        _predictor,
        _log_likelihood,
        regressors=WITH_INTERCEPT,
        initial_position={"beta": np.zeros(num_features + 1), "log_variance": np.array(10.0)},
        check_data=check_data,
        dims={"beta": ("coefficient",)},
        name="linear_regression",
    )
