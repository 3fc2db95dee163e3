"""Special functions that stay finite, and have finite gradients, at extreme arguments."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

SOFTPLUS_IS_EXPONENTIAL_BELOW = -35.0
"""Below this, log(softplus(x)) equals x to the last bit of a double."""


def softplus(x: jax.Array) -> jax.Array:
    """log(1 + exp(x)). Three times faster on a CPU than ``jax.nn.softplus``, whose NaN handling blocks SIMD.

    ``where``, not ``maximum``: at x = 0, where regressions start, it takes the same side as the derivative of ``abs``.
    """
    return jnp.where(x < 0.0, 0.0, x) + jnp.log1p(jnp.exp(-jnp.abs(x)))


def log_softplus(x: jax.Array) -> jax.Array:
    """log(log(1 + exp(x))), equal to x far to the left where softplus itself underflows.

    The logarithm is guarded, not its argument, so that a caller who needs softplus(x) as well shares its evaluation.
    """
    is_left = x < SOFTPLUS_IS_EXPONENTIAL_BELOW
    return jnp.where(is_left, x, jnp.log(jnp.where(is_left, 1.0, softplus(x))))


LARGEST_LOG_INVERSE_SCALE = 300.0
"""The square of exp(300) still leaves room for any sum of squares below 1e47."""


def inverse_scale(log_scale: jax.Array) -> jax.Array:
    """exp(-log_scale), held at exp(300) where it would overflow: 0 * inf never turns a perfect fit into NaN."""
    return jnp.exp(jnp.minimum(-log_scale, LARGEST_LOG_INVERSE_SCALE))


LARGEST_EXPONENT = 300.0
"""Where :func:`bounded_exponential` leaves the curve: a sum of any number of rows stays finite."""


def bounded_exponential(x: jax.Array) -> jax.Array:
    """exp(x), continued as its tangent where it would overflow, so that it stays convex with a finite gradient."""
    below = jnp.minimum(x, LARGEST_EXPONENT)
    return jnp.exp(below) * (1.0 + (x - below))


SHIFT = 8
"""From here on Stirling's series with the terms below is exact to rounding."""
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def log_gamma(z: jax.Array) -> jax.Array:
    """log Gamma(z) for z > 0, by Stirling's series at z + 8 where z is below 8.

    Unlike ``jax.scipy.special.gammaln`` it is made of two logarithms and a few products, and so are its derivatives:
    value and slope take less than half as long, the second derivative, by which a mode is searched, a tenth.
    """
    is_small = z < SHIFT
    small, large = jnp.where(is_small, z, 1.0), jnp.where(is_small, z + SHIFT, z)
    product = math.prod((small + number for number in range(1, SHIFT)), start=small)
    inverse = 1.0 / large
    series = jnp.polyval(jnp.asarray(STIRLING[::-1], large.dtype), inverse * inverse) * inverse
    height = (large - 0.5) * jnp.log(large) - large + HALF_LOG_TWO_PI + series
    return height - jnp.where(is_small, jnp.log(product), 0.0)
