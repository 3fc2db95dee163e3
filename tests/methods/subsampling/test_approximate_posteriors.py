"""Austerity and Confidence MH recover known posteriors, up to Monte Carlo error and a stated bias."""

from __future__ import annotations

import numpy as np
import pytest

from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.driver.run import run
from coreset_mcmc.methods.subsampling import AusterityMH, ConfidenceMH, GaussianProposal
from coreset_mcmc.models import gaussian_location, logistic_regression
from coreset_mcmc.posterior.problem import make_problem, starting_positions

NUM_ROWS, NUM_CHAINS, NUM_STEPS, DISCARDED, NUM_BATCHES = 300, 4, 2_200, 200, 10


def sample(method, model, data, start, key):
    starts = starting_positions(model, key, 1, start)
    problem = make_problem(model, to_array_data(data), SelectedRows(np.arange(2), np.ones(2)), starts)
    method.check(problem)
    state = method.init(key, problem)
    sampler, sampling_problem, *_ = method.finish(state, problem, kernel=None, num_chains=NUM_CHAINS)
    return run(sampler, sampling_problem, key, num_steps=NUM_STEPS).history


def largest_z(draws, mean, deviation, bias):
    """Distance of mean and variance from the posterior's, beyond the bias, in standard errors from batch means."""
    scaled = (draws[DISCARDED:] - mean) / deviation
    worst = []
    for values, expected in ((scaled, 0.0), (scaled**2, 1.0)):
        batches = values.reshape(NUM_BATCHES, -1, NUM_CHAINS, values.shape[-1]).mean(axis=1)
        batches = batches.reshape(NUM_BATCHES * NUM_CHAINS, -1)
        error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
        worst.append(np.maximum(np.abs(batches.mean(axis=0) - expected) - bias, 0) / error)
    return float(np.max(worst))


@pytest.mark.full
@pytest.mark.statistical
def test_austerity_recovers_the_gaussian_location_posterior(key):
    """Two z-scores below 5 with 39 degrees of freedom: false-alarm rate 3e-5.

    With a tail of 1e-3 at each of five looks a decision is wrong with probability below 0.005, near ties only; a chain
    that forgets within ten steps then has a law within 0.05 of the posterior in total variation, the bias allowed. A
    tail of 0.49 decides after 50 rows and must fail.
    """
    rows = np.random.default_rng(2).normal(size=(NUM_ROWS, 1)) + 0.7
    mean, deviation = rows.sum(axis=0) / (1 + NUM_ROWS), 1 / np.sqrt(1 + NUM_ROWS)
    proposal = GaussianProposal((2.4 * deviation) ** 2)
    careful, hasty = (
        sample(AusterityMH(proposal, 50, error), gaussian_location(1), rows, {"theta": mean}, key)
        for error in (1e-3, 0.49)
    )
    assert largest_z(careful.position["theta"], mean, deviation, bias=0.05) < 5
    assert largest_z(hasty.position["theta"], mean, deviation, bias=0.05) > 5
    assert hasty.num_steps.mean() < careful.num_steps.mean() < NUM_ROWS


def logistic_posterior(data):
    """Means and deviations by quadrature on a grid."""
    axes = np.linspace(-1.5, 1.5, 161), np.linspace(-0.5, 3.0, 161)
    intercept, slope = np.meshgrid(*axes, indexing="ij")
    log_density = -np.log1p(intercept**2) - np.log1p(slope**2)
    for x, y in zip(data["x"][:, 0], data["y"], strict=True):
        log_density -= np.logaddexp(0, (1 - 2 * y) * (intercept + slope * x))
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    points = np.stack([intercept, slope], axis=-1)
    mean = np.einsum("ij,ijk->k", weights, points)
    return mean, np.sqrt(np.einsum("ij,ijk->k", weights, (points - mean) ** 2))


@pytest.mark.full
@pytest.mark.statistical
def test_confidence_recovers_a_logistic_posterior(key):
    """Four z-scores below 5 with 39 degrees of freedom: false-alarm rate 5e-5. The bound is so conservative that wrong
    decisions do not occur in practice: no bias is allowed for beyond the grid's.
    """
    rng = np.random.default_rng(4)
    x = rng.normal(size=(NUM_ROWS, 1))
    data = {"x": x, "y": (rng.random(NUM_ROWS) < 1 / (1 + np.exp(-x[:, 0]))).astype(float)}
    mean, deviation = logistic_posterior(data)
    method = ConfidenceMH(GaussianProposal((1.7 * deviation) ** 2), bound="model")
    drawn = sample(method, logistic_regression(1), data, {"beta": mean}, key)
    assert largest_z(drawn.position["beta"], mean, deviation, bias=0.001) < 5
    assert largest_z(drawn.position["beta"], mean, 0.8 * deviation, bias=0.001) > 5
    assert drawn.num_steps.mean() <= NUM_ROWS
