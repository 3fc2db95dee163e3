"""Densities against SciPy, expected and new responses, and finite gradients where exponentials overflow."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.tables.families import FAMILIES, Family, family_named
from coreset_mcmc.tables.families.family import ORDERED, UNIT, steps

ETA = np.array([-30.0, -3.0, -0.5, 0.0, 0.7, 4.0])
COUNTS = np.array([0.0, 1.0, 3.0, 10.0, 250.0, 40.0])
REALS = np.array([-31.0, 2.0, 0.5, 0.0, 1e3, 3.5])
AMOUNTS = np.array([1e-9, 2.0, 0.5, 0.01, 1e3, 3.5])
TRIALS = np.array([1.0, 4.0, 3.0, 12.0, 300.0, 50.0])
THRESHOLDS = np.array([-1.5, 0.2, 0.9])


def unconstrained(family: Family, **values) -> dict:
    found = {}
    for parameter in family.parameters:
        value = np.asarray(values[parameter.name], float)
        if parameter.support == ORDERED:
            found[parameter.name] = jnp.asarray(steps(value))
        else:
            logit = np.log(value) - np.log1p(-value) if parameter.support == UNIT else np.log(value)
            found[parameter.name] = jnp.asarray(logit)
    return found


def values(family: Family, eta, y, extras=None, **parameters) -> np.ndarray:
    with jax.enable_x64(True):
        batch = {"y": jnp.asarray(y), **{key: jnp.asarray(value) for key, value in (extras or {}).items()}}
        return np.asarray(family.log_density(unconstrained(family, **parameters), jnp.asarray(eta), batch))


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


def probability(link: str, eta: np.ndarray) -> np.ndarray:
    return {
        "logit": scipy.special.expit,
        "probit": scipy.special.ndtr,
        "cloglog": lambda at: -np.expm1(-np.exp(at)),
    }[link](eta)


LINKS = ["logit", "probit", "cloglog"]


@pytest.mark.parametrize("link", LINKS)
def test_bernoulli(link):
    eta = ETA if link == "logit" else np.clip(ETA, -5, 2.5)
    for outcome in (0.0, 1.0):
        expected = scipy.stats.bernoulli.logpmf(outcome, probability(link, eta))
        found = values(family_named("bernoulli", link), eta, np.full(6, outcome))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("link", LINKS)
def test_binomial(link):
    """Probabilities of the other links come from SciPy; Bambi's probit has a square root of 2 in single precision."""
    eta, y = np.clip(ETA, -5, 2.5), np.array([1.0, 0.0, 3.0, 4.0, 299.0, 50.0])
    expected = scipy.stats.binom(TRIALS, probability(link, eta)).logpmf(y)
    found = values(family_named("binomial", link), eta, y, {"trials": TRIALS})
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_poisson():
    expected = scipy.stats.poisson(np.exp(ETA)).logpmf(COUNTS)
    np.testing.assert_allclose(values(FAMILIES["poisson"], ETA, COUNTS), expected, rtol=1e-12, atol=1e-14)


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
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-14)


@pytest.mark.full
def test_negative_binomial_is_smooth_where_the_series_takes_over():
    family = FAMILIES["negativebinomial"]
    with jax.enable_x64(True):
        slope = jax.grad(lambda u: family.log_density({"alpha": u}, jnp.float64(2.0), {"y": jnp.float64(9.0)}))
        below, above = (float(slope(jnp.log(100.0) + step)) for step in (-1e-9, 1e-9))
    assert below == pytest.approx(above, rel=1e-6)


@pytest.mark.parametrize("name", ["poisson", "negativebinomial"])
@pytest.mark.parametrize("psi", [0.05, 0.6, 0.99])
def test_more_zeros_or_fewer(name, psi):
    eta, alpha = np.clip(ETA, -20, 4), 0.8
    mean = np.exp(eta)
    count = scipy.stats.poisson(mean) if name == "poisson" else scipy.stats.nbinom(alpha, alpha / (alpha + mean))
    inflated = np.log(psi * count.pmf(COUNTS) + (1 - psi) * (COUNTS == 0))
    found = values(FAMILIES[f"zero_inflated_{name}"], eta, COUNTS, psi=psi, alpha=alpha)
    np.testing.assert_allclose(found, np.where(np.isfinite(inflated), inflated, found), rtol=1e-9, atol=1e-14)
    above_zero = count.logpmf(COUNTS) + np.log(psi) - np.log(-np.expm1(count.logpmf(0)))
    hurdle = np.where(COUNTS == 0, np.log1p(-psi), above_zero)
    found = values(FAMILIES[f"hurdle_{name}"], eta, COUNTS, psi=psi, alpha=alpha)
    np.testing.assert_allclose(found, hurdle, rtol=1e-7)


@pytest.mark.parametrize("alpha", [0.05, 1.0, 99.0, 101.0, 1e5])
@pytest.mark.parametrize("link", ["log", "inverse"])
def test_gamma(link, alpha):
    eta = np.clip(ETA, -5, 4) if link == "log" else np.array([0.01, 0.3, 1.0, 2.0, 8.0, 100.0])
    mean = np.exp(eta) if link == "log" else 1.0 / eta
    y = mean * np.array([0.5, 0.9, 1.0, 1.1, 1.5, 0.99])
    expected = scipy.stats.gamma(alpha, scale=mean / alpha).logpdf(y)
    np.testing.assert_allclose(values(family_named("gamma", link), eta, y, alpha=alpha), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("kappa", [0.1, 5.0, 1e4])
@pytest.mark.parametrize("link", LINKS)
def test_beta(link, kappa):
    eta, y = np.array([-2.0, -0.5, 0.0, 0.3, 0.7, 1.2]), np.array([0.1, 0.3, 0.5, 0.55, 0.7, 0.99])
    mean = probability(link, eta)
    expected = scipy.stats.beta(mean * kappa, (1 - mean) * kappa).logpdf(y)
    np.testing.assert_allclose(values(family_named("beta", link), eta, y, kappa=kappa), expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("alpha", [0.4, 1.0, 3.0])
def test_lifetimes_that_may_be_censored(alpha):
    eta, status = np.clip(ETA, -3, 5), {"censored": np.array([0.0, 1.0] * 3)}
    scale = np.exp(eta) / scipy.special.gamma(1 + 1 / alpha)
    law = scipy.stats.weibull_min(alpha, scale=scale)
    y = scale * np.array([0.1, 0.5, 1.0, 1.2, 2.0, 0.01])
    found = values(FAMILIES["weibull"], eta, y, status, alpha=alpha)
    np.testing.assert_allclose(found, np.where(status["censored"] > 0, law.logsf(y), law.logpdf(y)), rtol=1e-9)
    np.testing.assert_allclose(values(FAMILIES["weibull"], eta, y, alpha=alpha), law.logpdf(y), rtol=1e-9)
    law = scipy.stats.expon(scale=np.exp(eta))
    found = values(FAMILIES["exponential"], eta, y, status)
    np.testing.assert_allclose(found, np.where(status["censored"] > 0, law.logsf(y), law.logpdf(y)), rtol=1e-9)


def test_cumulative():
    below = scipy.special.expit(THRESHOLDS - ETA[:, None])
    every = np.diff(np.concatenate([np.zeros((6, 1)), below, np.ones((6, 1))], axis=1), axis=1)
    y = np.array([0.0, 0.0, 1.0, 2.0, 3.0, 3.0])
    expected = np.log(every[np.arange(6), y.astype(int)])
    found = values(FAMILIES["cumulative"], ETA, y, threshold=THRESHOLDS)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_categorical():
    eta, y = np.stack([ETA, -0.5 * ETA], axis=1), np.array([0.0, 1.0, 2.0, 0.0, 1.0, 2.0])
    every = scipy.special.log_softmax(np.concatenate([np.zeros((6, 1)), eta], axis=1), axis=1)
    np.testing.assert_allclose(
        values(FAMILIES["categorical"], eta, y), every[np.arange(6), y.astype(int)], rtol=1e-9, atol=1e-14
    )


RESPONSES = {"gamma": (1e-9, 1.0), "exponential": (1e-9, 1.0), "weibull": (1e-9, 1.0), "beta": (1e-9, 0.5)}
EVERY = [(name, link) for name, family in FAMILIES.items() for link in family.links]


@pytest.mark.parametrize(("name", "link"), EVERY)
@pytest.mark.parametrize("eta", [-1e5, -800.0, 0.0, 800.0, 1e5])
@pytest.mark.parametrize("logarithm", [-900.0, 0.0, 900.0])
def test_no_nan_and_finite_gradients_at_extremes(name, link, eta, logarithm):
    family = family_named(name, link)
    with jax.enable_x64(True):
        parameters = {
            parameter.name: jnp.full(3 if parameter.support == ORDERED else (), logarithm)
            for parameter in family.parameters
        }
        at = jnp.asarray([eta, -eta]) if name == "categorical" else jnp.asarray(eta)
        for y in RESPONSES.get(name, (0.0, 1.0)):
            batch = {"y": jnp.asarray(y), "trials": jnp.asarray(3.0), "censored": jnp.asarray(y)}
            value, gradient = jax.value_and_grad(family.log_density, argnums=(0, 1))(parameters, at, batch)
            assert value < jnp.inf
            assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(gradient)), (value, gradient)


@pytest.mark.full
@pytest.mark.parametrize(("name", "link"), EVERY)
def test_new_responses_have_the_expected_mean_and_the_density(name, link):
    """Means within five standard errors, and mean log-densities those of numbers drawn by another way: entropy by
    counting or by a grid. One of some thirty comparisons is off by chance once in 10^4 runs.
    """
    family, count = family_named(name, link), 20_000
    given = {"sigma": 0.5, "nu": 8.0, "alpha": 3.0, "kappa": 5.0, "psi": 0.6, "threshold": THRESHOLDS}
    eta = np.full((count, 2), [0.4, -0.3]) if name == "categorical" else np.full(count, 0.4)
    with jax.enable_x64(True):
        parameters = unconstrained(family, **given)
        batch = {"trials": jnp.full(count, 6.0)}
        drawn = np.asarray(family.draw(jax.random.key(1), parameters, jnp.asarray(eta), batch), float)
        mean = np.asarray(family.expected(parameters, jnp.asarray(eta)))[0]
        grid = np.arange(0.0, 60.0) if name not in CONTINUOUS else CONTINUOUS[name]
        if family.takes_levels:
            grid = np.arange(float(len(mean)))
        if name in ("bernoulli", "binomial"):
            grid = np.arange(2.0 if name == "bernoulli" else 7.0)
        rows = {"y": jnp.asarray(grid), "trials": jnp.full(len(grid), 6.0)}
        density = np.exp(np.asarray(family.log_density(parameters, jnp.asarray(eta[: len(grid)]), rows)))
    width = np.gradient(grid) if name in CONTINUOUS else 1.0
    assert np.sum(density * width) == pytest.approx(1.0, abs=2e-3)
    if family.takes_levels:
        shares = np.bincount(drawn.astype(int), minlength=len(mean)) / count
        np.testing.assert_allclose(shares, mean, atol=5 * np.sqrt(0.25 / count))
        np.testing.assert_allclose(density, mean, rtol=1e-9)
        return
    scaled = drawn / 6.0 if name == "binomial" else drawn
    assert scaled.mean() == pytest.approx(float(mean), abs=5 * scaled.std() / np.sqrt(count))
    squares = np.sum(density * width * (grid / 6.0 if name == "binomial" else grid) ** 2)
    assert np.mean(scaled**2) == pytest.approx(squares, abs=5 * np.std(scaled**2) / np.sqrt(count) + 3e-3 * squares)


LINE = np.linspace(-30.0, 30.0, 20_000)
HALF_LINE = np.geomspace(1e-6, 80.0, 20_000)
CONTINUOUS = {
    "gaussian": LINE,
    "t": LINE,
    "gamma": HALF_LINE,
    "exponential": HALF_LINE,
    "weibull": HALF_LINE,
    "beta": np.linspace(1e-7, 1 - 1e-7, 20_000),
}


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("gaussian", "gaussian"),
        ("negative-binomial", "negativebinomial"),
        ("negative binomial", "negativebinomial"),
        ("NegativeBinomial", "negativebinomial"),
        ("student-t", "t"),
        ("t", "t"),
        ("Zero-inflated Poisson", "zero_inflated_poisson"),
        ("zip", "zero_inflated_poisson"),
        ("ordinal", "cumulative"),
        ("softmax", "categorical"),
    ],
)
def test_names(given, name):
    assert family_named(given).name == name


@pytest.mark.parametrize(("name", "link"), EVERY)
def test_links_are_stated(name, link):
    assert family_named(name, link).link == link
    assert FAMILIES[name].link == FAMILIES[name].links[0]


def test_unknown_family():
    with pytest.raises(InputError, match=r"family: got 'tweedie'; expected one of gaussian, bernoulli"):
        family_named("tweedie")
    with pytest.raises(InputError, match=r"family: got 'lognormal'.*Write it as gaussian with np.log\(y\)"):
        family_named("lognormal")
