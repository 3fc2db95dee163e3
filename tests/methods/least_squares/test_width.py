"""How far from the mode its Gaussian is believed: all the way where it is one, a part of it on a curved ridge."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy import stats

import coreset_mcmc as cm
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.methods.least_squares import start
from coreset_mcmc.methods.least_squares.width import NARROWER, as_wide_as, believable_width
from coreset_mcmc.posterior.by_passes import flat_position, posterior_of
from coreset_mcmc.posterior.newton import NewtonSearch, approximation_at
from coreset_mcmc.posterior.problem import make_problem, starting_positions
from tests.helpers.problems import logistic_data

NUM_GROUPS, NUM_ROWS = 5, 10_000


def curved_ridge():
    """Counts in large groups whose intercepts and slopes are scales times standard normals."""

    def log_prior(position):
        scales = jnp.exp(position["log_scales"])
        total = jnp.sum(stats.norm.logpdf(position["means"], 0.0, 10.0)) + jnp.sum(
            stats.norm.logpdf(position["standard"])
        )
        return total + jnp.sum(stats.norm.logpdf(scales, 0.0, 10.0) + position["log_scales"])

    def log_likelihood(position, batch):
        effects = position["means"] + jnp.exp(position["log_scales"]) * position["standard"]
        own = effects[batch["group"]]
        rate = own[:, 0] + own[:, 1] * batch["x"]
        return batch["y"] * rate - jnp.exp(rate)

    rng = np.random.default_rng(5)
    group, x = rng.integers(NUM_GROUPS, size=NUM_ROWS), rng.normal(size=NUM_ROWS)
    effects = np.array([1.0, 0.5]) + rng.normal(size=(NUM_GROUPS, 2)) * [0.7, 0.3]
    y = rng.poisson(np.exp(effects[group, 0] + effects[group, 1] * x)).astype(float)
    start_at = {"means": np.zeros(2), "log_scales": np.zeros(2), "standard": np.zeros((NUM_GROUPS, 2))}
    return cm.Model(log_prior, log_likelihood, start_at, name="ridge"), {"group": group, "x": x, "y": y}


def width_of(model, data):
    with jax.enable_x64(True):
        rows = to_rows(data)
        starts = starting_positions(model, jax.random.key(0), 1, None)
        selected = SelectedRows(np.arange(10), np.full(10, rows.size / 10))
        problem = make_problem(model, rows, selected, starts)
        found, _ = posterior_of(problem).find_mode(NewtonSearch(), flat_position(problem.position))
        return believable_width(problem, found.position, approximation_at(found))


def test_a_posterior_like_a_gaussian_is_believed():
    model = cm.models.logistic_regression(2)
    assert width_of(model, logistic_data()) == (1.0, 0), "known to have one mode: nothing is looked at"
    plain = cm.Model(model.log_prior, model.log_likelihood, model.initial_position)
    assert width_of(plain, logistic_data())[0] == 1.0


def test_a_curved_ridge_is_not():
    width, num_evaluations = width_of(*curved_ridge())
    assert width in NARROWER
    assert num_evaluations > 0


@pytest.mark.full
@pytest.mark.parametrize("is_whole", [True, False])
def test_slopes_times_their_scale_are_trained(monkeypatch, is_whole):
    """The broken twin believes the Gaussian everywhere: rows are chosen by what they say of impossible counts."""
    if not is_whole:
        monkeypatch.setattr(start, "believable_width", lambda *arguments: (1.0, 0))
    model, data = curved_ridge()
    method = cm.LeastSquares(gaussian_term=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = cm.fit(model, data, method=method, coreset_size=300, draws=50, random_seed=0, progressbar=False)
    assert (fitted.kl_estimate < 0.05) == is_whole


def test_a_scale_is_stretched_where_draws_are_wider_by_far(rng):
    """Along one parameter of three; by chance nothing is."""
    scale = np.linalg.cholesky(np.array([[1.0, 0.3, 0.0], [0.3, 1.0, 0.2], [0.0, 0.2, 1.0]]))
    flat = rng.normal(size=(400, 3)) @ scale.T
    np.testing.assert_array_equal(as_wide_as(scale, flat), scale)
    wide = as_wide_as(scale, flat * np.array([1.0, 40.0, 1.0]))
    np.testing.assert_array_equal(wide[[0, 2]], scale[[0, 2]])
    np.testing.assert_allclose(wide[1], 40.0 * scale[1], rtol=0.2)


def test_a_parameter_that_never_moves_stretches_nothing():
    np.testing.assert_array_equal(as_wide_as(np.eye(2), np.ones((10, 2))), np.eye(2))
