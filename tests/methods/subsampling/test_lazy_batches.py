"""Rows in random order: every row once, uniformly, in blocks that cover the data exactly."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from coreset_mcmc.methods.subsampling.lazy_batches import WIDE, WIDE_AFTER, plan_blocks, row_order


@pytest.mark.parametrize("size", [1, 2, 63, 64, 65, 399, 400, 4_096, 5_000, 100_000, 98_673])
@pytest.mark.parametrize("width", [1, 2, 64, 100, 1_000, 5_000])
def test_blocks_cover_the_rows_exactly(size, width):
    plan = plan_blocks(size, width)
    assert plan[0].start == 0
    assert plan[0].width == min(width, size)
    assert [blocks.end for blocks in plan[:-1]] == [blocks.start for blocks in plan[1:]]
    assert plan[-1].end == size
    assert len(plan) <= 3


def test_wide_blocks_wait_until_they_are_small_change():
    narrow, broad, rest = plan_blocks(100_010, 100)
    assert broad.width == 1_000 <= WIDE
    assert broad.start >= WIDE_AFTER * broad.width
    assert (narrow.width, rest.width) == (100, 10)


@pytest.mark.parametrize("size", [37, 3_001])
def test_every_row_comes_once(key, size):
    """Fetched block by block, as a step does."""
    block = jax.jit(lambda start: row_order(key, size)(start + jnp.arange(10)))
    seen = np.concatenate([block(start) for start in range(0, size - 9, 10)])
    assert len(np.unique(seen)) == len(seen) == size // 10 * 10
    assert seen.min() >= 0
    assert seen.max() < size


@pytest.mark.statistical
@pytest.mark.parametrize("size", [24, 1_200])
def test_each_row_is_as_likely_as_any_other(key, size):
    """A chi-squared test of which row comes second, 20 rows to each expected; false-alarm rate 1e-4."""
    keys = jax.random.split(key, 20 * size)
    second = np.asarray(jax.jit(jax.vmap(lambda key: row_order(key, size)(jnp.array([1]))[0]))(keys))
    counts = np.bincount(second, minlength=size)
    assert stats.chisquare(counts).pvalue > 1e-4
