"""Simulation-based calibration in short: ranks of the whole pipeline are uniform, those of a broken twin are not.

The long form, eight models, is ``coreset-mcmc bench calibration``.
"""

from __future__ import annotations

import numpy as np
import pytest

from coreset_mcmc_benchmarks.calibration.models import MODELS
from coreset_mcmc_benchmarks.calibration.page import ALARM, smallest_p
from coreset_mcmc_benchmarks.calibration.ranks import KEPT, coverage, fitted, ranks_of, tripled, uniformity

REPLICATIONS = 25


def test_uniform_ranks_pass_and_others_do_not(rng):
    ranks = rng.integers(0, KEPT + 1, 400)
    assert uniformity(ranks) > 1e-3
    assert uniformity(np.where(ranks < 32, ranks // 2, ranks)) < 1e-6
    assert coverage(np.arange(KEPT + 1)) == pytest.approx(0.9, abs=0.02)
    assert smallest_p({"a": np.zeros(50, int), "b": ranks}) < 1e-6


@pytest.mark.parametrize("name", MODELS)
def test_models_simulate_what_they_say(name, rng):
    made = MODELS[name].simulate(rng)
    assert all(np.isfinite(value).all() for value in made.truth.values())


@pytest.mark.full
def test_the_whole_pipeline_is_calibrated_and_its_broken_twin_is_not():
    """Ranks of three coefficients of a logistic regression together; one false alarm in a hundred, fixed seeds."""
    good, bad = [], []
    for seed in range(REPLICATIONS):
        rng = np.random.default_rng(seed)
        made = MODELS["logistic"].simulate(rng)
        fit = fitted(made, seed, coreset_size=MODELS["logistic"].size)
        good += ranks_of(fit, made.truth, rng).values()
        bad += ranks_of(tripled(fit, made, seed), made.truth, rng).values()
    assert uniformity(np.array(good)) > ALARM
    assert uniformity(np.array(bad)) < ALARM
    assert coverage(np.array(good)) > 0.8 > coverage(np.array(bad))
