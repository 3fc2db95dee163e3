"""The division of rows: by their number and width alone, every row once, in order."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coreset_mcmc.data.layout import (
    FEWEST_LEAF_ROWS,
    LEAVES_PER_PART,
    MOST_BLOCK_ROWS,
    MOST_LEAF_ROWS,
    MOST_LEAF_VALUES,
    Layout,
)

layouts = st.builds(Layout.of, st.integers(1, 10**6), st.integers(0, 10**4))


@given(layouts)
def test_leaves_hold_each_row_once_in_order(layout):
    ends = [layout.rows_of_leaf(number) for number in range(layout.num_leaves)]
    assert ends[0][0] == 0
    assert ends[-1][1] == layout.size
    assert all(start < stop for start, stop in ends)
    assert all(one[1] == other[0] for one, other in itertools.pairwise(ends))
    assert {stop - start for start, stop in ends[:-1]} <= {layout.leaf_rows}, "only the last may be shorter"


@given(layouts)
def test_parts_hold_each_leaf_once_in_order(layout):
    numbers = [number for part in range(layout.num_parts) for number in layout.leaves_of_part(part)]
    assert numbers == list(range(layout.num_leaves))
    lengths = [len(layout.leaves_of_part(part)) for part in range(layout.num_parts)]
    assert set(lengths[:-1]) <= {LEAVES_PER_PART}
    assert 1 <= lengths[-1] <= LEAVES_PER_PART


@given(layouts, st.data())
def test_the_leaf_of_a_row_holds_it(layout, data):
    row = data.draw(st.integers(0, layout.size - 1))
    start, stop = layout.rows_of_leaf(layout.leaf_of_row(row))
    assert start <= row < stop


@given(st.integers(1, 10**9), st.integers(0, 10**7))
def test_lengths_are_powers_of_two_within_bounds(size, width):
    layout = Layout.of(size, width)
    assert layout.leaf_rows & (layout.leaf_rows - 1) == 0
    assert FEWEST_LEAF_ROWS <= layout.leaf_rows <= MOST_LEAF_ROWS
    assert layout.leaf_rows % layout.block_rows == 0
    assert layout.block_rows <= MOST_BLOCK_ROWS
    assert layout.leaf_rows == FEWEST_LEAF_ROWS or layout.leaf_rows * max(width, 1) <= MOST_LEAF_VALUES
    assert layout.leaf_rows == FEWEST_LEAF_ROWS or layout.leaf_rows < 2 * size, "few rows are not padded for nothing"


@pytest.mark.parametrize(
    ("size", "width", "leaf_rows", "num_leaves"),
    [
        (1, 3, 256, 1),
        (256, 3, 256, 1),
        (257, 3, 512, 1),
        (8_192, 3, 8_192, 1),
        (8_193, 3, 8_192, 2),
        (98_673, 3, 8_192, 13),
        (131_072, 3, 16_384, 8),
        (524_287, 3, 32_768, 16),
        (524_288, 3, 65_536, 8),
        (10**6, 1_000, 4_096, 245),
        (10**6, 10**6, 256, 3_907),
    ],
)
def test_sizes(size, width, leaf_rows, num_leaves):
    layout = Layout.of(size, width)
    assert (layout.leaf_rows, layout.num_leaves) == (leaf_rows, num_leaves)
