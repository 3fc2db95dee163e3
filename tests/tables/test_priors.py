"""Prior densities against SciPy, in standardised units, and what cannot be read."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.tables.families.family import POSITIVE, UNIT
from coreset_mcmc.tables.priors import LINE, Prior, in_words, joint_log_density, read_prior

WHOLE_LINE = {
    "Normal(1, 2.5)": scipy.stats.norm(1, 2.5),
    "StudentT(3, -1, 2)": scipy.stats.t(3, -1, 2),
    "Cauchy(0.5, 2)": scipy.stats.cauchy(0.5, 2),
    "Laplace(1, 0.5)": scipy.stats.laplace(1, 0.5),
}
HALF_LINE = {
    "HalfNormal(2)": scipy.stats.halfnorm(scale=2),
    "HalfCauchy(1.5)": scipy.stats.halfcauchy(scale=1.5),
    "Exponential(3)": scipy.stats.expon(scale=1 / 3),
    "Gamma(2, 0.1)": scipy.stats.gamma(2, scale=10),
}


def density_of(prior: Prior, at: np.ndarray) -> np.ndarray:
    with jax.enable_x64(True):
        return np.asarray(prior.log_density(jnp.asarray(at)))


@pytest.mark.parametrize("text", list(WHOLE_LINE))
@pytest.mark.parametrize("unit", [1.0, 0.02, 30.0])
def test_priors_of_coefficients(text, unit):
    """value = unit * z, so the density of z is that of the value times the unit."""
    z = np.array([-3.0, 0.0, 0.4, 10.0])
    prior = read_prior(text, "prior of x", LINE).in_units(unit)
    np.testing.assert_allclose(density_of(prior, z), WHOLE_LINE[text].logpdf(unit * z) + np.log(unit), rtol=1e-12)


@pytest.mark.parametrize("text", list(HALF_LINE))
@pytest.mark.parametrize("unit", [1.0, 0.02, 300.0])
def test_priors_of_positive_parameters(text, unit):
    """In u = log z the density has the Jacobian z."""
    z = np.array([1e-3, 0.4, 1.0, 10.0])
    prior = read_prior(text, "prior of sigma", POSITIVE).in_units(unit)
    expected = HALF_LINE[text].logpdf(unit * z) + np.log(unit) + np.log(z)
    np.testing.assert_allclose(density_of(prior, np.log(z)), expected, rtol=1e-12)


def test_priors_of_probabilities():
    """In u = logit z the density has the Jacobian z (1 - z)."""
    z = np.array([1e-3, 0.4, 0.9])
    prior = read_prior("Beta(2, 3.5)", "prior of psi", UNIT)
    expected = scipy.stats.beta(2, 3.5).logpdf(z) + np.log(z) + np.log1p(-z)
    np.testing.assert_allclose(density_of(prior, np.log(z / (1 - z))), expected, rtol=1e-12)


def test_priors_of_levels_are_named():
    few = [Prior("Normal", (0.0, width)) for width in (3.0, 1.0, 2.0)]
    assert in_words(few, ["b", "c", "d"]) == "b: Normal(0, 3); c: Normal(0, 1); d: Normal(0, 2)"
    assert in_words(few[:1] * 3, ["b", "c", "d"]) == "Normal(0, 3)"
    many = in_words(few * 10, [f"level {number}" for number in range(30)])
    assert many == "30 levels, from level 1: Normal(0, 1) to level 27: Normal(0, 3)"


def test_half_student_t_is_twice_student_t():
    z = np.array([1e-3, 0.4, 10.0])
    prior = read_prior("HalfStudentT(4, 2)", "prior of sigma", POSITIVE)
    np.testing.assert_allclose(
        density_of(prior, np.log(z)), np.log(2) + scipy.stats.t(4, 0, 2).logpdf(z) + np.log(z), rtol=1e-12
    )


def test_flat_is_flat():
    assert density_of(read_prior("Flat", "x", LINE), np.array(1e9)) == 0
    assert density_of(read_prior("Uniform", "sigma", POSITIVE), np.array(2.0)) == 2.0


def test_several_kinds_at_once():
    priors = [Prior("Normal", (0.0, 1.0)), Prior("Laplace", (1.0, 2.0)), Prior("Normal", (2.0, 3.0)), Prior("Flat")]
    z = np.array([0.3, -1.0, 5.0, 7.0])
    with jax.enable_x64(True):
        total = float(joint_log_density(priors, jnp.asarray(z)))
    parts = [scipy.stats.norm(0, 1), scipy.stats.laplace(1, 2), scipy.stats.norm(2, 3)]
    assert total == pytest.approx(sum(part.logpdf(value) for part, value in zip(parts, z, strict=False)), rel=1e-12)


@pytest.mark.parametrize("text", [*WHOLE_LINE, *HALF_LINE, "HalfStudentT(4, 2)"])
@pytest.mark.parametrize("at", [-1e6, -800.0, 0.0, 800.0, 1e6])
def test_finite_gradients_far_out(text, at):
    prior = read_prior(text, "prior", LINE if text in WHOLE_LINE else POSITIVE)
    with jax.enable_x64(True):
        value, slope = jax.value_and_grad(prior.log_density)(jnp.float64(at))
    assert np.isfinite(value)
    assert np.isfinite(slope)


def test_named_numbers_and_signs():
    assert read_prior("Normal(mu=-1, sigma=+2e-1)", "x", LINE) == Prior("Normal", (-1.0, 0.2))
    assert read_prior(" Cauchy(0, beta=2) ", "x", LINE) == Prior("Cauchy", (0.0, 2.0))


def test_words_are_read_back():
    prior = Prior("StudentT", (3.0, 0.0, 2.5))
    assert str(prior) == "StudentT(3, 0, 2.5)"
    assert read_prior(str(prior), "x", LINE) == prior
    assert str(Prior("HalfFlat")) == "Flat"


@pytest.mark.parametrize(
    ("text", "support", "message"),
    [
        ("Normal(0, -1)", LINE, r"sigma = -1 in 'Normal\(0, -1\)'; expected a finite number above zero"),
        ("Normal(0, 0)", LINE, "sigma = 0"),
        ("Normal(0)", LINE, r"expected Normal\(mu, sigma\), all of its numbers"),
        ("Normal(0, 1, 2)", LINE, r"expected Normal\(mu, sigma\)"),
        ("Normal(0, tau=1)", LINE, r"expected Normal\(mu, sigma\)"),
        ("Normal(0, 1e999)", LINE, "sigma = inf"),
        ("Normal", LINE, "all of its numbers"),
        ("Beta(1, 1)", LINE, "a distribution over all numbers: Normal, StudentT"),
        ("HalfNormal(1)", LINE, "a distribution over all numbers"),
        ("HalfFlat", LINE, "a distribution over all numbers"),
        ("Normal(0, 1)", POSITIVE, "positive numbers, because the parameter is positive: HalfNormal"),
        ("Normal(0, 1", LINE, r"expected text such as 'Normal\(0, 2.5\)'"),
        ("Normal(0, __import__('os'))", LINE, "expected text such as"),
        ("Normal(0, 'a')", LINE, "expected text such as"),
        ("Normal(0, True)", LINE, "expected text such as"),
        ("a.Normal(0, 1)", LINE, "expected text such as"),
        ("1 + 1", LINE, "expected text such as"),
        ("Normal(*[0, 1])", LINE, "expected text such as"),
        ("Normal(**{})", LINE, "expected text such as|all of its numbers"),
        (2.5, LINE, "expected text such as"),
        ("", LINE, "expected text such as"),
        ("Normal(0, 1)", UNIT, "numbers between 0 and 1, because the parameter is a probability: Beta"),
        ("Beta(0, 1)", UNIT, r"alpha = 0 in 'Beta\(0, 1\)'; expected a finite number above zero"),
    ],
)
def test_what_cannot_be_read(text, support, message):
    with pytest.raises(InputError, match=message):
        read_prior(text, "prior of x", support)


def test_a_number_too_large_for_a_float():
    with pytest.raises(InputError, match="finite number"):
        read_prior(f"Normal(0, 1{'0' * 400})", "prior of x", LINE)


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.sampled_from(["Normal", "Flat", "(", ")", ",", "0", "1e9", "-", "=", "sigma", "*", "a"])).map("".join)
)
def test_any_text_is_a_prior_or_refused(text):
    try:
        prior = read_prior(text, "prior of x", LINE)
    except InputError:
        return
    assert read_prior(str(prior), "prior of x", LINE) == prior
