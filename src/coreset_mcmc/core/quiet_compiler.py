"""JAX, imported so that its compiler does not write to the terminal.

XLA logs "Very slow compile?" past the standard error of Python where a machine is busy. Whatever is wrong comes as an
exception, too. The level is read once, when the library is loaded; a user's own level stays, and so does the
environment.
"""

from __future__ import annotations

import os
import sys

LEVEL = "TF_CPP_MIN_LOG_LEVEL"


def load() -> None:
    """Load JAX, if nobody has."""
    if "jax" in sys.modules or LEVEL in os.environ:
        return
    os.environ[LEVEL] = "3"
    try:
        import jax  # noqa: F401, PLC0415 - reads the level
    finally:
        del os.environ[LEVEL]


load()
