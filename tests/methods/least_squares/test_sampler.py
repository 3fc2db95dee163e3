"""A wall beside a plain: a level without an event, whose posterior is as wide as its prior."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.core.errors import InputError
from coreset_mcmc.methods.least_squares import sampler

NUM_COLUMNS, NUM_ROWS, NUM_LONELY, PRIOR = 12, 20_000, 6, 100.0


def test_what_is_far_wider_is_taken_apart():
    gaussian = np.linalg.cholesky(np.array([[1.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 4.0]]))
    stretched = gaussian * np.array([1.0, 40.0, 3.0])[:, None]
    scale, places, widths = sampler.apart(stretched, gaussian)
    np.testing.assert_array_equal(places, [1])
    np.testing.assert_allclose(widths, [40.0])
    np.testing.assert_allclose(scale, gaussian * np.array([1.0, 1.0, 3.0])[:, None])
    assert not sampler.apart(np.full((3, 3), np.nan), gaussian)[1].size
    assert not sampler.apart(gaussian, 0.0 * gaussian)[1].size


def model() -> cm.Model:
    """A logistic regression with a column that few rows have, and a wide prior on its coefficient alone."""
    deviations = jnp.ones(NUM_COLUMNS).at[-1].set(PRIOR)
    return cm.Model(
        lambda position: -0.5 * jnp.sum((position["beta"] / deviations) ** 2),
        lambda position, rows: -jax.nn.softplus(jnp.where(rows["y"] > 0, -1.0, 1.0) * (rows["x"] @ position["beta"])),
        {"beta": np.zeros(NUM_COLUMNS)},
        log_concave=True,
    )


def lonely_level():
    generator = np.random.default_rng(4)
    x = generator.normal(size=(NUM_ROWS, NUM_COLUMNS))
    x[:, 0], x[:, -1] = 1.0, 0.0
    x[:NUM_LONELY, 1:-1], x[:NUM_LONELY, -1] = 0.0, 1.0
    beta = np.r_[-1.0, 0.2 * generator.normal(size=NUM_COLUMNS - 2), 0.0]
    y = (generator.random(NUM_ROWS) < 1.0 / (1.0 + np.exp(-x @ beta))).astype(float)
    y[:NUM_LONELY] = 0.0
    return {"x": x, "y": y}


@pytest.mark.full
def test_slices_cross_the_plain():
    """Given the intercept, which all rows tell, the coefficient is one integral; a draw takes few evaluations."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = cm.fit(model(), lonely_level(), coreset_size=60, draws=1_500, random_seed=2, progressbar=False)
    assert fitted.has_term
    draws = fitted.posterior["beta"].to_numpy()
    alone, intercept = draws[..., -1], draws[..., 0].mean()
    grid = np.linspace(-8 * PRIOR, 30.0, 200_001)
    log_density = -NUM_LONELY * np.logaddexp(0.0, intercept + grid) - 0.5 * (grid / PRIOR) ** 2
    density = np.exp(log_density - log_density.max())
    share = np.cumsum(density) / density.sum()
    ess = float(cm.metrics.bulk_ess(alone[..., None])[0])
    assert ess > 300
    for quantile in (0.1, 0.5, 0.9):
        below = np.mean(alone < grid[np.searchsorted(share, quantile)])
        assert below == pytest.approx(quantile, abs=4.0 * np.sqrt(quantile * (1 - quantile) / ess) + 0.005)
    assert fitted.sampling.num_evaluations < 60 * 4 * 1_600 * 60, "trees took a thousand evaluations for each draw"


@pytest.mark.full
def test_without_slices_the_plain_is_not_crossed_in_so_few_evaluations(monkeypatch):
    """The broken twin."""
    monkeypatch.setattr(sampler, "FAR_WIDER", np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = cm.fit(model(), lonely_level(), coreset_size=60, draws=300, random_seed=2, progressbar=False)
    evaluations = fitted.sampling.num_evaluations / (60 * 4 * 400)
    ess = float(cm.metrics.bulk_ess(fitted.posterior["beta"].to_numpy()[..., -1:])[0])
    assert evaluations > 60 or ess < 100


def test_places_that_are_none_are_refused():
    kernel = cm.kernels.HMCAndLines(np.eye(NUM_COLUMNS), 0.5, np.array([NUM_COLUMNS]), np.array([1.0]))
    data = {name: column[:200] for name, column in lonely_level().items()}
    with pytest.raises(InputError, match="one of the 12 parameters"):
        cm.fit(model(), data, coreset_size=50, kernel=kernel, draws=10, progressbar=False)
