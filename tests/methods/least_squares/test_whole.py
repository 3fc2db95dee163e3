"""Rows of small levels: what they say is no parabola, and they count once."""

from __future__ import annotations

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

import coreset_mcmc as cm
from coreset_mcmc.methods.least_squares import whole
from coreset_mcmc.methods.least_squares.equations import Window
from coreset_mcmc.methods.least_squares.start import stratified_normals
from coreset_mcmc.methods.least_squares.whole import MOST_WHOLE, with_whole_rows

SMALL = {"one": 1, "two": 2, "five": 5}
NUM_LARGE, NUM_ROWS, SIZE = 25, 20_000, 150


def marked(spread, is_sure):
    """What is left of the marks of rows whose remainders have this spread."""
    signs = np.array([1.0, -1.0, 1.0, -1.0])[:, None]
    state = SimpleNamespace(is_whole=np.asarray(is_sure))
    state._replace = lambda is_whole: is_whole
    return with_whole_rows(state, Window(signs * np.asarray(spread), np.zeros(4)))


def test_heavy_rows_that_were_sure_are_whole():
    np.testing.assert_array_equal(marked([2.0, 0.01, 2.0, 0.3], [True, True, False, True]), [True, False, False, True])


def test_at_most_half_of_them():
    spread = np.arange(1.0, 11.0)
    found = marked(spread, np.ones(10, bool))
    assert found.sum() == MOST_WHOLE * 10
    assert found[-5:].all()


def test_a_remainder_that_is_no_number_is_not_whole():
    np.testing.assert_array_equal(marked([np.nan, 1.0, 0.0], [True, True, True]), [False, True, False])


def test_every_coordinate_is_tried_far_to_either_side(rng):
    """As normal numbers they are what they should be; independent ones leave some coordinate without a far draw."""
    draws = np.stack([stratified_normals(rng, 8, 300) for _ in range(50)])
    assert draws.max(axis=1).min() > 1.15
    assert draws.min(axis=1).max() < -1.15
    assert kstest(draws.ravel()[::8], "norm").pvalue > 1e-3
    assert abs(np.corrcoef(draws[:, :, 0].ravel(), draws[:, :, 1].ravel())[0, 1]) < 4.5 / 20.0
    assert rng.normal(size=(50, 8, 300)).max(axis=1).min() < 0.5


def flights_like(seed=3):
    """A factor with large levels and three small ones without an event."""
    rng = np.random.default_rng(seed)
    level = rng.choice([f"level {number}" for number in range(NUM_LARGE)], size=NUM_ROWS)
    x = rng.normal(size=NUM_ROWS)
    y = rng.random(NUM_ROWS) < 1.0 / (1.0 + np.exp(1.5 - 0.4 * x))
    frame = pd.DataFrame({"level": level, "x": x, "y": y.astype(int)})
    for name, count in SMALL.items():
        few = pd.DataFrame({"level": name, "x": rng.normal(size=count), "y": 0})
        frame = pd.concat([frame, few], ignore_index=True)
    return frame


def fitted(frame):
    model = cm.from_formula("y ~ x + C(level)", frame, family="bernoulli")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cm.fit(model, coreset_size=SIZE, draws=500, random_seed=1, progressbar=False)


@pytest.mark.full
def test_small_levels_keep_their_rows(monkeypatch):
    """With them the coreset is good; the same without whole rows is not nearly."""
    frame = flights_like()
    found = fitted(frame)
    assert found.has_term
    rows = frame.iloc[np.asarray(found.coreset.indices)]
    weights = np.asarray(found.coreset.weights)
    assert weights[(rows["level"] == "one").to_numpy()] == pytest.approx(1.0)
    monkeypatch.setattr(whole, "HEAVY", np.inf)
    without = fitted(frame)
    assert found.kl_estimate < 0.02
    assert without.kl_estimate > 3 * found.kl_estimate
