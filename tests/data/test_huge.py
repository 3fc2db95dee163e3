"""Row numbers are 64-bit throughout: 2^40 rows that are computed instead of stored."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from coreset_mcmc.data.engine import Local, on_part
from coreset_mcmc.data.finite import NotFinite
from coreset_mcmc.data.layout import LEAVES_PER_PART, Layout
from coreset_mcmc.data.one_pass_sample import hashed
from coreset_mcmc.data.rows import Rows, TakeRows
from coreset_mcmc.data.source import Source
from coreset_mcmc.data.task import Task

SIZE = 2**40 + 12_345


class Computed(Source):
    """Every row holds its own number, and NaN in one place."""

    nan_at = 2**39 + 7

    @property
    def size(self) -> int:
        return SIZE

    @property
    def schema(self) -> Any:
        return {"number": jax.ShapeDtypeStruct((), np.int64), "x": jax.ShapeDtypeStruct((), np.float64)}

    def read(self, start: int, stop: int) -> Any:
        numbers = np.arange(start, stop, dtype=np.int64)
        return {"number": numbers, "x": np.where(numbers == self.nan_at, np.nan, 1.0)}

    def fingerprint(self, *, full: bool = False) -> Any:
        return SIZE


ENDS = [0, 2**31 - 1, 2**31, 2**32 + 3, 2**39 + 7, SIZE - 1]


def test_layout() -> None:
    layout = Computed().layout
    assert layout.num_leaves == -(-SIZE // layout.leaf_rows)
    assert layout.rows_of_leaf(layout.num_leaves - 1)[1] == SIZE
    assert layout.leaves_of_part(layout.num_parts - 1)[-1] == layout.num_leaves - 1
    for row in ENDS:
        start, stop = layout.rows_of_leaf(layout.leaf_of_row(row))
        assert start <= row < stop


def test_rows_by_their_numbers() -> None:
    indices = np.array([*ENDS[::-1], ENDS[1]])
    rows = Rows(Computed())
    np.testing.assert_array_equal(rows.take(indices)["number"], indices)
    source, layout = rows.source, rows.layout
    part = layout.leaf_of_row(ENDS[-1]) // LEAVES_PER_PART
    (taken,) = on_part(source, layout, [Task(TakeRows(), (np.array(ENDS),))], part)
    np.testing.assert_array_equal(taken["number"], ENDS[-1:])


def test_numbers_inside_of_programs() -> None:
    """The first row of a leaf is not cut to 32 bits on its way into compiled code."""
    source = Computed()
    layout = source.layout
    for row in ENDS:
        (leaf,) = source.leaves(layout, [layout.leaf_of_row(row)])
        assert leaf.padded.start.dtype == np.int64
        with jax.enable_x64(True):
            assert int(jax.jit(lambda padded: padded.start)(leaf.padded)) == leaf.start


def test_the_first_bad_row() -> None:
    layout = Computed().layout
    part = layout.leaf_of_row(Computed.nan_at) // LEAVES_PER_PART
    ((found,),) = Local(2).each_part(Computed(), layout, [Task(NotFinite())], [part])
    assert found[1].tolist() == [1, Computed.nan_at]


def test_hashes_of_far_rows_are_uniform_and_differ() -> None:
    far = np.concatenate([end + np.arange(20_000, dtype=np.int64) for end in (0, 2**32, 2**40)])
    uniform = hashed(np.uint64(3), far)
    assert len(np.unique(uniform)) == len(far), "numbers that agree in their last 32 bits have hashes of their own"
    for third in uniform.reshape(3, -1):
        counts = np.histogram(third, bins=10, range=(0, 1))[0]
        assert ((counts - 2_000) ** 2 / 2_000).sum() < 40, "chi-squared with 9 degrees of freedom: 1e-5"
    np.testing.assert_array_equal(hashed(np.uint64(3), far[40_000:40_003]), uniform[40_000:40_003])
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(hashed(np.uint64(3), far & 0xFFFFFFFF), uniform)


@pytest.mark.parametrize("values", [1, 11, 1_000, 10**6])
def test_leaves_cover_all_rows_once(values: int) -> None:
    layout = Layout.of(SIZE, values)
    assert (layout.num_leaves - 1) * layout.leaf_rows < SIZE <= layout.num_leaves * layout.leaf_rows
