"""Keeps single and double precision apart where JAX mixes them: NumPy arrays that a traced function holds.

JAX (0.10) turns a NumPy array into a constant of its own and remembers it by the identity of the array, whatever the
precision was. A function traced in double precision thereby leaves a constant of 64 bits behind for every array that it
read, and the user's own program in single precision, which reads the same array later, fails with "expected f32[3] but
got f64[3]"; the other way round, ours would compute with 32 bits. Here each use makes a constant of its own, of the
precision that is in force; no data are copied unless that is another one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np


@cache
def keep_precisions_apart() -> bool:
    """Do so from now on, in this process; False if this version of JAX has no such place.

    No setting changes, and programs of one precision compute what they did.
    """
    try:
        from jax._src import dtypes, literals  # noqa: PLC0415 - no part of JAX's interface, may be gone

        register, typed = dtypes.register_canonicalize_value_handler, literals.TypedNdArray
    except (ImportError, AttributeError):
        return False

    def constant(array: np.ndarray) -> Any:
        return typed(np.asarray(array, dtypes.canonicalize_dtype(array.dtype)))

    register(np.ndarray, constant)
    return True
