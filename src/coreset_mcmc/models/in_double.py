"""Log-densities in the precision of the computation, whatever precision they were written in.

A user's function may compute in single precision, for speed or by habit. Sums over rows, loops of samplers and merits
of weights go on in double precision, and compiled loops want one type from the first round to the last: so what a
function returns is widened where it enters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp


@dataclass(frozen=True)
class InDouble:
    """A function whose result, if it is an array of numbers, has the type of a real number where it is called."""

    function: Callable[..., Any]

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.function

    def __call__(self, *arguments: Any) -> Any:
        value = self.function(*arguments)
        dtype = getattr(value, "dtype", None)
        if dtype is None or dtype == jnp.result_type(float) or not jnp.issubdtype(dtype, jnp.number):
            return value
        return jnp.asarray(value).astype(jnp.result_type(float))


def in_double(function: Any) -> Any:
    """The function, widened once."""
    return function if isinstance(function, InDouble) or not callable(function) else InDouble(function)
