"""The scaled complementary error function, exp(x^2) erfc(x), and its derivatives of any order.

Tails of the normal distribution are made of it: censored, truncated and ordinal models. For x >= 0 its n-th
derivative is

    (-2)^n (2 / sqrt(pi)) * integral over t > 0 of t^n exp(-t^2 - 2 x t),

an integral of one sign, which falls like x^-(n+1). Times (1 + x)^(n+1) it is smooth in (x - 2) / (x + 2), and a
Chebyshev series of the integral, found once by quadrature, is exact to a few roundings everywhere. (The textbook's
2 x erfcx(x) - 2 / sqrt(pi) for the first derivative loses all digits as x grows, and the second one loses them twice as
fast.) For x < 0 it is 2 exp(x^2) minus its mirror image.
"""

from __future__ import annotations

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

NUM_TERMS = 34
CENTRE = 2.0
"""The x in the middle of the series."""
STEEPEST = -26.0
"""Derivatives further to the left, where the function is beyond 10^293, are those of this place: they stay finite, so
that a branch of a formula that is not taken has no infinite slope."""


def erfcx(x: jax.Array) -> jax.Array:
    """exp(x^2) erfc(x), differentiable as often as one likes."""
    return _derivative(0, jnp.asarray(x, float))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def _derivative(order: int, x: jax.Array) -> jax.Array:
    place = jnp.abs(x)
    towards = 1.0 / (1.0 + place)
    right = _series(order, place) * towards ** (order + 1)
    inside = x if order == 0 else jnp.maximum(x, STEEPEST)
    left = 2.0 * _polynomial(order, inside) * jnp.exp(inside**2) - (-1.0) ** order * right
    return jnp.where(x < 0.0, left, right)


@_derivative.defjvp
def _derivative_jvp(order: int, primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
    (x,), (tangent,) = primals, tangents
    return _derivative(order, x), tangent * _derivative(order + 1, x)


def _series(order: int, x: jax.Array) -> jax.Array:
    """Clenshaw's recurrence; infinity is the right end."""
    place = jnp.where(jnp.isinf(x), 1.0, (x - CENTRE) / (x + CENTRE))
    later, latest = jnp.zeros_like(place), jnp.zeros_like(place)
    *rest, first = _coefficients(order)[::-1]
    for coefficient in rest:
        later, latest = coefficient + 2.0 * place * later - latest, later
    return first + place * later - latest


@cache
def _coefficients(order: int) -> tuple[float, ...]:
    """Of the Chebyshev series of (1 + x)^(n+1) times the n-th derivative, for x >= 0."""

    def scaled(place: np.ndarray) -> np.ndarray:
        x = CENTRE * (1.0 + place) / (1.0 - place)
        return _integral(order, x)

    places = np.polynomial.chebyshev.chebpts1(NUM_TERMS)
    return tuple(np.polynomial.chebyshev.chebfit(places, scaled(places), NUM_TERMS - 1).tolist())


def _integral(order: int, x: np.ndarray) -> np.ndarray:
    """By Gauss-Legendre on panels of s = (1 + x) t, beyond which the integrand is below 10^-17 of its sum."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    edges = np.array([0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
    half = np.diff(edges)[:, None] / 2
    s = (edges[:-1, None] + half * (1.0 + nodes)).ravel()
    share = (half * weights).ravel()
    scale = 1.0 / (1.0 + x[:, None])
    log_integrand = -((s * scale) ** 2) - 2.0 * s * x[:, None] * scale
    integral: np.ndarray = (np.exp(log_integrand) * s**order) @ share * (-2.0) ** order * 2.0 / np.sqrt(np.pi)
    return integral


def _polynomial(order: int, x: jax.Array) -> jax.Array:
    """The n-th derivative of exp(x^2), without that factor."""
    current = np.polynomial.Polynomial([1.0])
    for _ in range(order):
        current = current.deriv() + np.polynomial.Polynomial([0.0, 2.0]) * current
    return jnp.polyval(jnp.asarray(current.coef[::-1]), x)
