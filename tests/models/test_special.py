"""The logarithm of the gamma function and two derivatives, beside SciPy's."""

import jax
import numpy as np
from scipy.special import digamma, gammaln, polygamma

from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.models.special import log_gamma

PLACES = np.concatenate([np.geomspace(1e-8, 1e8, 2_000), np.linspace(0.1, 20.0, 2_000), [1.0, 2.0, 8.0]])


@double_precision
def derivative(order, places):
    function = log_gamma
    for _ in range(order):
        function = jax.grad(function)
    return np.asarray(jax.vmap(function)(places))


def close(found, expected):
    """To rounding, beside one where the value itself is small."""
    np.testing.assert_array_less(np.abs(found - expected), 2e-14 * np.maximum(np.abs(expected), 1.0))


def test_value():
    close(derivative(0, PLACES), gammaln(PLACES))


def test_slope():
    close(derivative(1, PLACES), digamma(PLACES))


def test_curvature():
    np.testing.assert_allclose(derivative(2, PLACES), polygamma(1, PLACES), rtol=1e-12)


def test_whole_numbers_have_factorials():
    close(derivative(0, np.array([1.0, 2.0, 3.0, 4.0, 11.0])), np.log([1.0, 1.0, 2.0, 6.0, 3_628_800.0]))
