"""LOO of draws whose law is known: a Gaussian with known spread, where every integral has a closed form.

Draws of the coreset posterior are made directly, so nothing but Monte Carlo error of importance sampling stands between
LOO and the truth. That error follows from the influence of each draw: with normalised weights W_is and p_i their mean
of p_is, draw s moves log p_i by W_is (p_is / p_i - 1), and the sum over rows i by the sum of these.
"""

from __future__ import annotations

import warnings

import arviz_stats
import numpy as np
import pytest
import xarray

import coreset_mcmc as cm
from coreset_mcmc.data import blocks
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.results import loo

pytestmark = pytest.mark.full

NUM_ROWS, NUM_DRAWS = 60, 20_000
Y = np.random.default_rng(0).normal(1.0, 1.0, size=NUM_ROWS)
PRIOR_PRECISION = 0.01
MODEL = cm.Model(
    lambda position: -0.5 * PRIOR_PRECISION * position["mean"] ** 2,
    lambda position, rows: -0.5 * (rows["y"] - position["mean"]) ** 2,
    {"mean": np.zeros(())},
)
TOO_MANY_ERRORS = 4.9
"""Standard errors that a normal variable exceeds once in a million times."""


def posterior(weights):
    """Mean and precision."""
    precision = PRIOR_PRECISION + weights.sum()
    return weights @ Y / precision, precision


def exact_elpd(weights):
    """Of each row: its density under the posterior of these weights without the row itself."""
    mean, precision = posterior(weights)
    mean, precision = (mean * precision - Y) / (precision - 1), precision - 1
    variance = 1 + 1 / precision
    return -0.5 * (np.log(variance) + (Y - mean) ** 2 / variance)


def exact_draws(weights, rng):
    mean, precision = posterior(weights)
    return {"mean": rng.normal(mean, precision**-0.5, size=(4, NUM_DRAWS // 4))}


def monte_carlo_errors(draws, weights, reweight):
    """Of each row, and of their sum."""
    values = -0.5 * (Y[:, None] - draws["mean"].ravel()) ** 2
    log_ratios = (1 - weights) @ values if reweight else np.zeros(NUM_DRAWS)
    log_weights = log_ratios - values
    normalised = np.exp(log_weights - log_weights.max(axis=1, keepdims=True))
    normalised /= normalised.sum(axis=1, keepdims=True)
    densities = np.exp(values)
    influence = normalised * (densities / np.sum(normalised * densities, axis=1, keepdims=True) - 1)
    return np.linalg.norm(influence, axis=1), np.linalg.norm(influence.sum(axis=0))


def found(draws, coreset, reweight):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return loo.loo(
            MODEL,
            draws,
            {"y": Y},
            coreset=None if coreset is None else SelectedRows(*coreset),
            draws=None,
            reweight=reweight,
        )


def leaning_weights():
    """A coreset of all rows that prefers large ones: its posterior is half a standard deviation away."""
    weights = 1 + 0.5 * (Y - Y.mean()) / np.sqrt(NUM_ROWS) / Y.var()
    shift = (posterior(weights)[0] - posterior(np.ones(NUM_ROWS))[0]) * np.sqrt(NUM_ROWS)
    assert 0.4 < shift < 0.6
    return weights


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("weights", "reweight", "target"),
    [
        pytest.param(np.ones(NUM_ROWS), True, np.ones(NUM_ROWS), id="full posterior"),
        pytest.param(leaning_weights(), True, np.ones(NUM_ROWS), id="coreset, corrected"),
        pytest.param(leaning_weights(), False, leaning_weights(), id="coreset, as it is"),
    ],
)
def test_loo_is_the_exact_one(weights, reweight, target, rng):
    draws = exact_draws(weights, rng)
    ours = found(draws, (np.arange(NUM_ROWS), weights), reweight)
    of_rows, of_sum = monte_carlo_errors(draws, weights, reweight)
    exact = exact_elpd(target)
    assert abs(ours.elpd - exact.sum()) < TOO_MANY_ERRORS * of_sum
    assert np.all(np.abs(ours.elpd_i - exact) < TOO_MANY_ERRORS * of_rows)


@pytest.mark.statistical
def test_a_missing_correction_would_show(rng):
    """The two exact values differ by more than the errors that the test above allows."""
    weights = leaning_weights()
    difference = exact_elpd(weights).sum() - exact_elpd(np.ones(NUM_ROWS)).sum()
    _, error = monte_carlo_errors(exact_draws(weights, rng), weights, reweight=True)
    assert abs(difference) > TOO_MANY_ERRORS * error


@pytest.mark.statistical
def test_loo_is_that_of_arviz_on_the_same_draws(monkeypatch, rng):
    """Two programs that smooth the same tail differ by less than the noise of the draws in it."""
    monkeypatch.setattr(blocks, "VALUES_PER_BLOCK", 3 * NUM_DRAWS * 16)
    draws = exact_draws(np.ones(NUM_ROWS), rng)
    ours = found(draws, None, reweight=True)
    values = -0.5 * (Y - draws["mean"][..., None]) ** 2
    tree = xarray.DataTree.from_dict(
        {
            "posterior": xarray.Dataset({"mean": (("chain", "draw"), draws["mean"])}),
            "log_likelihood": xarray.Dataset({"y": (("chain", "draw", "row"), values)}),
        }
    )
    theirs = arviz_stats.loo(tree, pointwise=True)
    of_rows, of_sum = monte_carlo_errors(draws, np.ones(NUM_ROWS), reweight=False)
    difference = ours.elpd_i.to_numpy() - theirs.elpd_i.to_numpy()
    assert np.all(np.abs(difference) < of_rows)
    assert abs(ours.elpd - theirs.elpd) < of_sum
    assert ours.p + ours.elpd == pytest.approx(theirs.p + theirs.elpd, rel=1e-10)
    rounding = 1e-10
    assert abs(ours.se - theirs.se) <= np.linalg.norm(difference) + rounding
