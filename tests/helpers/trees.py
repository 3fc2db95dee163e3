"""Comparing pytrees."""

from __future__ import annotations

import jax
import numpy as np


def leaves_equal(first, second):
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True) for a, b in pairs)
