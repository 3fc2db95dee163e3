"""The published minibatches are biased in the way that the docs say, and ours are not."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from coreset_mcmc.methods.coreset_mcmc.minibatch import WithoutReplacement
from coreset_mcmc_benchmarks.paper.published_minibatches import published_windows

pytestmark = pytest.mark.full

SIZE, CORESET = 40, np.array([3, 17, 30, 31])
COUNT = 12


def average_factor(minibatches, num_batches):
    """N / S times how often each row appears, on average: 1 for every row if the estimate is unbiased."""
    state, total = minibatches.init(jax.random.key(0)), np.zeros(SIZE)
    for number in range(num_batches):
        state, rows = minibatches.next(jax.random.key(number), state, SIZE, COUNT)
        assert len(np.unique(rows)) == COUNT
        total += np.bincount(np.asarray(rows), minlength=SIZE)
    return SIZE / COUNT * total / num_batches


def test_coreset_rows_have_too_much_weight_and_the_others_too_little():
    """Over a cycle each other row has factor a = N (S - M) / (S (N - M)), each coreset row N / S."""
    factors = average_factor(published_windows(SIZE, CORESET, with_coreset=True), num_batches=36)
    others = np.setdiff1d(np.arange(SIZE), CORESET)
    np.testing.assert_allclose(factors[CORESET], SIZE / COUNT)
    np.testing.assert_allclose(factors[others], SIZE * (COUNT - 4) / (COUNT * (SIZE - 4)))


def test_plain_windows_visit_every_row_equally_in_file_order():
    windows = published_windows(SIZE, CORESET, with_coreset=False)
    np.testing.assert_allclose(average_factor(windows, num_batches=10), 1.0)
    _, rows = windows.next(jax.random.key(0), windows.init(jax.random.key(0)), SIZE, COUNT)
    np.testing.assert_array_equal(rows, np.arange(COUNT))


def test_our_minibatches_are_unbiased():
    """Standard error of each factor is at most sqrt(N / S / 2000) = 0.04; 6 of them for 40 rows."""
    factors = average_factor(WithoutReplacement(), num_batches=2_000)
    assert np.abs(factors - 1.0).max() < 6 * np.sqrt(SIZE / COUNT / 2_000)
