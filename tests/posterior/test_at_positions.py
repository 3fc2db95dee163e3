"""Log-likelihoods of all rows at many positions: direct sums, whatever their number, by one program."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.engine import Local
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.source import ArraySource
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.at_positions import BUFFER, GROUP, summed_differences
from tests.helpers.compilations import compilations
from tests.helpers.streams import Stream

COUNTS = (1, 2, GROUP - 1, GROUP, GROUP + 1, BUFFER - 1, BUFFER, BUFFER + 1, 2_050)
SIZE = 1_003


def log_likelihood(position, batch):
    """A normal row with its own scale; impossible beyond a limit of the row, undefined below another."""
    mean, scale = position["mean"], jnp.exp(position["deep"]["log_scale"])
    value = -0.5 * ((batch["y"] - mean) / scale) ** 2 - position["deep"]["log_scale"]
    value = jnp.where(mean < batch["limit"], value, -jnp.inf)
    return jnp.where(mean > -1e3, value, jnp.nan)


MODEL = Model(lambda position: 0.0 * position["mean"], log_likelihood, name="with a limit")


def table(size=SIZE, limit=100.0):
    generator = np.random.default_rng(0)
    return {"y": generator.normal(1.0, 1.0, size), "limit": np.full(size, limit)}


def positions(count, seed=1):
    generator = np.random.default_rng(seed)
    return {
        "mean": generator.normal(1.0, 0.3, count),
        "deep": {"log_scale": generator.normal(0.0, 0.1, count)},
    }


@jax.jit
def matrix(at, data):
    return jax.vmap(lambda position: log_likelihood(position, data))(at)


def direct(at, data):
    """(K, N) values without those of the first position, summed in NumPy."""
    values = np.asarray(matrix(at, data))
    return (values - values[0]).sum(axis=1)


@pytest.mark.parametrize("count", COUNTS)
def test_equal_to_direct_sums(count):
    at, data = positions(count), table()
    found = summed_differences(to_rows(data), MODEL, at, "sums")
    assert found.shape == (count,)
    assert found[0] == 0.0
    np.testing.assert_allclose(found, direct(at, data), rtol=1e-10, atol=1e-9)


def test_one_program_serves_any_number_of_positions():
    """From 1 to 2 050, of which more than fit into one call are several tasks of one pass."""
    fresh = replace(MODEL, name="compiled here only")
    rows, (first, *others) = to_rows(table()), COUNTS
    with compilations() as compiled:
        summed_differences(rows, fresh, positions(first), "sums")
    assert len(compiled) == 1
    with compilations() as compiled:
        for count in others:
            summed_differences(rows, fresh, positions(count), "sums")
    assert compiled == []


def test_all_positions_share_one_pass():
    source = Stream(table())
    summed_differences(Rows(source), MODEL, positions(2_050), "sums")
    assert source.num_read == SIZE


@pytest.mark.parametrize("threads", [1, 3])
def test_where_rows_lie_changes_no_bit(threads):
    data, at = table(20_000), positions(40)
    layout = Layout(20_000, 256)
    memory = summed_differences(Rows(ArraySource(data), Local(1), layout), MODEL, at, "sums")
    stream = summed_differences(Rows(Stream(data), Local(threads), layout), MODEL, at, "sums")
    np.testing.assert_array_equal(stream, memory)


def test_groups_and_neighbours_change_no_bit():
    """The sum at a position does not depend on how many others there are, given the first one."""
    rows, at = to_rows(table()), positions(70)
    whole = summed_differences(rows, MODEL, at, "sums")
    some = summed_differences(rows, MODEL, jax.tree.map(lambda leaf: leaf[:5], at), "sums")
    np.testing.assert_array_equal(some, whole[:5])


def test_impossible_rows_are_minus_infinity_there_and_nowhere_else():
    at, data = positions(40), table()
    data["limit"][[3, 999]] = at["mean"][7] - 1e-9
    is_beyond = at["mean"] >= at["mean"][7] - 1e-9
    first = np.flatnonzero(~is_beyond)[0]
    at = jax.tree.map(lambda leaf: np.concatenate([leaf[[first]], leaf]), at)
    is_beyond = np.concatenate([[False], is_beyond])
    found = summed_differences(to_rows(data), MODEL, at, "sums")
    assert 0 < is_beyond.sum() < 40
    assert (found[is_beyond] == -np.inf).all()
    np.testing.assert_allclose(found[~is_beyond], direct(at, data)[~is_beyond], rtol=1e-10, atol=1e-9)


def test_undefined_rows_are_undefined_there():
    at = positions(5)
    at["mean"][2] = -1e4
    found = summed_differences(to_rows(table()), MODEL, at, "sums")
    np.testing.assert_array_equal(np.isnan(found), np.arange(5) == 2)


def test_a_row_that_is_impossible_at_the_first_position_enters_as_it_is():
    at, data = positions(6), table()
    order = np.argsort(-at["mean"])
    at = jax.tree.map(lambda leaf: leaf[order], at)
    data["limit"][5] = 0.5 * (at["mean"][0] + at["mean"][1])
    values = np.asarray(matrix(at, data))
    reference = np.where(np.isfinite(values[0]), values[0], 0.0)
    found = summed_differences(to_rows(data), MODEL, at, "sums")
    assert found[0] == -np.inf
    np.testing.assert_allclose(found[1:], (values - reference)[1:].sum(axis=1), rtol=1e-10, atol=1e-9)


def test_digits_survive_sums_that_are_large():
    """Rows of a billion each: taken away before rows are summed they leave six digits, taken away afterwards three."""
    generator = np.random.default_rng(0)
    data = {"y": generator.normal(size=SIZE), "limit": 1e9 * generator.uniform(1.0, 2.0, SIZE)}
    at = positions(20)
    model = Model(MODEL.log_prior, lambda position, batch: batch["limit"] + position["mean"] * batch["y"])
    expected = (at["mean"] - at["mean"][0]) * data["y"].sum()
    found = summed_differences(to_rows(data), model, at, "sums")
    sums = (data["limit"] + at["mean"][:, None] * data["y"]).sum(axis=1)
    rounding = np.sqrt(SIZE) * 2e9 * np.finfo(float).eps
    assert np.abs(found - expected).max() < 5 * rounding
    assert np.abs(sums - sums[0] - expected).max() > 5 * rounding


@pytest.mark.parametrize("size", [1, 255, 257, 2_049])
def test_rows_that_fill_a_leaf_up_are_not_seen(size):
    """The model is impossible where padding is zero, and padding that repeats the last row counts for nothing."""
    data = {**table(size), "y": np.random.default_rng(0).uniform(1.0, 2.0, size)}
    picky = Model(MODEL.log_prior, _positive_rows_only, name="positive rows only")
    at = positions(4)
    values = np.log(data["y"])[None] * at["mean"][:, None]
    found = summed_differences(to_rows(data), picky, at, "sums")
    np.testing.assert_allclose(found, (values - values[0]).sum(axis=1), rtol=1e-12, atol=1e-12)


def _positive_rows_only(position, batch):
    return jnp.where(batch["y"] > 0, position["mean"] * jnp.log(batch["y"]), -jnp.inf)


def test_weights_count():
    """Rows of weight zero may be impossible."""
    data, at = table(300), positions(9)
    weights = np.random.default_rng(3).exponential(size=300)
    weights[[2, 77]] = 0.0
    data["limit"][[2, 77]] = -50.0
    rows = to_rows(table(2_000)).weighted(data, weights)
    values = np.asarray(matrix(at, data))[:, weights > 0]
    np.testing.assert_allclose(
        summed_differences(rows, MODEL, at, "sums"), (values - values[0]) @ weights[weights > 0], rtol=1e-10, atol=1e-9
    )
