"""Small matrix algebra on one thread.

Factorising a few hundred rows takes milliseconds. OpenBLAS divides it among all cores and its threads wait for each
other by spinning: on a machine that does something else beside, a Cholesky factor of 500 rows took 0.3 s instead of 3
ms. One thread is nearly as fast on an idle machine, and as fast on a busy one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

SMALL = 2_000
"""Rows of a matrix from which on several threads are worth it."""


@contextmanager
def small_algebra(size: int) -> Iterator[None]:
    """While matrices of at most so many rows are factorised; the user's setting comes back afterwards."""
    limited: Any = _controller().limit(limits=1, user_api="blas") if size <= SMALL else nullcontext()
    with limited:
        yield


@cache
def _controller() -> ThreadpoolController:
    """Libraries that are loaded now; NumPy's and SciPy's are."""
    return ThreadpoolController()
