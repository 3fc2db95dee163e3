"""A table that is quick to write and to read."""

from __future__ import annotations

import numpy as np
import pandas as pd


def little(generator: np.random.Generator, size: int = 60) -> pd.DataFrame:
    """A response, a number and a group."""
    x = generator.normal(size=size)
    return pd.DataFrame({"y": x + generator.normal(size=size), "x": x, "group": np.resize(["a", "b", "c"], size)})
