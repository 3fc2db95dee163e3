"""A state of BlackJAX under the names of ours."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax

from coreset_mcmc.core.types import Position


class BlackJAXState(NamedTuple):
    """What BlackJAX remembers of one chain, or with a leading axis of several."""

    inner: Any

    @property
    def position(self) -> Position:
        return self.inner.position

    @property
    def log_density(self) -> jax.Array:
        result: jax.Array = self.inner.logdensity
        return result
