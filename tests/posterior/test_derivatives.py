"""Models whose derivatives do not exist are told apart before any work."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data import to_rows
from coreset_mcmc.posterior.derivatives import without_missing_derivatives

COUNTS = np.random.default_rng(0).negative_binomial(3, 0.5, size=200)


def log_likelihood(position, batch):
    """The distribution function of a negative binomial, which JAX cannot differentiate in its size."""
    size = jnp.exp(position["size"])
    return jnp.log(jax.scipy.special.betainc(size, batch["y"] + 1.0, 0.5)) - 0.1 * (batch["y"] - size) ** 2


MODEL = cm.Model(lambda position: -(position["size"] ** 2), log_likelihood, {"size": np.array(0.5)}, name="counts")


def test_a_model_without_derivatives_says_so_once():
    rows = to_rows({"y": COUNTS})
    positions = {"size": np.zeros(2)}
    with (
        jax.enable_x64(True),
        pytest.warns(UserWarning, match=r"'counts' has no derivatives \(Betainc.*slices") as told,
    ):
        found = without_missing_derivatives(MODEL, rows, positions)
    assert len(told) == 1
    assert not found.differentiable
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert without_missing_derivatives(found, rows, positions) is found
        smooth = cm.Model(MODEL.log_prior, lambda at, batch: -((batch["y"] - at["size"]) ** 2), MODEL.initial_position)
        assert without_missing_derivatives(smooth, rows, positions) is smooth


@pytest.mark.slow
def test_it_is_fitted_all_the_same():
    """Against the posterior on a grid: within five Monte Carlo errors of 50 effective draws."""
    with pytest.warns(UserWarning, match="no derivatives"):
        fit = cm.fit(
            MODEL, {"y": COUNTS}, coreset_size=30, draws=100, tune=50, chains=2, random_seed=1, progressbar=False
        )
    grid = np.linspace(-1, 3, 400)
    with jax.enable_x64(True):
        batch = {"y": jnp.asarray(COUNTS)}
        values = np.array(
            [float(MODEL.log_prior({"size": at}) + log_likelihood({"size": at}, batch).sum()) for at in grid]
        )
    weights = np.exp(values - values.max())
    mean = np.average(grid, weights=weights)
    deviation = np.sqrt(np.average((grid - mean) ** 2, weights=weights))
    assert abs(float(fit.posterior["size"].mean()) - mean) < 5 * deviation / np.sqrt(50) + 0.2 * deviation
