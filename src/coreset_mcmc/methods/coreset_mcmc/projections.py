"""Feasible sets of weights and their exact Euclidean projections (section 2 of the paper).

Optax supplies the orthant, the box and the sorted simplex projection; the affine set is one line.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp
import optax

from coreset_mcmc.core.errors import require_positive
from coreset_mcmc.core.types import pytree


class FeasibleSet(Protocol):
    """A closed convex set of weights."""

    def project(self, weights: jax.Array, size: int) -> jax.Array:
        """The nearest feasible weights; ``size`` is the number N of rows that they stand for."""


@pytree
@dataclass(frozen=True)
class NonNegative:
    """{w >= 0}, used in all regression experiments of the paper."""

    def project(self, weights: jax.Array, size: int) -> jax.Array:
        del size
        result: jax.Array = optax.projections.projection_non_negative(weights)
        return result


@pytree
@dataclass(frozen=True)
class Simplex:
    """{w >= 0, sum w = N}, the stated set of the Gaussian experiment."""

    def project(self, weights: jax.Array, size: int) -> jax.Array:
        result: jax.Array = optax.projections.projection_simplex(weights, scale=size)
        return result


@pytree
@dataclass(frozen=True)
class Affine:
    """{sum w = N}, what the Gaussian experiment really used. Weights may be negative."""

    def project(self, weights: jax.Array, size: int) -> jax.Array:
        return weights + (size - jnp.sum(weights)) / weights.shape[0]


@pytree
@dataclass(frozen=True)
class Box:
    """{0 <= w <= upper}."""

    upper: float

    def __post_init__(self) -> None:
        require_positive("Box upper", self.upper)

    def project(self, weights: jax.Array, size: int) -> jax.Array:
        del size
        result: jax.Array = optax.projections.projection_box(weights, 0.0, self.upper)
        return result
