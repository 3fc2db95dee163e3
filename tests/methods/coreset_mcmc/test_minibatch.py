"""Minibatches: distinct rows, and scans that visit every row once a pass."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from coreset_mcmc.methods.coreset_mcmc.minibatch import RandomOrderScan, WithoutReplacement


@pytest.mark.parametrize("size", [100, 5_000], ids=["exact shuffle", "keyed permutation"])
def test_rows_are_distinct(key, size):
    _, rows = WithoutReplacement().next(key, (), size, 60)
    assert len(set(np.asarray(rows).tolist())) == 60
    assert rows.min() >= 0
    assert rows.max() < size


@pytest.mark.parametrize("size", [100, 5_000])
def test_a_scan_visits_every_row_once_and_reshuffles(key, size):
    scan, count = RandomOrderScan(), size // 10
    advance = jax.jit(lambda key, state: scan.next(key, state, size, count))
    state, passes = scan.init(key), []
    for number in range(20):
        state, rows = advance(jax.random.fold_in(key, number), state)
        passes.append(np.asarray(rows))
    first, second = np.concatenate(passes[:10]), np.concatenate(passes[10:])
    assert sorted(first.tolist()) == list(range(size))
    assert sorted(second.tolist()) == list(range(size))
    assert not np.array_equal(first, second)


def test_a_scan_drops_the_incomplete_block(key):
    """With 10 rows in blocks of 4 a pass holds two blocks; the third block belongs to a new order."""
    scan, state = RandomOrderScan(), RandomOrderScan().init(key)
    blocks = []
    for number in range(3):
        state, rows = scan.next(jax.random.fold_in(key, number), state, 10, 4)
        blocks.append(np.asarray(rows))
    assert len(set(np.concatenate(blocks[:2]).tolist())) == 8
    assert int(state.cursor) == 4
