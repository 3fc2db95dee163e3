"""exp(x^2) erfc(x) and its derivatives, in both tails."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import integrate, special

from coreset_mcmc.models.scaled_erfc import STEEPEST, erfcx

PLACES = np.concatenate([np.linspace(-26.0, 30.0, 2_001), 10.0 ** np.linspace(-300, 300, 201)])


def derivative(order: int, x: float) -> float:
    """By the integral that defines it, for x >= 0."""
    scaled, _ = integrate.quad(
        lambda s: s**order * np.exp(-((s / (1 + x)) ** 2) - 2 * s * x / (1 + x)),
        0,
        60,
        epsabs=0,
        epsrel=1e-13,
        limit=500,
    )
    return float((-2) ** order * 2 / np.sqrt(np.pi) * scaled / (1 + x) ** (order + 1))


def test_values_are_those_of_scipy():
    with jax.enable_x64(True):
        np.testing.assert_allclose(jax.jit(erfcx)(PLACES), special.erfcx(PLACES), rtol=1e-13)
        assert float(erfcx(np.inf)) == 0.0
        assert np.isnan(float(erfcx(np.nan)))
        assert float(erfcx(-30.0)) == np.inf


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_keep_their_digits_far_to_the_right(order):
    """The textbook's recurrence has lost all of them at 10^8."""
    function = erfcx
    for _ in range(order):
        function = jax.grad(function)
    with jax.enable_x64(True):
        for x in (0.0, 0.7, 3.0, 30.0, 1e3, 1e5, 1e8):
            np.testing.assert_allclose(function(x), derivative(order, x), rtol=2e-13)


def test_derivatives_to_the_left_are_those_of_the_mirror_image():
    with jax.enable_x64(True):
        for x in (-0.3, -2.0, -9.0):
            first, second = jax.grad(erfcx)(x), jax.grad(jax.grad(erfcx))(x)
            np.testing.assert_allclose(first, 2 * x * special.erfcx(x) - 2 / np.sqrt(np.pi), rtol=1e-13)
            np.testing.assert_allclose(second, 2 * x * first + 2 * special.erfcx(x), rtol=1e-13)
        assert np.isfinite(jax.grad(erfcx)(STEEPEST - 10.0))
