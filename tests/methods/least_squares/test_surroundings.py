"""Steps of the log-likelihood: an estimate of zero from equations that say nothing does not end training."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm

SIZE, NUM_ROWS, SPREAD = 200, 10, 4.0


def stepped(position, batch):
    return -0.5 * ((batch["y"] - jnp.round(position["level"])) / SPREAD) ** 2


@pytest.fixture(scope="module")
def data():
    return {"y": np.random.default_rng(1).normal(3.4, SPREAD, SIZE)}


@pytest.mark.full
@pytest.mark.parametrize(
    "number", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
@pytest.mark.filterwarnings("ignore:The smallest bulk ESS", "ignore:The largest R-hat")
def test_a_rounded_level_is_found(data, number):
    """Ten random rows of weight twenty want another level than all rows, and each level is a step of its own."""
    model = cm.Model(
        lambda position: -0.5 * (position["level"] / 10) ** 2, stepped, {"level": 0.2}, differentiable=False
    )
    fitted = cm.fit(model, data, coreset_size=NUM_ROWS, draws=500, tune=200, random_seed=number, progressbar=False)
    levels = np.arange(-10, 17)
    log_density = [-0.5 * np.sum(((data["y"] - level) / SPREAD) ** 2) - 0.5 * (level / 10) ** 2 for level in levels]
    density = np.exp(np.asarray(log_density) - np.max(log_density))
    share = density / density.sum()
    drawn = np.round(fitted.posterior["level"].to_numpy())
    off = 0.5 * np.sum(np.abs(share - np.array([np.mean(drawn == level) for level in levels])))
    ess = float(cm.metrics.bulk_ess(drawn[..., None])[0])
    assert off < 4.5 * 0.5 / np.sqrt(ess) + np.sqrt(fitted.kl_estimate / 2), "Pinsker, and Monte Carlo error"
    assert fitted.kl_estimate < 0.1


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:The smallest bulk ESS", "ignore:The largest R-hat")
def test_rows_that_say_nothing_leave_the_distance_unknown(data):
    """The posterior is the prior; nothing tells so, and the user is told that."""
    model = cm.Model(
        lambda position: -0.5 * position["level"] ** 2,
        lambda position, batch: 0.0 * position["level"] * batch["y"],
        {"level": 0.2},
        differentiable=False,
    )
    method = cm.LeastSquares(num_draws=40, num_rounds=2)
    with pytest.warns(UserWarning, match="unknown: the rows say the same"):
        fitted = cm.fit(
            model, data, coreset_size=NUM_ROWS, method=method, draws=100, tune=20, random_seed=0, progressbar=False
        )
    assert np.isnan(fitted.kl_estimate)
    assert fitted.trust(sensitivity=False, num_coresets=1).verdict == "do not use"
