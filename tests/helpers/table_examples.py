"""A small table with a column of each kind."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

SIZE = 120


@cache
def _table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.normal(3.0, 2.0, SIZE),
            "z": rng.uniform(0.5, 4.0, SIZE),
            "g": rng.choice(["a", "b", "c"], SIZE),
            "h": pd.Categorical(rng.choice(["low", "high"], SIZE), categories=["low", "high"], ordered=True),
            "flag": rng.random(SIZE) < 0.4,
            "i": rng.integers(0, 4, SIZE),
            "my col": rng.normal(size=SIZE),
        }
    )
    frame["y"] = 1.0 + 2.0 * frame["x"] + 3.0 * (frame["g"] == "b") + rng.normal(size=SIZE)
    frame["count"] = rng.poisson(np.exp(0.2 * frame["x"]))
    chance = 1.0 / (1.0 + np.exp(3.0 - frame["x"]))
    frame["outcome"] = np.where(rng.random(SIZE) < chance, "yes", "no")
    frame["success"] = (frame["outcome"] == "yes").astype(int)
    return frame


def table() -> pd.DataFrame:
    """A fresh copy."""
    return _table().copy()


RESPONSES = {
    "gaussian": "y",
    "t": "y",
    "bernoulli": "outcome",
    "poisson": "count",
    "negativebinomial": "count",
}
