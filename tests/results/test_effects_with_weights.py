"""Effects over rows that count for several: averages are those of the repeated rows."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm


@pytest.mark.full
def test_a_row_with_a_weight_is_as_many_rows():
    """By hand, from predictions of the table as it is and with the column raised."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=200), "times": rng.integers(1, 6, size=200)})
    table["y"] = (rng.random(200) < 1.0 / (1.0 + np.exp(-table["x"]))).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fit = cm.fit(
            cm.from_formula("y ~ x", table, family="bernoulli", weights="times"),
            coreset_size=40, draws=50, tune=50, random_seed=0, progressbar=False,
        )  # fmt: skip
    effect = fit.effect("x", draws=200, points=2, progressbar=False)

    def average(frame):
        """Of each draw, with as many copies of a row as its weight says."""
        draws = fit.posterior.stack(all_draws=("chain", "draw"))
        predicted = draws["Intercept"].to_numpy() + np.outer(frame["x"], draws["x"].to_numpy())
        return np.average(1.0 / (1.0 + np.exp(-predicted)), axis=0, weights=frame["times"])

    expected = average(table.assign(x=table["x"] + 1.0)) - average(table)
    np.testing.assert_allclose(effect.changes[0].mean, expected.mean(), rtol=1e-9)
