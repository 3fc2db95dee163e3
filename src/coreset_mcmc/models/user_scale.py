"""From positions, on which chains move, to the values that a user knows.

A model that comes from a library moves on unconstrained numbers; its user thinks in rates, probabilities and derived
quantities. Draws go through ``Model.constrain`` in chunks of bounded size, by one compiled program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.trees import chain_first, first_position, named_leaves, pooled
from coreset_mcmc.core.types import Position
from coreset_mcmc.models.model import Model

CHUNK_BYTES = 2**24
"""Aim for chunks of draws whose values take this much memory."""
MAX_CHUNK = 1_024
EXCLUDE = "~"
"""Before a name in ``var_names``: all but this one, as in ArviZ."""


def shown_names(model: Model, position: Position, var_names: Sequence[str] | str | None = None) -> list[str]:
    """Names of what the group ``posterior`` is going to hold, chosen by the user or all."""
    known = list(jax.eval_shape(partial(shown, model), position))
    if var_names is None:
        return known
    asked = [var_names] if isinstance(var_names, str) else list(var_names)
    is_exclusion = bool(asked) and all(name.startswith(EXCLUDE) for name in asked)
    bare = [name.removeprefix(EXCLUDE) if is_exclusion else name for name in asked]
    unknown = [name for name in bare if name not in known]
    require(
        bool(asked) and not unknown,
        "var_names",
        got=repr(unknown or asked),
        expected=f"names among {known}",
        fix='Leave it out to keep all of them; "~name" keeps all but that one.',
    )
    return [name for name in known if name not in bare] if is_exclusion else bare


def shown(model: Model, position: Position) -> Mapping[str, jax.Array]:
    """One position as the user knows it."""
    return named_leaves(position, "theta") if model.constrain is None else model.constrain(position)


def shown_draws(model: Model, positions: Position, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Draws, leaves (T, K, ...), as the user knows them, each (K, T, ...) as in ArviZ."""
    if model.constrain is None:
        values = named_leaves(chain_first(positions), "theta")
        return {name: values[name] for name in names}
    num_draws, num_chains = jax.tree.leaves(positions)[0].shape[:2]
    flat = pooled(chain_first(positions))
    function = partial(_values, model, tuple(names))
    chunks = in_chunks(function, flat, num_chains * num_draws, _chunk_size(model, flat, num_chains * num_draws))
    values = jax.tree.map(lambda *parts: np.concatenate(parts), *chunks)
    return {name: values[name].reshape(num_chains, num_draws, *values[name].shape[1:]) for name in names}


@partial(jax.jit, static_argnums=(0, 1))
def _values(model: Model, names: tuple[str, ...], positions: Position) -> dict[str, jax.Array]:
    def chosen(position: Position) -> dict[str, jax.Array]:
        values = shown(model, position)
        return {name: jnp.asarray(values[name]) for name in names}

    return jax.vmap(chosen)(positions)


def _chunk_size(model: Model, flat: Position, count: int) -> int:
    shapes = jax.eval_shape(partial(shown, model), first_position(flat))
    num_bytes = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))
    return int(np.clip(CHUNK_BYTES // max(num_bytes, 1), 1, min(count, MAX_CHUNK)))


def in_chunks(function: Any, arrays: Any, count: int, size: int) -> list[Any]:
    """``function`` of ``size`` leading entries at a time; the last chunk is filled up, so that one program does."""
    results = []
    for start in range(0, count, size):
        places = np.minimum(np.arange(start, start + size), count - 1)
        result = function(jax.tree.map(lambda leaf, places=places: leaf[places], arrays))
        kept = min(size, count - start)
        results.append(jax.tree.map(lambda leaf, kept=kept: np.asarray(leaf)[:kept], result))
    return results
