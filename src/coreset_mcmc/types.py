"""Names for the shapes that travel between the rooms of the package."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import jax

Position = Any
"""A pytree of arrays: one point of the parameter space. Parts may be discrete."""

Batch = Any
"""A pytree of arrays with a common leading row axis."""

Key = jax.Array
"""A typed JAX random key."""


def static(**options: Any) -> Any:
    """A dataclass field that is a choice, not a number: changing it compiles anew."""
    return field(metadata={"static": True}, **options)
