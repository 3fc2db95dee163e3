"""Double precision, scoped to our own computations.

Full-data log-likelihood sums reach 1e7 while the differences that carry the gradient are of order one, so single
precision has no digits left. Public entry points run under :func:`double_precision`; the user's global JAX
configuration is never touched.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

from coreset_mcmc.core.numpy_constants import keep_precisions_apart

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def double_precision(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Run ``function`` with 64-bit JAX types enabled for its duration only."""

    @functools.wraps(function)
    def scoped(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        keep_precisions_apart()
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return scoped


def as_working_array(leaf: Any) -> jax.Array:
    """A JAX array with floats widened to float64 (inside the scope); integers and booleans are kept."""
    result: jax.Array = jax.device_put(working_array(leaf))
    return result


def working_array(leaf: Any) -> np.ndarray:
    """The same in NumPy."""
    array = np.asarray(leaf)
    return array.astype(np.float64, copy=False) if np.issubdtype(array.dtype, np.floating) else array
