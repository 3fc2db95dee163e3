"""PyTensor's JAX backend, used without a trace in the process.

When it is imported it switches JAX to double precision for the whole process. Putting that back is not enough: PyMC's
own JAX samplers rely on the import, which happens once, and would then run in single precision. So the modules of the
backend that we import are ours alone: they are taken out again after use, and the user's import is the first one.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import jax

BACKEND = "pytensor.link.jax.dispatch"

_ours: dict[str, ModuleType] = {}
_lock = threading.RLock()
_depth = [0]


@contextmanager
def dispatchers() -> Iterator[tuple[Any, Any]]:
    """PyTensor's dispatchers of operations and of values to JAX; the backend can be imported inside."""
    with _lock:
        is_users = BACKEND in sys.modules and not _depth[0]
        if is_users:
            yield _imported()
            return
        precision = _global_precision()
        sys.modules.update(_ours)
        _depth[0] += 1
        try:
            found = _imported()
            if _global_precision() != precision:
                jax.config.update("jax_enable_x64", precision)
            yield found
        finally:
            _depth[0] -= 1
            if not _depth[0]:
                _take_out()


def _imported() -> tuple[Any, Any]:
    from pytensor.link.jax.dispatch import jax_funcify
    from pytensor.link.jax.dispatch.basic import jax_typify

    return jax_funcify, jax_typify


def _take_out() -> None:
    import pytensor.link.jax as parent

    for name in [name for name in sys.modules if name == BACKEND or name.startswith(f"{BACKEND}.")]:
        _ours[name] = sys.modules.pop(name)
    if hasattr(parent, "dispatch"):
        del parent.dispatch


def _global_precision() -> bool:
    """Scopes of precision belong to a thread: another one sees what is set for the process."""
    with ThreadPoolExecutor(1) as other_thread:
        return bool(other_thread.submit(lambda: jax.config.read("jax_enable_x64")).result())
