"""Fits in several threads at once, as in a web service or a notebook with a pool."""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import stats

import coreset_mcmc as cm
from tests.helpers.problems import logistic_data

SETTINGS = {"coreset_size": 30, "draws": 30, "tune": 10, "chains": 2, "progressbar": False}
SEEDS = (0, 1)


def compiled(seed):
    """A model that JAX sees into."""
    return cm.fit(cm.models.logistic_regression(2), logistic_data(seed), random_seed=seed, **SETTINGS)


def host(seed):
    """A model that calls back to Python."""
    model = cm.Model.from_callable(
        lambda position: stats.norm.logpdf(position["location"], 0, 5),
        lambda position, rows: stats.norm.logpdf(rows["y"], loc=position["location"]),
        {"location": np.zeros(())},
    )
    method = cm.Uniform(kernel=cm.kernels.RandomWalk(0.1))
    y = np.random.default_rng(seed).normal(seed, 1.0, size=200)
    return cm.fit(model, {"y": y}, random_seed=seed, method=method, **SETTINGS)


@pytest.mark.full
@pytest.mark.parametrize("fit", [compiled, host])
def test_two_at_once_have_the_bits_of_one_after_the_other(fit):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with ThreadPoolExecutor(len(SEEDS)) as pool:
            at_once = list(pool.map(fit, SEEDS))
        in_turn = [fit(seed) for seed in SEEDS]
    for one, other in zip(at_once, in_turn, strict=True):
        assert one.posterior.equals(other.posterior)
        np.testing.assert_array_equal(one.coreset.weights, other.coreset.weights)
    assert not at_once[0].posterior.equals(at_once[1].posterior)
