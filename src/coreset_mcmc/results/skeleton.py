"""The structure of a position as plain values, so that a file can give it back.

A leaf is its name; a container names its kind and holds its parts: ``{"dict": {"beta": "beta"}}``. Containers of a
user's own cannot be written down; a model with an ``initial_position`` brings them back.
"""

from __future__ import annotations

from typing import Any

import jax

from coreset_mcmc.core.trees import leaf_names
from coreset_mcmc.models.model import Model

BARE = "theta"
"""The name of a position that is a single array."""


def skeleton_of(names: Any) -> Any:
    """Of a tree of names; None if it has containers that a file cannot hold."""
    try:
        return _skeleton(names)
    except TypeError:
        return None


def _skeleton(names: Any) -> Any:
    if isinstance(names, str):
        return names
    if type(names) is dict and all(isinstance(key, str) for key in names):
        return {"dict": {key: _skeleton(part) for key, part in names.items()}}
    if type(names) in (list, tuple):
        return {type(names).__name__: [_skeleton(part) for part in names]}
    raise TypeError(f"{type(names).__name__} has no plain form")


def names_from(skeleton: Any) -> Any:
    """The tree of names back from its skeleton."""
    if isinstance(skeleton, str):
        return skeleton
    ((kind, parts),) = skeleton.items()
    if kind == "dict":
        return {key: names_from(part) for key, part in parts.items()}
    return {"list": list, "tuple": tuple}[kind](names_from(part) for part in parts)


def names_of_start(model: Model | None) -> Any:
    """The tree of names of a model's own start; None if there is none."""
    start = None if model is None else model.initial_position
    structure = jax.eval_shape(start, jax.random.key(0)) if callable(start) else start
    return None if structure is None else leaf_names(structure, BARE)
