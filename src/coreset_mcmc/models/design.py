"""The linear predictor with an intercept, without copying the features."""

from __future__ import annotations

import jax


def intercept_plus(features: jax.Array, coefficients: jax.Array) -> jax.Array:
    """beta_0 + x'(beta_1..beta_p) for each row."""
    return coefficients[0] + features @ coefficients[1:]
