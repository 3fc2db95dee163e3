"""The full log-density and its derivatives: blocks add up, in bounded memory."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from coreset_mcmc.models import linear_regression, logistic_regression
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.full import derivatives, full_log_densities, full_log_density, value_and_gradient
from tests.helpers.regressions import NUM_FEATURES, make, regression_data, unblocked


@pytest.fixture(scope="module")
def blocked():
    """70 rows in blocks of 16, with a remainder."""
    with jax.enable_x64(True):
        return make(linear_regression(NUM_FEATURES), regression_data("linear", size=70), rows_per_block=16)


def test_blocks_add_up_to_second_order(blocked, rng):
    flat = jnp.asarray(rng.normal(size=5))
    log_density = unblocked(blocked)
    found = jax.jit(derivatives)(blocked, flat)
    np.testing.assert_allclose(found.value, log_density(flat), rtol=1e-12)
    np.testing.assert_allclose(found.gradient, jax.grad(log_density)(flat), rtol=1e-11)
    np.testing.assert_allclose(found.hessian, jax.hessian(log_density)(flat), rtol=1e-11, atol=1e-9)


def test_log_density_can_be_differentiated(blocked, rng):
    flat, unravel = jnp.asarray(rng.normal(size=5)), ravel_pytree(blocked.position)[1]

    def log_density(at):
        return 3.0 * full_log_density(blocked.model, blocked.data, at)

    value, gradient = jax.jit(jax.value_and_grad(log_density))(unravel(flat))
    np.testing.assert_allclose(value, 3.0 * unblocked(blocked)(flat), rtol=1e-12)
    np.testing.assert_allclose(ravel_pytree(gradient)[0], 3.0 * jax.grad(unblocked(blocked))(flat), rtol=1e-11)
    same = value_and_gradient(blocked.model, blocked.data, unravel(flat))
    np.testing.assert_allclose(ravel_pytree(same[1])[0], jax.grad(unblocked(blocked))(flat), rtol=1e-11)


def test_several_positions_in_one_pass(blocked, rng):
    flat = jnp.asarray(rng.normal(size=(4, 5)))
    unravel = ravel_pytree(blocked.position)[1]
    together = full_log_densities(blocked.model, blocked.data, jax.vmap(unravel)(flat))
    np.testing.assert_allclose(together, [unblocked(blocked)(one) for one in flat], rtol=1e-12)


def test_nan_is_an_impossible_position(blocked):
    broken = Model(lambda position: jnp.nan * position, lambda position, batch: jnp.zeros(batch["y"].shape))
    assert full_log_density(broken, blocked.data, jnp.array(1.0)) == -jnp.inf


def temporary_bytes(log_density, size):
    problem = make(logistic_regression(NUM_FEATURES), regression_data("logistic", size=size), rows_per_block=64)
    gradient = jax.jit(lambda data, position: jax.grad(lambda at: log_density(problem.model, data, at))(position))
    return gradient.lower(problem.data, problem.position).compile().memory_analysis().temp_size_in_bytes


def in_one_piece(model, data, position):
    return model.log_prior(position) + jnp.sum(jnp.exp(jnp.sin(model.log_likelihood(position, data.arrays))))


def test_memory_of_a_gradient_does_not_grow_with_the_rows():
    """Residuals of reverse mode live for one block; all rows at once keep residuals of every row."""
    small, large = 640, 64_000
    assert temporary_bytes(full_log_density, large) <= temporary_bytes(full_log_density, small) + 1_024
    assert temporary_bytes(in_one_piece, large) > 8 * large
