"""The density of the full posterior and its derivatives, in memory that does not grow with the data.

Log-density, gradient and Hessian are sums over rows, so each block of rows is differentiated on its own and only the
sums are kept. :func:`full_log_density` can be differentiated once, in reverse mode, under the same bound.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.trees import dimension
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.data.inside import DataSource
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.problem import Problem
from coreset_mcmc.posterior.row_sums import RowSums, row_sums, with_prior
from coreset_mcmc.posterior.second_order import Derivatives
from coreset_mcmc.posterior.target import finite_or_impossible


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def full_log_density(model: Model, data: DataSource, position: Position) -> jax.Array:
    """log pi_0(theta) + sum_n l_n(theta) over all rows, with NaN read as -inf."""
    return finite_or_impossible(model.log_prior(position) + data.sum_over_rows(_block_sum(model, position)))


def value_and_gradient(model: Model, data: DataSource, position: Position) -> tuple[jax.Array, Position]:
    """The full log-density and its gradient, each block of rows differentiated on its own."""

    def of_block(batch: Batch) -> tuple[jax.Array, Position]:
        return jax.value_and_grad(lambda at: jnp.sum(model.log_likelihood(at, batch)))(position)

    prior = jax.value_and_grad(model.log_prior)(position)
    value, gradient = jax.tree.map(jnp.add, prior, data.sum_over_rows(of_block))
    return finite_or_impossible(value), gradient


def _backward(model: Model, gradient: Position, cotangent: jax.Array) -> tuple[None, Position]:
    del model
    return None, jax.tree.map(lambda leaf: cotangent * leaf, gradient)


full_log_density.defvjp(value_and_gradient, _backward)


def full_log_densities(model: Model, data: DataSource, positions: Position) -> jax.Array:
    """The full log-density (K,) at each of K positions with a leading axis, in one pass over the rows."""

    def of_block(batch: Batch) -> jax.Array:
        result: jax.Array = jax.vmap(lambda position: _block_sum(model, position)(batch))(positions)
        return result

    return finite_or_impossible(jax.vmap(model.log_prior)(positions) + data.sum_over_rows(of_block))


def _block_sum(model: Model, position: Position) -> Any:
    return lambda batch: jnp.sum(model.log_likelihood(position, batch))


def derivatives(problem: Problem, flat: jax.Array) -> Derivatives:
    """Value, gradient and Hessian of the full log-density with respect to the flattened position."""
    unravel = ravel_pytree(problem.position)[1]

    def of_block(batch: Batch) -> RowSums:
        weights = jnp.ones(jax.tree.leaves(batch)[0].shape[0])
        return row_sums(problem.model, unravel, batch, weights, flat)

    total = with_prior(problem.model, unravel, flat, problem.data.sum_over_rows(of_block))
    return total._replace(value=finite_or_impossible(total.value))


def num_derivative_evaluations(problem: Problem) -> int:
    """What :func:`derivatives` costs, in evaluations of the log-likelihood of one row.

    Each row takes a gradient and, for its Hessian, one product with a vector for each of the d coordinates; such a
    product costs about as much as a gradient.
    """
    return problem.data.size * (1 + dimension(problem.position))
