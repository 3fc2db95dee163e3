"""The unbiased estimate of the gradient of KL(pi_w || pi), equation (4) of the paper.

With chain states theta_1..theta_K, centred log-likelihoods L (K, M) of the coreset rows and centred sums T (K,) over
the data or a minibatch of S rows scaled by N/S (:mod:`coreset_mcmc.methods.sums`),

    g = L' (L w - T) / (K - 1).

The same numbers give an estimate of KL near the optimum, half the variance of the residual T - L w over draws of
pi_w, corrected for the variance that the minibatch adds.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.methods.sums import DataSums, centred


class GradientEstimate(NamedTuple):
    """Equation (4) and what else the same numbers tell."""

    gradient: jax.Array
    """g (M,)."""
    half_variance: jax.Array
    """Half the variance of T - L w over the K positions: unbiased, close to KL when KL is small, and noisy."""


def estimate_gradient(coreset_values: jax.Array, sums: DataSums, weights: jax.Array) -> GradientEstimate:
    """Equation (4) from coreset log-likelihoods (K, M), centred here, and sums over the data."""
    values = centred(coreset_values)
    residual = values @ weights - sums.total
    freedom = values.shape[0] - 1
    gradient = residual @ values / freedom
    half_variance = 0.5 * jnp.sum(residual**2 - sums.variance) / freedom
    return GradientEstimate(gradient, half_variance)
