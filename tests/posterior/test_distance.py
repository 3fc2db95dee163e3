"""The estimated KL against closed forms, and what draws alone do not see."""

from __future__ import annotations

import math

import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.posterior.distance import LogDensities, Surveyed, estimated_kl, survey, tail_shape
from coreset_mcmc.posterior.satellites import satellites

NUM_DRAWS = 192


def gaussian_kl(variance):
    return 0.5 * (variance - 1.0 - math.log(variance))


@pytest.mark.statistical
@pytest.mark.parametrize("variance", [0.9, 0.5, 1.5])
def test_gaussians_of_another_width(variance, rng):
    """The mean over forty estimates; heavy tails count as more than they are, never as less than two thirds."""
    found = []
    for _ in range(40):
        draws = rng.normal(size=NUM_DRAWS) * math.sqrt(variance)
        found.append(estimated_kl(0.5 * draws**2 * (1 / variance - 1.0)))
    assert 2 / 3 * gaussian_kl(variance) < np.mean(found) < 3 * gaussian_kl(variance)


def test_the_shape_of_a_narrow_gaussian_is_seen(rng):
    """Variance c gives ratios with a tail of shape 1 - c, which 4 000 draws know to a tenth or so."""
    draws = rng.normal(size=4_000)
    assert tail_shape(0.5 * draws**2 * 0.3) == pytest.approx(0.3, abs=0.25)
    assert tail_shape(0.5 * draws**2 * 0.95) > 0.7
    assert tail_shape(np.zeros(100)) == 0.0


@pytest.mark.parametrize(
    ("log_ratios", "expected"),
    [([0.0], math.nan), ([0.0, -np.inf], math.inf), ([0.0, np.nan], math.inf), ([0.0, 0.0], 0.0)],
)
def test_what_cannot_be_computed(log_ratios, expected):
    np.testing.assert_equal(estimated_kl(np.array(log_ratios)), expected)


def test_pairs_that_are_no_number_are_the_worst():
    draws = LogDensities(np.zeros(8), np.zeros(8))
    around = LogDensities(np.full(8, np.nan), np.zeros(8))
    assert Surveyed(draws, around, is_told=True, reference=np.zeros(1)).kl_estimate == math.inf


@pytest.mark.statistical
def test_satellites_change_no_mean(rng):
    """E_w exp(r) for N(0, 1) and N(0.5, 1) is one if both are normalised; the mean over pairs has a standard error."""
    draws = rng.normal(size=20_000)
    around = satellites(rng, {"x": draws})["x"]
    full, own = (LogDensities(-0.5 * (place - 0.5) ** 2, -0.5 * place**2) for place in (draws, around))
    ratios = np.exp(np.logaddexp(full.full, own.full) - np.logaddexp(full.coreset, own.coreset))
    assert ratios.mean() == pytest.approx(1.0, abs=4.5 * ratios.std() / math.sqrt(len(draws)))


def test_whole_numbers_and_truth_values_stay_what_they_are(rng):
    positions = {"count": np.full(64, 3), "is_on": np.zeros(64, bool), "scale": rng.normal(size=64)}
    moved = satellites(rng, positions)
    assert moved["count"].dtype == positions["count"].dtype
    assert {False, True} == set(moved["is_on"].tolist())
    assert len(set(moved["count"].tolist())) > 3
    assert np.any(moved["scale"] != positions["scale"])


def stepped(position, batch):
    return -0.5 * (batch["y"] - jnp.round(position["level"])) ** 2


STEPS = cm.Model(lambda position: -0.5 * (position["level"] / 10) ** 2, stepped, {"level": 0.0})


@double_precision
def surveyed(model, data, chosen, weights, draws):
    rows = to_rows(data)
    few = rows.weighted({name: column[chosen] for name, column in data.items()}, weights)
    return survey(np.random.default_rng(0), model, rows, few, None, draws, "test")[0].kl_estimate


def test_draws_inside_one_step_are_not_good_because_they_agree(rng):
    """All rows want the level 2; a coreset of rows around zero has all its draws in another step."""
    data = {"y": np.concatenate([np.zeros(10), rng.normal(2.2, 1.0, 400)])}
    inside = {"level": rng.uniform(-0.4, 0.4, NUM_DRAWS)}
    own = np.full(10, 41.0)
    assert surveyed(STEPS, data, np.arange(10), own, inside) > 10.0


def test_draws_in_the_right_step_are_good(rng):
    data = {"y": rng.normal(2.0, 1.0, 400)}
    inside = {"level": rng.uniform(1.6, 2.4, NUM_DRAWS)}
    assert surveyed(STEPS, data, np.arange(400), np.ones(400), inside) == pytest.approx(0.0, abs=1e-9)


def test_rows_that_say_nothing_leave_the_distance_unknown(rng):
    data = {"y": rng.normal(size=50)}
    flat = cm.Model(STEPS.log_prior, lambda position, batch: 0.0 * position["level"] * batch["y"], {"level": 0.0})
    draws = {"level": rng.normal(size=NUM_DRAWS)}
    assert math.isnan(surveyed(flat, data, np.arange(5), np.full(5, 10.0), draws))
    assert math.isnan(surveyed(STEPS, data, np.arange(50), np.ones(50), {"level": np.zeros(NUM_DRAWS)})), "never moved"
