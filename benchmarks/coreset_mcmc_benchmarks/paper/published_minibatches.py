"""The minibatches of the published code, kept apart because their gradient estimate is biased.

Each batch holds *all* coreset rows and the next rows of the rest in file order, and all are scaled by N/S. Averaged
over a cycle this replaces the sum over the data by a sum that gives coreset rows too much weight: the fixed point is
pulled towards uniform weights by a share of about M/S. For the logistic regression the published code leaves the
coreset rows out and takes plain windows in file order.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.types import Key, pytree


@pytree
@dataclass(frozen=True)
class PublishedWindows:
    """Windows in file order that move on by their own length and wrap around.

    Args:
        always: rows (M,) in every batch; empty for plain windows.
        others: the remaining rows, in file order.
    """

    always: jax.Array
    others: jax.Array

    def init(self, key: Key) -> jax.Array:
        del key
        return jnp.zeros((), jnp.int32)

    def next(self, key: Key, state: jax.Array, size: int, count: int) -> tuple[jax.Array, jax.Array]:
        del key, size
        num_others = count - self.always.size
        places = (state + jnp.arange(num_others, dtype=jnp.int32)) % self.others.size
        rows = jnp.concatenate([self.always, self.others[places]])
        return (state + num_others) % self.others.size, rows


def published_windows(size: int, coreset: np.ndarray, *, with_coreset: bool) -> PublishedWindows:
    """Windows over ``size`` rows for a coreset with these row numbers."""
    always = np.asarray(coreset if with_coreset else [], np.int32)
    others = np.setdiff1d(np.arange(size, dtype=np.int32), always)
    return PublishedWindows(jnp.asarray(always), jnp.asarray(others))
