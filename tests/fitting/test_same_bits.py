"""One seed, one result: from memory or from a stream, with any number of threads, whoever began the work."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data import layout, rows
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.engine import Local
from coreset_mcmc.data.rows import Rows
from tests.helpers.problems import logistic_data
from tests.helpers.streams import Stream

SIZE = 20_000
"""Rows that take every path: leaves of 512 rows in three parts, a mode of a sample first, control variates."""
METHOD = cm.LeastSquares(num_draws=80, num_chains=2, subsample_size=1_024)
SETTINGS = {"coreset_size": 40, "draws": 60, "tune": 10, "chains": 2, "random_seed": 4, "progressbar": False}


@pytest.fixture(autouse=True)
def many_leaves(monkeypatch):
    monkeypatch.setattr(layout, "MOST_LEAF_ROWS", 512)
    monkeypatch.setattr(rows, "MOST_RESIDENT_ROWS", 2_000)


def fit(data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cm.fit(cm.models.logistic_regression(2), data, **{**SETTINGS, "method": METHOD, **options})


@pytest.fixture(scope="module")
def data():
    return logistic_data(size=SIZE)


@pytest.fixture
def memory(data):
    return fit(data, engine=Local(1))


def assert_same(one, other, *, counts=True):
    np.testing.assert_array_equal(one.posterior["beta"], other.posterior["beta"])
    np.testing.assert_array_equal(one.coreset.indices, other.coreset.indices)
    np.testing.assert_array_equal(one.coreset.weights, other.coreset.weights)
    assert one.kl_estimate == other.kl_estimate
    if counts:
        assert one.training.num_evaluations == other.training.num_evaluations


def test_a_stream_has_the_bits_of_arrays(data, memory):
    assert to_rows(data).layout.num_parts == 3
    assert memory.tree["training"]["newton_decrement"][0] == np.inf, "the mode of a sample came first"
    for engine in (Local(1), Local(3)):
        assert_same(fit(Stream(data), engine=engine), memory)
    assert_same(fit(data, engine=Local(3)), memory)


def test_what_rows_remember_changes_no_bit(data, memory):
    """The mode is found once for the same rows; a second fit saves its passes and has the bits of the first."""
    source = Stream(data)
    rows_of_both = Rows(source, Local(2))
    first = fit(rows_of_both)
    num_read = source.num_read
    second = fit(rows_of_both)
    assert source.num_read - num_read < num_read
    assert second.training.num_steps < first.training.num_steps
    for one in (first, second):
        assert_same(one, memory, counts=one is first)


def test_another_seed_has_other_bits(data, memory):
    assert not np.array_equal(fit(data, random_seed=5).posterior["beta"], memory.posterior["beta"])


class KilledError(Exception):
    """The process ends here, for all that a checkpoint knows."""


@pytest.mark.parametrize("num_steps", [1, 4])
@pytest.mark.parametrize("is_first_in_memory", [True, False], ids=["arrays first", "stream first"])
def test_either_goes_on_with_what_the_other_began(data, memory, tmp_path, num_steps, is_first_in_memory):
    """Training that is broken off before and after its rows are chosen, saved after every step."""
    checkpoint = cm.Checkpoint(tmp_path, seconds=0.0)
    kinds = [(data, Local(1)), (Stream(data), Local(3))]
    (first, one), (second, other) = kinds if is_first_in_memory else kinds[::-1]

    def stop(event):
        if event.num_steps >= num_steps:
            raise KilledError

    with pytest.raises(KilledError):
        fit(first, engine=one, checkpoint=checkpoint, callbacks=[stop])
    assert [path.name for path in tmp_path.iterdir()] == ["training.npz"]
    steps = []
    resumed = fit(second, engine=other, checkpoint=checkpoint, callbacks=[lambda event: steps.append(event.num_steps)])
    assert steps[0] == num_steps + 1, "it went on, and did not begin again"
    assert_same(resumed, memory)


def test_other_rows_are_refused(data, tmp_path):
    """One number of one row differs; the same from memory and from a stream."""
    fit(data, checkpoint=tmp_path)
    other = {**data, "x": data["x"].copy()}
    other["x"][0, 0] += 1e-9
    for rows_of in (dict, Stream):
        with pytest.raises(cm.CheckpointError, match="another configuration"):
            fit(rows_of(other), checkpoint=tmp_path)
