"""A Gaussian factor of a coreset posterior: b'delta - delta' P delta / 2 with delta = theta - c.

It carries what a few weighted rows need not explain: with b and P such that the gradient and the Hessian of the coreset
log-likelihood at the centre c equal those of all rows, the rows are left with what an expansion to second order leaves
of them. P is positive semi-definite, so that the factor never grows without bound except along b.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.types import Position, pytree


@pytree
@dataclass(frozen=True)
class GaussianTerm:
    """Three arrays for the flattened position, whose leaves are in the order of the sorted keys of its tree."""

    centre: Any
    """c (d,)."""
    slope: Any
    """b (d,)."""
    precision: Any
    """P (d, d)."""

    def arrays(self) -> dict[str, np.ndarray]:
        """By the names of the fields."""
        return {item.name: np.asarray(getattr(self, item.name)) for item in fields(self)}

    def __add__(self, other: GaussianTerm) -> GaussianTerm:
        """The sum of both, up to a constant, around the centre of this one."""
        shift = self.centre - other.centre
        slope = self.slope + other.slope - other.precision @ shift
        return GaussianTerm(self.centre, slope, self.precision + other.precision)

    def times(self, factor: float) -> GaussianTerm:
        """So many times this one."""
        return GaussianTerm(self.centre, factor * self.slope, factor * self.precision)

    def log_density(self, position: Position) -> jax.Array:
        """Of one position."""
        delta = ravel_pytree(position)[0] - self.centre
        result: jax.Array = delta @ self.slope - half_square(self.precision, delta)
        return result

    def along(self, position: Position, direction: Position) -> Callable[[jax.Array], jax.Array]:
        """The same on the line ``position + t * direction``: a parabola in t."""
        delta, step = ravel_pytree(position)[0] - self.centre, ravel_pytree(direction)[0]
        pulled = self.precision @ step
        constant = self.log_density(position)
        slope, curvature = step @ self.slope - delta @ pulled, step @ pulled
        return lambda t: constant + t * slope - 0.5 * t**2 * curvature

    def at(self, flat: np.ndarray) -> np.ndarray:
        """Of flat positions (K, d), on the host."""
        delta = np.asarray(flat) - np.asarray(self.centre)
        pulled = delta @ np.asarray(self.precision)
        result: np.ndarray = delta @ np.asarray(self.slope) - 0.5 * np.sum(pulled * delta, axis=1)
        return result


@jax.custom_jvp
def half_square(precision: jax.Array, delta: jax.Array) -> jax.Array:
    """delta' P delta / 2, with a gradient P delta for which one product with a symmetric P does; not two, or three."""
    return 0.5 * delta @ (precision @ delta)


def _half_square_jvp(primals: tuple[Any, Any], tangents: tuple[Any, Any]) -> tuple[Any, Any]:
    (precision, delta), (of_precision, of_delta) = primals, tangents
    pulled = precision @ delta
    change = jnp.zeros(()) if isinstance(of_delta, SymbolicZero) else pulled @ of_delta
    if not isinstance(of_precision, SymbolicZero):
        change = change + 0.5 * delta @ (of_precision @ delta)
    return 0.5 * delta @ pulled, change


half_square.defjvp(_half_square_jvp, symbolic_zeros=True)


def no_term(num_coordinates: int) -> GaussianTerm:
    """One that says nothing, of the right shape."""
    nothing = np.zeros(num_coordinates)
    return GaussianTerm(nothing, nothing, np.zeros((num_coordinates, num_coordinates)))
