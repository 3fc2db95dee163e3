"""A table with a response for every family, and what its formula is."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd

from coreset_mcmc.tables.families import FAMILIES

SIZE = 150
LEFT = {
    "gaussian": "y",
    "t": "y",
    "bernoulli": "success",
    "binomial": "p(k, n)",
    "poisson": "count",
    "negativebinomial": "count",
    "zero_inflated_poisson": "zeros",
    "zero_inflated_negativebinomial": "zeros",
    "hurdle_poisson": "zeros",
    "hurdle_negativebinomial": "zeros",
    "gamma": "amount",
    "exponential": "amount",
    "weibull": "amount",
    "beta": "share",
    "cumulative": "rating",
    "categorical": "choice",
}
"""The left-hand side of a formula."""
assert set(LEFT) == set(FAMILIES)


@cache
def _families_table() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    x = rng.normal(1.0, 1.0, SIZE)
    frame = pd.DataFrame({"x": x, "g": rng.choice(["a", "b", "c"], SIZE), "h": rng.choice(["u", "v", "w", "z"], SIZE)})
    eta = 0.4 * x - 0.3 * (frame["g"] == "b")
    frame["y"] = eta + rng.normal(size=SIZE)
    frame["success"] = (rng.random(SIZE) < 1 / (1 + np.exp(-eta))).astype(int)
    frame["n"] = rng.integers(1, 12, SIZE)
    frame["k"] = rng.binomial(frame["n"], 1 / (1 + np.exp(-eta)))
    frame["count"] = rng.poisson(np.exp(eta))
    frame["zeros"] = frame["count"] * (rng.random(SIZE) < 0.7)
    frame["amount"] = rng.gamma(2.0, np.exp(eta) / 2.0)
    frame["status"] = np.where(rng.random(SIZE) < 0.3, "right", "none")
    frame["share"] = rng.beta(2.0, 3.0, SIZE)
    levels = ["low", "mid", "high", "top"]
    place = np.clip(np.floor(eta + rng.logistic(size=SIZE) + 2.0), 0, 3).astype(int)
    frame["rating"] = pd.Categorical(np.array(levels)[place], categories=levels, ordered=True)
    frame["choice"] = rng.choice(["p", "q", "r"], SIZE)
    return frame


def families_table() -> pd.DataFrame:
    """A fresh copy."""
    return _families_table().copy()
