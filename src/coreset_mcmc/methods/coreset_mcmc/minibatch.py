"""Which rows enter the gradient estimate of one iteration.

Uniform sampling without replacement has (N - S)/(N - 1) of the variance of sampling with it; a random-order scan
visits every row once per pass and is marginally uniform at each iteration (section 3.2 of the paper). Both evaluate a
keyed permutation at S places, so a scan remembers a key and a cursor instead of N indices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Key, pytree
from coreset_mcmc.data.shuffle import permuted, without_replacement


class Minibatches(Protocol):
    """Row numbers for one iteration after another."""

    def init(self, key: Key) -> Any: ...

    def next(self, key: Key, state: Any, size: int, count: int) -> tuple[Any, jax.Array]: ...


@pytree
@dataclass(frozen=True)
class WithoutReplacement:
    """A fresh uniform subset at each iteration."""

    def init(self, key: Key) -> tuple[()]:
        del key
        return ()

    def next(self, key: Key, state: tuple[()], size: int, count: int) -> tuple[tuple[()], jax.Array]:
        return state, without_replacement(key, size, count)


class ScanState(NamedTuple):
    """How far the current pass over the rows has come."""

    permutation: jax.Array
    """The raw data of the key that fixes the order of the current pass."""
    cursor: jax.Array


@pytree
@dataclass(frozen=True)
class RandomOrderScan:
    """Consecutive blocks of a random order, reshuffled when fewer rows than a block remain."""

    def init(self, key: Key) -> ScanState:
        return ScanState(jax.random.key_data(key), jnp.zeros((), jnp.int32))

    def next(self, key: Key, state: ScanState, size: int, count: int) -> tuple[ScanState, jax.Array]:
        is_exhausted = state.cursor + count > size
        permutation = jnp.where(is_exhausted, jax.random.key_data(key), state.permutation)
        cursor = jnp.where(is_exhausted, 0, state.cursor)
        rows = permuted(jax.random.wrap_key_data(permutation), size, cursor + jnp.arange(count))
        return ScanState(permutation, cursor + count), rows
