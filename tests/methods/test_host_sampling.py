"""Chains that move in Python: right draws of a coreset posterior, few calls, and no call where the prior is zero."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import stats

import coreset_mcmc as cm
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.diagnostics.metrics import bulk_ess
from coreset_mcmc.driver.run import run
from coreset_mcmc.methods.host_sampling import HostDensity, HostSampling
from coreset_mcmc.methods.sampling import SamplingProblem
from coreset_mcmc.posterior.gaussian_term import GaussianTerm
from coreset_mcmc.posterior.target import CoresetTarget

ROWS = {"y": np.array([0.5, 1.5, 2.0, 7.0])}
WEIGHTS = np.array([3.0, 2.0, 5.0, 0.0])
"""The last row counts for nothing."""
START = {"mean": np.zeros((4, 1))}


def log_prior(position):
    return -0.5 * float(np.sum(position["mean"] ** 2))


def log_likelihood(position, rows):
    return stats.norm.logpdf(rows["y"], position["mean"][0])


def target(prior=log_prior, likelihood=log_likelihood, term=None):
    model = cm.Model.from_callable(prior, likelihood, {"mean": np.zeros(1)})
    return CoresetTarget(ROWS, WEIGHTS, model, term)


def exact(extra_slope=0.0, extra_precision=0.0):
    precision = 1.0 + WEIGHTS.sum() + extra_precision
    return (WEIGHTS @ ROWS["y"] + extra_slope) / precision, precision**-0.5


@double_precision
def drawn(problem, sampler, num_steps=700):
    return run(sampler, problem, jax.random.key(0), num_steps=num_steps)


@pytest.mark.full
@pytest.mark.parametrize("centre", [1.6, np.nan, 30.0], ids=["known", "unknown", "wrong"])
def test_draws_are_those_of_the_coreset_posterior(centre):
    sampler = HostSampling(np.array([centre]), np.array([[0.3]]))
    history = drawn(SamplingProblem(target(), START), sampler).history
    flat = np.swapaxes(history.position["mean"], 0, 1)[:, 50:]
    mean, deviation = exact()
    values = np.concatenate([flat, flat**2], axis=2)
    error = values.std(axis=(0, 1)) / np.sqrt(bulk_ess(values))
    assert np.all(np.abs(values.mean(axis=(0, 1)) - [mean, mean**2 + deviation**2]) < 4 * error)
    assert not history.diverging.any()


def test_a_gaussian_term_counts():
    term = GaussianTerm(np.zeros(1), np.array([20.0]), np.array([[9.0]]))
    density = HostDensity(target(term=term), {"mean": np.zeros(1)})
    mean, deviation = exact(20.0, 9.0)
    heights = density(np.array([[mean - deviation], [mean], [mean + deviation]]))
    np.testing.assert_allclose(heights - heights[1], [-0.5, 0.0, -0.5], atol=1e-9)


def test_the_likelihood_is_not_asked_where_the_prior_is_zero_and_nan_is_impossible():
    def prior(position):
        return 0.0 if position["mean"][0] > 0 else -np.inf

    def likelihood(position, rows):
        assert position["mean"][0] > 0
        return np.full(len(rows["y"]), np.nan) if position["mean"][0] > 5 else log_likelihood(position, rows)

    density = HostDensity(target(prior, likelihood), {"mean": np.zeros(1)})
    heights = density(np.array([[-1.0], [1.0], [6.0]]))
    assert heights[0] == heights[2] == -np.inf
    assert np.isfinite(heights[1])


def test_few_evaluations_where_ellipses_serve_and_lines_where_they_do_not():
    problem = SamplingProblem(target(), START)
    serving = drawn(problem, HostSampling(np.array([exact()[0]]), np.array([[exact()[1]]])), 100).history
    wrong = drawn(problem, HostSampling(np.array([30.0]), np.array([[0.01]])), 100).history
    assert serving.num_steps[20:].mean() < 4.0
    assert np.ptp(wrong.position["mean"][50:]) > exact()[1]
