"""The control-variate gradient: unbiased by enumeration, without noise at its centre, exact with all rows."""

from __future__ import annotations

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.data import to_array_data
from coreset_mcmc.methods.subsampling.control_variates import (
    control_variate,
    estimate_posterior,
    fresh_estimate,
    posterior_at_centre,
)
from coreset_mcmc.models import logistic_regression
from tests.helpers.problems import logistic_data

MODEL = logistic_regression(2)
SIZE, COUNT = 7, 3
CENTRE, ELSEWHERE = {"beta": np.array([0.1, 0.8, 1.1])}, {"beta": np.array([-0.4, 1.0, 0.3])}


@pytest.fixture
def data():
    return to_array_data(logistic_data(size=SIZE))


@pytest.fixture
def control(data):
    return control_variate(MODEL, data, CENTRE)


@jax.jit
def subset_estimates(data, control, position, rows):
    """An estimate from each of several subsets of rows."""
    return jax.vmap(lambda subset: estimate_posterior(MODEL, data.take(subset), SIZE, control, position))(rows)


@jax.jit
def exact(data, position):
    def log_posterior(at):
        return MODEL.log_prior(at) + jnp.sum(MODEL.log_likelihood(at, data.arrays))

    return jax.value_and_grad(log_posterior)(position)


SUBSETS = np.array(list(combinations(range(SIZE), COUNT)))


def test_unbiased_over_all_subsets(data, control):
    estimates = subset_estimates(data, control, ELSEWHERE, SUBSETS)
    value, gradient = exact(data, ELSEWHERE)
    np.testing.assert_allclose(np.mean(estimates.log_density), value, rtol=1e-12)
    np.testing.assert_allclose(np.mean(estimates.gradient["beta"], axis=0), gradient["beta"], atol=1e-12)
    assert np.std(estimates.gradient["beta"], axis=0).min() > 1e-3


def test_wrong_scale_would_be_seen(data, control):
    """The same average with the differences left unscaled, a broken twin."""
    estimates = subset_estimates(data, control, ELSEWHERE, SUBSETS)
    prior = jax.grad(MODEL.log_prior)(ELSEWHERE)["beta"]
    fixed = prior + control.gradient["beta"]
    unscaled = fixed + (COUNT / SIZE) * (np.mean(estimates.gradient["beta"], axis=0) - fixed)
    assert np.abs(unscaled - exact(data, ELSEWHERE)[1]["beta"]).max() > 1e-3


def test_no_variance_at_the_centre(data, control):
    estimates = subset_estimates(data, control, CENTRE, SUBSETS)
    value, gradient = exact(data, CENTRE)
    assert np.ptp(estimates.gradient["beta"], axis=0).max() == 0.0
    np.testing.assert_allclose(estimates.gradient["beta"][0], gradient["beta"], atol=1e-12)
    without_rows = posterior_at_centre(MODEL, control)
    np.testing.assert_allclose(without_rows.log_density, value, rtol=1e-12)
    np.testing.assert_allclose(without_rows.gradient["beta"], gradient["beta"], atol=1e-12)


def test_all_rows_give_the_full_gradient(data, control, key):
    estimate = jax.jit(lambda key, data: fresh_estimate(key, MODEL, data, SIZE, control, ELSEWHERE))(key, data)
    value, gradient = exact(data, ELSEWHERE)
    np.testing.assert_allclose(estimate.log_density, value, rtol=1e-12)
    np.testing.assert_allclose(estimate.gradient["beta"], gradient["beta"], atol=1e-12)


def test_full_gradient_is_streamed_in_blocks():
    """More rows than a block holds, and a remainder."""
    data = to_array_data(logistic_data(size=5_001))
    control = jax.jit(lambda data: control_variate(MODEL, data, CENTRE))(data)
    value, gradient = exact(data, CENTRE)
    prior, prior_gradient = jax.value_and_grad(MODEL.log_prior)(CENTRE)
    np.testing.assert_allclose(control.log_likelihood + prior, value, rtol=1e-12)
    np.testing.assert_allclose(control.gradient["beta"] + prior_gradient["beta"], gradient["beta"], rtol=1e-10)
