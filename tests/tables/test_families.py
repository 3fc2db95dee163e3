"""Densities against SciPy, and finite gradients where exponentials overflow."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.tables.families import FAMILIES, Family, family_named

ETA = np.array([-30.0, -3.0, -0.5, 0.0, 0.7, 4.0])
COUNTS = np.array([0.0, 1.0, 3.0, 10.0, 250.0, 40.0])
REALS = np.array([-31.0, 2.0, 0.5, 0.0, 1e3, 3.5])


def values(family: Family, eta, y, **positive: float) -> np.ndarray:
    with jax.enable_x64(True):
        logarithms = {name: jnp.log(jnp.asarray(value)) for name, value in positive.items()}
        return np.asarray(family.log_density(logarithms, jnp.asarray(eta), jnp.asarray(y)))


@pytest.mark.parametrize("sigma", [1e-3, 0.7, 50.0])
def test_gaussian(sigma):
    expected = scipy.stats.norm(ETA, sigma).logpdf(REALS)
    np.testing.assert_allclose(values(FAMILIES["gaussian"], ETA, REALS, sigma=sigma), expected, rtol=1e-12)


@pytest.mark.parametrize("nu", [0.3, 4.0, 150.0, 1e5])
@pytest.mark.parametrize("sigma", [0.1, 3.0])
def test_student_t(nu, sigma):
    expected = scipy.stats.t(nu, ETA, sigma).logpdf(REALS)
    np.testing.assert_allclose(values(FAMILIES["t"], ETA, REALS, nu=nu, sigma=sigma), expected, rtol=1e-9)


def test_student_t_with_very_many_degrees_of_freedom_is_gaussian():
    y = ETA + np.linspace(-4, 4, 6)
    limit = scipy.stats.norm(ETA, 1.0).logpdf(y)
    np.testing.assert_allclose(values(FAMILIES["t"], ETA, y, nu=1e16, sigma=1.0), limit, rtol=1e-12)


def test_bernoulli():
    for outcome in (0.0, 1.0):
        expected = scipy.stats.bernoulli.logpmf(outcome, 1 / (1 + np.exp(-ETA)))
        found = values(FAMILIES["bernoulli"], ETA, np.full(6, outcome))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)


def test_poisson():
    expected = scipy.stats.poisson(np.exp(ETA)).logpmf(COUNTS)
    np.testing.assert_allclose(values(FAMILIES["poisson"], ETA, COUNTS), expected, rtol=1e-12)


@pytest.mark.parametrize("alpha", [1e-3, 0.8, 30.0, 99.0, 101.0, 1e4])
def test_negative_binomial(alpha):
    """SciPy rounds alpha / (alpha + mean) to 1 where the mean is tiny, so an absolute error is allowed there."""
    mean = np.exp(ETA)
    expected = scipy.stats.nbinom(alpha, alpha / (alpha + mean)).logpmf(COUNTS)
    found = values(FAMILIES["negativebinomial"], ETA, COUNTS, alpha=alpha)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_negative_binomial_with_little_dispersion_is_poisson():
    expected = scipy.stats.poisson(np.exp(ETA)).logpmf(COUNTS)
    found = values(FAMILIES["negativebinomial"], ETA, COUNTS, alpha=1e16)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


@pytest.mark.full
def test_negative_binomial_is_smooth_where_the_series_takes_over():
    family = FAMILIES["negativebinomial"]
    with jax.enable_x64(True):
        slope = jax.grad(lambda u: family.log_density({"alpha": u}, jnp.float64(2.0), jnp.float64(9.0)))
        below, above = (float(slope(jnp.log(100.0) + step)) for step in (-1e-9, 1e-9))
    assert below == pytest.approx(above, rel=1e-6)


@pytest.mark.parametrize("name", list(FAMILIES))
@pytest.mark.parametrize("eta", [-1e5, -800.0, 0.0, 800.0, 1e5])
@pytest.mark.parametrize("logarithm", [-900.0, 0.0, 900.0])
def test_no_nan_and_finite_gradients_at_extremes(name, eta, logarithm):
    family = FAMILIES[name]
    for y in (0.0, 1.0):
        with jax.enable_x64(True):
            logarithms = {key: jnp.float64(logarithm) for key in family.positive}
            value, gradient = jax.value_and_grad(family.log_density, argnums=(0, 1))(
                logarithms, jnp.float64(eta), jnp.float64(y)
            )
            assert value < jnp.inf
            assert all(bool(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(gradient)), (value, gradient)


@pytest.mark.full
@pytest.mark.parametrize("name", list(FAMILIES))
def test_draws_have_the_right_mean_and_spread(name):
    """Within five standard errors: one of the ten comparisons is off by chance once in 10^5 runs."""
    family, count = FAMILIES[name], 20_000
    positive = {"sigma": 0.5, "nu": 8.0, "alpha": 3.0}
    mean = {"identity": 0.4, "logit": 1 / (1 + np.exp(-0.4)), "log": np.exp(0.4)}[family.link]
    variance = {
        "gaussian": 0.25,
        "t": 0.25 * 8 / 6,
        "bernoulli": mean * (1 - mean),
        "poisson": mean,
        "negativebinomial": mean + mean**2 / 3,
    }[name]
    with jax.enable_x64(True):
        logarithms = {key: jnp.log(positive[key]) for key in family.positive}
        drawn = np.asarray(family.draw(jax.random.key(1), logarithms, jnp.full(count, 0.4)), float)
    assert drawn.mean() == pytest.approx(mean, abs=5 * np.sqrt(variance / count))
    squares = (drawn - mean) ** 2
    assert squares.mean() == pytest.approx(variance, abs=5 * squares.std() / np.sqrt(count))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("gaussian", "gaussian"),
        ("negative-binomial", "negativebinomial"),
        ("negative binomial", "negativebinomial"),
        ("NegativeBinomial", "negativebinomial"),
        ("student-t", "t"),
        ("t", "t"),
    ],
)
def test_names(given, name):
    assert family_named(given).name == name


def test_unknown_family():
    with pytest.raises(InputError, match=r"family: got 'weibull'; expected one of gaussian, bernoulli"):
        family_named("weibull")
