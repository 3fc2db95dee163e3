"""All rows through one class: sums, values, rows by number, a sample, whatever they are stored in."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.core.watching import watched_by
from coreset_mcmc.data import rows as rows_module
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.engine import Local
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.leaf import Leaf
from coreset_mcmc.data.rows import Rows, TakeRows
from coreset_mcmc.data.source import ArraySource
from coreset_mcmc.data.task import SumOver, Task, trace_summed
from tests.helpers.compilations import compilations
from tests.helpers.streams import Stream
from tests.helpers.trees import leaves_equal

SIZES = (1, 255, 256, 257, 65_536, 65_537, 200_001)
"""Around the lengths of leaves and blocks."""


def table(size, seed=0):
    """Columns of every kind, stored as users store them."""
    generator = np.random.default_rng(seed)
    return {
        "single": generator.normal(size=(size, 2)).astype(np.float32),
        "double": generator.normal(5.0, 1.0, size=size),
        "small": generator.integers(-128, 128, size, dtype=np.int8),
        "flag": generator.random(size) < 0.3,
    }


@dataclass(frozen=True)
class Sums:
    """Of each column, with weights; by the type that the model sees."""

    def __call__(self, batch, weights):
        assert {name: column.dtype for name, column in batch.items()} == {
            "single": np.float64,
            "double": np.float64,
            "small": np.int64,
            "flag": np.bool_,
        }
        return jax.tree.map(lambda column: weights @ column, batch)


@dataclass(frozen=True)
class Plus:
    """A value for each row."""

    def __call__(self, batch, weights, shift):
        del weights
        return batch["double"] + shift, batch["small"]


def exact_sums(batch, weights):
    """In Python's exact arithmetic, rounded once."""
    flat = {name: np.asarray(column, float).reshape(len(weights), -1) for name, column in batch.items()}
    sums = {name: [math.fsum(weights * column) for column in columns.T] for name, columns in flat.items()}
    return {name: np.reshape(values, np.shape(batch[name])[1:]) for name, values in sums.items()}


@pytest.mark.parametrize("kind", [ArraySource, Stream])
@pytest.mark.parametrize("size", SIZES)
def test_sums_are_those_of_exact_arithmetic(size, kind):
    """To 64 roundings of the sum of absolute values; whole numbers exactly."""
    data = table(size)
    found = Rows(kind(data)).sum(Sums(), description="sums")
    expected = exact_sums(data, np.ones(size))
    scale = exact_sums(jax.tree.map(np.abs, jax.tree.map(lambda column: column.astype(float), data)), np.ones(size))
    for name, value in expected.items():
        assert found[name].dtype == np.float64
        np.testing.assert_allclose(found[name], value, rtol=0, atol=64 * np.finfo(float).eps * scale[name].max())
    assert found["small"] == data["small"].sum(dtype=np.int64)
    assert found["flag"] == data["flag"].sum()


@pytest.mark.parametrize("threads", [1, 3])
def test_where_rows_lie_changes_no_bit(threads):
    data = table(200_001)
    memory = Rows(ArraySource(data), Local(1)).sum(Sums(), description="sums")
    assert leaves_equal(Rows(Stream(data), Local(threads)).sum(Sums(), description="sums"), memory)


@pytest.mark.parametrize("size", SIZES)
def test_values_come_for_each_row_in_order(size):
    data = table(size)
    parts = list(Rows(Stream(data)).values(Plus(), np.float64(1.0), description="values"))
    shifted, small = (np.concatenate(column) for column in zip(*parts, strict=True))
    np.testing.assert_array_equal(shifted, data["double"] + 1.0)
    np.testing.assert_array_equal(small, data["small"])


@pytest.mark.parametrize("size", [1, 257, 65_537])
def test_weighted_rows_count_as_often_as_they_weigh(size):
    """With the program that passes over all rows, and the types in which they are stored."""
    everything = Rows(ArraySource(table(200_001)))
    few, weights = everything.take(np.arange(size)), np.random.default_rng(1).exponential(size=size)
    everything.sum(Sums(), description="sums")
    with compilations() as compiled:
        found = everything.weighted(few, weights).sum(Sums(), description="sums")
    assert compiled == []
    for name, value in exact_sums(jax.tree.map(lambda array: array[:size], table(200_001)), weights).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-9)


@pytest.mark.parametrize("kind", [ArraySource, Stream])
@pytest.mark.parametrize("indices", [[3, 200_000, 65_536, 3, 0], [70_000], []], ids=["repeats", "one", "none"])
def test_rows_by_their_numbers_in_any_order(kind, indices):
    data, places = table(200_001), np.asarray(indices, np.int64)
    source = kind(data)
    found = Rows(source).take(places)
    for name, column in found.items():
        assert column.dtype == {"small": np.int64, "flag": np.bool_}.get(name, np.float64)
        np.testing.assert_array_equal(column, data[name][places])
    if kind is Stream:
        leaf_rows = source.layout.leaf_rows
        read = [min(leaf_rows, 200_001 - leaf * leaf_rows) for leaf in {int(row) // leaf_rows for row in indices}]
        assert source.num_read == sum(read), "only leaves that hold some"


class TestResident:
    def test_few_rows_are_all_there(self):
        data = table(257)
        resident = Rows(ArraySource(data)).resident
        np.testing.assert_array_equal(resident.indices, np.arange(257))
        np.testing.assert_array_equal(resident.rows["small"], data["small"])
        assert resident.rows["single"].dtype == np.float64

    @pytest.mark.parametrize("kind", [ArraySource, Stream])
    def test_of_many_rows_a_sample_that_belongs_to_the_data(self, kind, monkeypatch):
        monkeypatch.setattr(rows_module, "MOST_RESIDENT_ROWS", 500)
        data = table(5_000)
        one, other = Rows(ArraySource(data)).resident, Rows(kind(data), Local(3)).resident
        assert leaves_equal(one, other)
        assert len(set(one.indices)) == 500
        assert (np.diff(one.indices) > 0).all()
        np.testing.assert_array_equal(one.rows["double"], data["double"][one.indices])
        counts = np.histogram(one.indices, bins=5, range=(0, 5_000))[0]
        assert (np.abs(counts - 100) < 5 * np.sqrt(500 * 0.2 * 0.8)).all(), "from all over, to 5 standard deviations"

    def test_wide_rows_are_fewer(self, monkeypatch):
        monkeypatch.setattr(rows_module, "MOST_RESIDENT_VALUES", 5 * 100)
        assert len(Rows(ArraySource(table(5_000))).resident.indices) == 100

    def test_the_first_pass_brings_it_along(self, monkeypatch):
        """And is no longer for it; the second pass reads no more than its own rows, too."""
        monkeypatch.setattr(rows_module, "MOST_RESIDENT_ROWS", 500)
        source = Stream(table(5_000))
        rows = Rows(source, Local(2), Layout(5_000, 256))
        first = rows.sum(Sums(), description="sums")
        assert leaves_equal(rows.resident, Rows(ArraySource(table(5_000))).resident)
        assert source.num_read == 5_000
        assert leaves_equal(rows.sum(Sums(), description="sums"), first)
        assert source.num_read == 10_000

    def test_rows_are_taken_in_a_pass(self):
        data, wanted = table(5_000), np.array([0, 255, 256, 4_999])
        rows = Rows(ArraySource(data), Local(2), Layout(5_000, 256))
        (found,) = rows.scan([Task(TakeRows(), (wanted,))], "rows")
        assert leaves_equal(found, jax.tree.map(lambda column: column[wanted], data))


class TestPadding:
    """Rows that only fill a block up are never seen in a result."""

    @pytest.mark.parametrize("size", [1, 255, 257, 2_049, 65_537])
    def test_zeros_are_never_evaluated(self, size):
        """No row is zero, where the logarithm is not finite."""
        data = np.random.default_rng(0).uniform(1.0, 2.0, size)
        found = to_rows(data).sum(_sum_of_logarithms, description="logarithms")
        np.testing.assert_allclose(found, np.log(data).sum(), rtol=1e-12)

    @pytest.mark.parametrize("size", [1, 255, 257, 2_049, 65_537])
    def test_copies_of_the_last_row_count_for_nothing(self, size):
        """The last row is unlike all others: it is met once among rows that count."""
        data = np.zeros(size)
        data[-1] = 1.0
        found = to_rows(data).sum(_ones_that_count, description="last")
        assert [float(value) for value in found] == [1.0, 1.0]

    def test_a_leaf_is_filled_with_its_last_row_and_no_weight(self):
        layout = Layout(300, 4_096)
        padded = Leaf(layout, 0, np.arange(1.0, 301.0)).padded
        block = layout.block_rows
        assert padded.batch.shape == padded.weights.shape == (4_096,)
        np.testing.assert_array_equal(padded.batch[:300], np.arange(1.0, 301.0))
        assert (padded.batch[300:block] == 300.0).all()
        assert (padded.weights == (np.arange(4_096) < 300)).all()
        assert (int(padded.num_rows), int(padded.start)) == (300, 0)


class TestMemory:
    """Half-width numbers stay half as wide; what is as long as the data is the data."""

    SIZE, WIDTH = 1_000_000, 4

    @pytest.fixture
    def single(self):
        return np.random.default_rng(0).random((self.SIZE, self.WIDTH), np.float32)

    def peak(self, work):
        """Bytes that NumPy and Python have at most at the same time, beyond what was there before."""
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            work()
            return tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()

    def test_a_pass_makes_no_copy_of_all_rows(self, single):
        """A leaf is 2 MiB as it is widened; all rows would be 30. The broken twin widens them all."""
        rows = to_rows(single)
        leaf_bytes = 8 * self.WIDTH * rows.layout.leaf_rows
        assert np.shares_memory(rows.source.whole(), single)
        rows.sum(_column_sums, description="sums")
        assert self.peak(lambda: rows.sum(_column_sums, description="sums")) < 4 * leaf_bytes
        assert self.peak(lambda: np.asarray(rows.in_programs().arrays)) > 8 * self.WIDTH * self.SIZE

    def test_a_program_widens_one_block_at_a_time(self, single):
        """What it holds besides its argument, a leaf in stored types, is less than that leaf widened."""
        rows = to_rows(single)
        traced = trace_summed(_column_sums, rows.layout.block_rows, rows.padded_types, ())
        needs = traced.lower().compile().memory_analysis()
        stored = 4 * self.WIDTH * rows.layout.leaf_rows
        assert needs.argument_size_in_bytes < stored + 8 * rows.layout.leaf_rows + 1_024
        assert needs.temp_size_in_bytes < 0.5 * stored


def _column_sums(batch, weights):
    return weights @ batch


def _sum_of_logarithms(batch, weights):
    return weights @ jnp.log(batch)


def _ones_that_count(batch, weights):
    return jnp.sum((weights != 0) & (batch == 1.0)), weights @ batch


def test_tasks_share_a_pass():
    source = Stream(table(5_000))
    rows = Rows(source, Local(2), Layout(5_000, 256))
    sums, taken = rows.scan([Task(SumOver(Sums())), Task(TakeRows(), (np.array([4]),))], "both")
    assert source.num_read == 5_000
    assert leaves_equal(sums, Rows(ArraySource(table(5_000)), layout=rows.layout).sum(Sums(), description="sums"))
    np.testing.assert_array_equal(taken["double"], table(5_000)["double"][[4]])


def test_whoever_watches_is_told_how_far_a_pass_is():
    seen = []
    rows = Rows(ArraySource(table(10_000)), layout=Layout(10_000, 256))
    with watched_by(lambda *said: seen.append(said)):
        rows.sum(Sums(), description="sums")
    assert seen == [("sums", done, 10_000) for done in (0, 4_096, 8_192, 10_000)]


def test_all_rows_for_compiled_programs():
    data = table(300)
    for kind in (ArraySource, Stream):
        arrays = Rows(kind(data)).in_programs().arrays
        assert arrays["single"].dtype == jnp.float64
        np.testing.assert_array_equal(arrays["single"], data["single"])


def test_types_are_those_that_models_see():
    types = to_rows(table(300)).types(7)
    assert jax.tree.map(lambda leaf: (leaf.shape, str(leaf.dtype)), types) == {
        "single": ((7, 2), "float64"),
        "double": ((7,), "float64"),
        "small": ((7,), "int64"),
        "flag": ((7,), "bool"),
    }
