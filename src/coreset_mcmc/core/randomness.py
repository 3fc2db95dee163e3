"""Random numbers on the host that follow from a key of JAX."""

from __future__ import annotations

import jax
import numpy as np

from coreset_mcmc.core.types import Key


def generator_of(key: Key) -> np.random.Generator:
    """A NumPy generator; drawing from it compiles nothing."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)).astype(np.uint64))
