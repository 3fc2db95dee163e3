"""Five families: log-densities of a response given its linear predictor, finite at extreme arguments.

With eta the linear predictor,

    gaussian           y ~ N(eta, sigma^2)
    t                  y ~ t_nu(eta, sigma)
    bernoulli          y ~ Bernoulli(logistic(eta))
    poisson            y ~ Poisson(exp(eta))
    negativebinomial   y ~ NB(mean mu = exp(eta), variance mu + mu^2 / alpha)

All are full densities. sigma, nu and alpha move as logarithms. Where exp(eta) would overflow it goes on as a straight
line, which keeps the log-density concave and every gradient finite.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.core.types import Key
from coreset_mcmc.models.special import bounded_exponential, inverse_scale, softplus

Logarithms = Mapping[str, jax.Array]
"""The logarithms of sigma, nu and alpha, as far as the family has them."""

LARGEST_RESIDUAL = 1e120
"""Its square, times the square of the largest inverse scale of a gradient, leaves room for a sum over all rows."""
LARGEST_LOG_ALPHA = 50.0
"""From far below this on, the negative binomial is a Poisson distribution to the last bit."""
LARGE_ALPHA = 100.0
"""From here on, Stirling's series to three terms is exact to rounding."""
LARGE_HALF_FREEDOM = 100.0
LARGEST_LOG_FREEDOM = 50.0


def bounded_residual(y: jax.Array, predicted: jax.Array, log_sigma: jax.Array) -> jax.Array:
    """(y - eta) / sigma, held where its square would overflow."""
    return jnp.clip((y - predicted) * inverse_scale(log_sigma), -LARGEST_RESIDUAL, LARGEST_RESIDUAL)


def gaussian(logarithms: Logarithms, predicted: jax.Array, y: jax.Array) -> jax.Array:
    """log N(y | eta, sigma^2)."""
    log_sigma = logarithms["sigma"]
    return -0.5 * bounded_residual(y, predicted, log_sigma) ** 2 - log_sigma - 0.5 * math.log(2.0 * math.pi)


def student_t(logarithms: Logarithms, predicted: jax.Array, y: jax.Array) -> jax.Array:
    """log t_nu(y | eta, sigma); the difference of two log-gamma functions by its series for large nu."""
    log_sigma = logarithms["sigma"]
    nu = jnp.exp(jnp.clip(logarithms["nu"], -LARGEST_LOG_FREEDOM, LARGEST_LOG_FREEDOM))
    residual = bounded_residual(y, predicted, log_sigma)
    height = log_gamma_half_step(0.5 * nu) - 0.5 * jnp.log(math.pi * nu) - log_sigma
    return height - 0.5 * (nu + 1.0) * jnp.log1p(residual**2 / nu)


def log_gamma_half_step(half: jax.Array) -> jax.Array:
    """log Gamma(h + 1/2) - log Gamma(h), without cancellation for large h."""
    is_large = half > LARGE_HALF_FREEDOM
    small, large = jnp.where(is_large, 1.0, half), jnp.where(is_large, half, LARGE_HALF_FREEDOM)
    series = 0.5 * jnp.log(large) - 1.0 / (8.0 * large) + 1.0 / (192.0 * large**3) - 1.0 / (640.0 * large**5)
    return jnp.where(is_large, series, gammaln(small + 0.5) - gammaln(small))


def bernoulli(logarithms: Logarithms, predicted: jax.Array, y: jax.Array) -> jax.Array:
    """Log-probability of y in {0, 1} with log-odds eta."""
    del logarithms
    return -softplus((1.0 - 2.0 * y) * predicted)


def poisson(logarithms: Logarithms, predicted: jax.Array, y: jax.Array) -> jax.Array:
    """log Poisson(y | exp(eta))."""
    del logarithms
    return y * predicted - bounded_exponential(predicted) - gammaln(y + 1.0)


def negative_binomial(logarithms: Logarithms, predicted: jax.Array, y: jax.Array) -> jax.Array:
    """log NB(y | mu, alpha) = D + y eta - (y + alpha) log(1 + mu / alpha) - log y!.

    D = log Gamma(y + alpha) - log Gamma(alpha) - y log alpha.
    """
    log_alpha = jnp.clip(logarithms["alpha"], -LARGEST_LOG_ALPHA, LARGEST_LOG_ALPHA)
    alpha = jnp.exp(log_alpha)
    excess = softplus(predicted - log_alpha)
    return rising_factorial_excess(y, alpha, log_alpha) + y * predicted - (y + alpha) * excess - gammaln(y + 1.0)


def rising_factorial_excess(y: jax.Array, alpha: jax.Array, log_alpha: jax.Array) -> jax.Array:
    """log Gamma(y + alpha) - log Gamma(alpha) - y log alpha, by Stirling's series for large alpha."""
    is_large = alpha > LARGE_ALPHA
    small, large = jnp.where(is_large, 1.0, alpha), jnp.where(is_large, alpha, LARGE_ALPHA)

    def correction(z: jax.Array) -> jax.Array:
        return 1.0 / (12.0 * z) - 1.0 / (360.0 * z**3) + 1.0 / (1260.0 * z**5)

    series = (y + large - 0.5) * jnp.log1p(y / large) - y + correction(y + large) - correction(large)
    direct = gammaln(y + small) - gammaln(small) - y * jnp.where(is_large, 0.0, log_alpha)
    return jnp.where(is_large, series, direct)


def draw_gaussian(key: Key, logarithms: Logarithms, predicted: jax.Array) -> jax.Array:
    """New responses of a gaussian regression."""
    return predicted + jnp.exp(logarithms["sigma"]) * jax.random.normal(key, predicted.shape)


def draw_student_t(key: Key, logarithms: Logarithms, predicted: jax.Array) -> jax.Array:
    """New responses of a t regression."""
    noise = jax.random.t(key, jnp.exp(logarithms["nu"]), predicted.shape)
    return predicted + jnp.exp(logarithms["sigma"]) * noise


def draw_bernoulli(key: Key, logarithms: Logarithms, predicted: jax.Array) -> jax.Array:
    """New responses of a logistic regression, as 0 or 1."""
    del logarithms
    return jax.random.bernoulli(key, jax.nn.sigmoid(predicted)).astype(jnp.int32)


def draw_poisson(key: Key, logarithms: Logarithms, predicted: jax.Array) -> jax.Array:
    """New counts; as floats, which hold counts beyond the largest 32-bit integer."""
    del logarithms
    return _counts(key, jnp.exp(jnp.minimum(predicted, LARGEST_COUNT_EXPONENT)))


LARGEST_COUNT_EXPONENT = 40.0
"""Counts of exp(40) and more are no data of anyone; JAX draws them from 64-bit integers."""


def _counts(key: Key, mean: jax.Array) -> jax.Array:
    return jax.random.poisson(key, mean, dtype=jnp.int64).astype(mean.dtype)


def draw_negative_binomial(key: Key, logarithms: Logarithms, predicted: jax.Array) -> jax.Array:
    """Counts whose Poisson mean varies as a Gamma variable with shape alpha."""
    gamma_key, poisson_key = jax.random.split(key)
    log_alpha = jnp.clip(logarithms["alpha"], -LARGEST_LOG_ALPHA, LARGEST_LOG_ALPHA)
    log_gamma = jax.random.loggamma(gamma_key, jnp.exp(log_alpha), predicted.shape)
    log_mean = predicted + log_gamma - log_alpha
    return _counts(poisson_key, jnp.exp(jnp.minimum(log_mean, LARGEST_COUNT_EXPONENT)))


def mean_of_location(logarithms: Logarithms, predicted: jax.Array) -> jax.Array:
    """The response is spread evenly around the predictor."""
    del logarithms
    return predicted


def mean_of_logit(logarithms: Logarithms, predicted: jax.Array) -> jax.Array:
    """The probability of a one."""
    del logarithms
    return jax.nn.sigmoid(predicted)


def mean_of_log(logarithms: Logarithms, predicted: jax.Array) -> jax.Array:
    """The mean of a count."""
    del logarithms
    return jnp.exp(jnp.minimum(predicted, LARGEST_COUNT_EXPONENT))


@dataclass(frozen=True)
class Family:
    """A distribution of the response and what goes with it."""

    name: str
    link: str
    log_density: Callable[[Logarithms, jax.Array, jax.Array], jax.Array]
    draw: Callable[[Key, Logarithms, jax.Array], jax.Array]
    expected: Callable[[Logarithms, jax.Array], jax.Array]
    """What new responses are on average."""
    positive: tuple[str, ...] = ()
    """Parameters beside the predictor, all above zero."""

    @property
    def has_scale(self) -> bool:
        """Whether the response is measured on a scale of its own, and is standardised with the predictors."""
        return "sigma" in self.positive


FAMILIES = {
    family.name: family
    for family in (
        Family("gaussian", "identity", gaussian, draw_gaussian, mean_of_location, ("sigma",)),
        Family("bernoulli", "logit", bernoulli, draw_bernoulli, mean_of_logit),
        Family("poisson", "log", poisson, draw_poisson, mean_of_log),
        Family("negativebinomial", "log", negative_binomial, draw_negative_binomial, mean_of_log, ("alpha",)),
        Family("t", "identity", student_t, draw_student_t, mean_of_location, ("sigma", "nu")),
    )
}


def family_named(name: str) -> Family:
    """A family by one of its names; spaces, hyphens, underscores and capitals do not matter."""
    plain = "".join(character for character in str(name).lower() if character.isalnum())
    plain = {"studentt": "t", "normal": "gaussian", "logistic": "bernoulli"}.get(plain, plain)
    if plain not in FAMILIES:
        raise InputError(
            "family",
            got=repr(name),
            expected=f"one of {', '.join(FAMILIES)}",
            fix="Other families come from Bambi (cm.from_bambi) or a cm.Model of your own.",
        )
    return FAMILIES[plain]
