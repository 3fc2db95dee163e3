"""Pareto smoothing where there is hardly a tail to smooth."""

import math
import warnings

import numpy as np
import pytest

from coreset_mcmc.results.ratios import smoothed


@pytest.mark.parametrize("count", [1, 3, 10, 100])
def test_equal_ratios_have_no_tail(count):
    found = smoothed(np.full(count, 7.0))
    assert found.pareto_k == 0.0
    np.testing.assert_allclose(np.exp(found.log_weights), 1.0 / count)


def test_a_flat_top_is_left_as_it_is_and_not_trusted():
    ratios = np.concatenate([np.linspace(-9.0, -1.0, 60), np.zeros(40)])
    found = smoothed(ratios)
    assert found.pareto_k == math.inf
    np.testing.assert_allclose(found.log_weights - found.log_weights.max(), ratios)


@pytest.mark.parametrize("count", [2, 5, 12])
def test_few_draws_warn_of_nothing_here(count):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = smoothed(np.random.default_rng(0).normal(size=count))
    assert np.exp(found.log_weights).sum() == pytest.approx(1.0)


def test_impossible_draws_weigh_nothing():
    found = smoothed(np.array([0.0, -np.inf, 0.5, 0.2, -np.inf]))
    assert np.isneginf(found.log_weights).tolist() == [False, True, False, False, True]
