"""The first row to forbid a position, against rows of which it is known."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.posterior.support import bounding_rows

SIZE = 500


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    return to_rows({"y": rng.uniform(1.0, 2.0, SIZE)})


def between(position, batch):
    """Every response must lie between two parameters."""
    is_inside = (batch["y"] > position["low"]) & (batch["y"] < position["high"])
    return jnp.where(is_inside, -jnp.log(position["high"] - position["low"]), -jnp.inf)


MODEL = cm.Model(lambda position: jnp.zeros(()), between, {"low": 0.0, "high": 3.0})


def found(rows, low, high):
    allowed = {"low": np.zeros(1), "high": np.full(1, 3.0)}
    forbidden = {"low": np.asarray(low, float), "high": np.asarray(high, float)}
    return double_precision(bounding_rows)(rows, MODEL, allowed, forbidden)


def test_the_largest_and_the_smallest_row_bound_the_support(rows):
    y = rows.source.whole()["y"]
    bounds = {bound.row: bound.edge for bound in found(rows, [0.0, 1.9], [1.1, 3.0])}
    assert set(bounds) == {int(y.argmax()), int(y.argmin())}
    high, low = bounds[int(y.argmax())], bounds[int(y.argmin())]
    assert y.max() < high[0] < y.max() + 1e-3, "leaves in the order of their names: high, low"
    assert y.min() - 1e-3 < low[1] < y.min()


def test_nothing_is_found_where_all_is_allowed(rows):
    assert found(rows, [0.5], [2.5]) == []


def test_a_row_that_says_nan_forbids(rows):
    y = rows.source.whole()["y"]
    model = cm.Model(MODEL.log_prior, lambda position, batch: jnp.log(position["high"] - batch["y"]), None)
    allowed, forbidden = ({"low": np.zeros(1), "high": np.full(1, high)} for high in (3.0, 1.5))
    [bound] = double_precision(bounding_rows)(rows, model, allowed, forbidden)
    assert bound.row == int(y.argmax())
