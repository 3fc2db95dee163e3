"""Names for the shapes that travel between the rooms of the package, and how our dataclasses become pytrees."""

from __future__ import annotations

from dataclasses import field, fields
from typing import Any, TypeVar

import jax
import numpy as np

Position = Any
"""A pytree of arrays: one point of the parameter space. Parts may be discrete."""

Batch = Any
"""A pytree of arrays with a common leading row axis."""

Key = jax.Array
"""A typed JAX random key."""

Class = TypeVar("Class", bound=type)


def static(**options: Any) -> Any:
    """A dataclass field that is a choice, not a number: changing it compiles anew."""
    return field(metadata={"static": True}, **options)


def pytree(node: Class) -> Class:
    """Register a dataclass as a pytree: :func:`static` fields belong to its structure, all others are leaves.

    ``jax.tree_util.register_dataclass`` would do, but in JAX 0.10 the structures of two such classes with the same
    fields compare equal, so ``jit`` may run the program of one for the other: Adam for SGD, say. Custom nodes compare
    their class.
    """
    leaves = [item.name for item in fields(node) if not item.metadata.get("static", False)]
    are_floats = {item.name for item in fields(node) if str(item.type).startswith("float")}
    choices = [item.name for item in fields(node) if item.metadata.get("static", False)]

    def leaf(value: Any, name: str) -> Any:
        """A whole number where a float belongs would compile a program of its own, and so would a NumPy scalar."""
        item = getattr(value, name)
        is_number = name in are_floats and isinstance(item, int | float | np.floating | np.integer)
        return float(item) if is_number else item

    def structure(value: Any) -> tuple[Any, ...]:
        return tuple(getattr(value, name) for name in choices)

    jax.tree_util.register_pytree_with_keys(
        node,
        lambda value: (
            [(jax.tree_util.GetAttrKey(name), leaf(value, name)) for name in leaves],
            structure(value),
        ),
        lambda structure, children: node(
            **dict(zip(leaves, children, strict=True)), **dict(zip(choices, structure, strict=True))
        ),
        lambda value: ([leaf(value, name) for name in leaves], structure(value)),
    )
    return node
