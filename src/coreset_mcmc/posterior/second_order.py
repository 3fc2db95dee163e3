"""Value, gradient and Hessian of any scalar function, in memory that does not grow with the square of its dimension.

Forward over reverse mode: the Hessian times one basis vector after the other, some of them at once. How many is a
matter of memory: each carries along whatever the function computes for every row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

Function = Callable[[jax.Array], jax.Array]

FEW_DIMENSIONS = 64
"""Up to here all basis vectors go together."""
MOST_TANGENT_VALUES = 2**20
"""Numbers in the largest intermediate result of the basis vectors that go together: 8 megabytes."""


class Derivatives(NamedTuple):
    """A log-density at a flat position, to second order; NumPy's arrays on the host, else JAX's."""

    value: Any
    gradient: Any
    """(d,)"""
    hessian: Any
    """(d, d)"""


def to_second_order(function: Function, flat: jax.Array) -> Derivatives:
    """Value, gradient and Hessian of a scalar function."""

    def first_order(at: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        value, gradient = jax.value_and_grad(function)(at)
        return gradient, (value, gradient)

    if flat.size <= FEW_DIMENSIONS:
        hessian, (value, gradient) = jax.jacfwd(first_order, has_aux=True)(flat)
        return Derivatives(value, gradient, hessian)
    _, product, (value, gradient) = jax.linearize(first_order, flat, has_aux=True)
    at_once = max(MOST_TANGENT_VALUES // largest_result(product, flat), 1)
    hessian = jax.lax.map(product, jnp.eye(flat.size, dtype=flat.dtype), batch_size=min(at_once, flat.size))
    return Derivatives(value, gradient, hessian)


def largest_result(function: Callable[[jax.Array], Any], at: jax.Array) -> int:
    """Numbers in the largest array that the function computes from its argument."""
    program = jax.make_jaxpr(function)(at).jaxpr
    dependent, largest = set(program.invars), 1
    for equation in program.eqns:
        if any(not isinstance(variable, Literal) and variable in dependent for variable in equation.invars):
            dependent.update(equation.outvars)
            largest = max(largest, *(variable.aval.size for variable in equation.outvars))
    return largest
