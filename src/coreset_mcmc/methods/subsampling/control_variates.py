"""Gradients of the log posterior from a few rows, with the gradient at the mode as control variate (Baker et al. 2019).

With a mode estimate c, its full gradient g = sum_n grad l_n(c) computed once, and S fresh rows without replacement,

    grad log pi_0(theta) + g + (N / S) sum_s (grad l_s(theta) - grad l_s(c))

is an unbiased estimate of the gradient of the log posterior for any c; its variance falls with the distance of theta
from c and is zero at c. The same rows estimate the log posterior itself in the same way, for the record.

Gradients at c are computed anew for each batch: keeping them for all rows would take N times the size of a position.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.data.inside import DataSource
from coreset_mcmc.data.shuffle import without_replacement
from coreset_mcmc.models.model import Model


class ControlVariate(NamedTuple):
    """The log-likelihood of all rows and its gradient at one position."""

    centre: Position
    log_likelihood: jax.Array
    gradient: Position


class PosteriorEstimate(NamedTuple):
    """The log posterior density (up to a constant) and its gradient, estimated."""

    log_density: jax.Array
    gradient: Position


def control_variate(model: Model, data: DataSource, centre: Position) -> ControlVariate:
    """One pass over all rows, block by block."""
    value_and_gradient = jax.value_and_grad(lambda at, batch: jnp.sum(model.log_likelihood(at, batch)))
    value, gradient = data.sum_over_rows(lambda batch: value_and_gradient(centre, batch))
    return ControlVariate(centre, value, gradient)


def posterior_at_centre(model: Model, control: ControlVariate) -> PosteriorEstimate:
    """The estimate at the centre itself, which is exact and needs no rows."""
    log_prior, gradient = jax.value_and_grad(model.log_prior)(control.centre)
    return PosteriorEstimate(log_prior + control.log_likelihood, jax.tree.map(jnp.add, gradient, control.gradient))


def estimate_posterior(
    model: Model, batch: Batch, size: int, control: ControlVariate, position: Position
) -> PosteriorEstimate:
    """From a batch of rows drawn without replacement from ``size``; each is evaluated here and at the centre."""
    count = jax.tree.leaves(batch)[0].shape[0]

    def summed(at: Position) -> tuple[jax.Array, jax.Array]:
        values = model.log_likelihood(at, batch)
        return jnp.sum(values), values

    both = jax.tree.map(lambda here, centre: jnp.stack([here, centre]), position, control.centre)
    gradients, values = jax.vmap(jax.grad(summed, has_aux=True))(both)
    change = jnp.sum(values[0] - values[1])
    log_prior, prior_gradient = jax.value_and_grad(model.log_prior)(position)
    return PosteriorEstimate(
        log_prior + control.log_likelihood + (size / count) * change,
        jax.tree.map(
            lambda prior, full, pair: prior + full + (size / count) * (pair[0] - pair[1]),
            prior_gradient,
            control.gradient,
            gradients,
        ),
    )


def fresh_estimate(
    key: Key, model: Model, data: DataSource, count: int, control: ControlVariate, position: Position
) -> PosteriorEstimate:
    """An estimate from ``count`` rows drawn for this purpose; 2 ``count`` evaluations."""
    rows = data.take(without_replacement(key, data.size, count))
    return estimate_posterior(model, rows, data.size, control, position)
