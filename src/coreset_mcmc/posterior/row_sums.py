"""Sums over rows from which the derivatives of their log-likelihood follow, by the way that suits the model.

Sums of blocks, leaves and workers are added before anything is made of them, so what is passed on is as small as the
structure of the model allows.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Batch
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.by_predictor import direct_places, predictor_sums
from coreset_mcmc.posterior.predictor_sums import PredictorSums, Unravel
from coreset_mcmc.posterior.second_order import Derivatives, to_second_order

RowSums = PredictorSums | Derivatives
"""To be added leaf by leaf."""


def row_sums(model: Model, unravel: Unravel, batch: Batch, weights: jax.Array, flat: jax.Array) -> RowSums:
    """Of the weighted log-likelihood of a block."""
    split = model.linear_predictor
    direct = None if split is None else direct_places(split, unravel(flat), batch)
    if split is not None and direct is not None:
        return predictor_sums(split, unravel, direct, batch, weights, flat)

    def weighted(at: jax.Array) -> jax.Array:
        values = model.log_likelihood(unravel(at), batch)
        return jnp.sum(jnp.where(weights != 0, weights * values, 0.0))

    return to_second_order(weighted, flat)


def prior_derivatives(model: Model, unravel: Unravel, flat: jax.Array) -> Derivatives:
    """Value, gradient and Hessian of the log-prior."""
    return to_second_order(lambda at: model.log_prior(unravel(at)), flat)


def with_prior(model: Model, unravel: Unravel, flat: jax.Array, sums: Any) -> Derivatives:
    """Value, gradient and Hessian of the full log-density from the sums over all rows, in a compiled program."""
    prior = prior_derivatives(model, unravel, flat)
    total: Derivatives = jax.tree.map(jnp.add, prior, likelihood_derivatives(model, unravel, flat, sums))
    return total


def likelihood_derivatives(model: Model, unravel: Unravel, flat: jax.Array, sums: RowSums) -> Derivatives:
    """Of the log-likelihood alone."""
    if not isinstance(sums, PredictorSums):
        return sums
    regressors = None if model.linear_predictor is None else model.linear_predictor.regressors
    return sums.derivatives(regressors, unravel, flat)
