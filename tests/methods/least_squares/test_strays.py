"""Draws far below all others have no say in the weights: on a curved ridge most draws of a Gaussian are such."""

from __future__ import annotations

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from jax.scipy import stats

import coreset_mcmc as cm
from coreset_mcmc.methods.hopeless import hopeless_depth
from coreset_mcmc.methods.least_squares.equations import (
    Window,
    half_variance,
    solve,
    without_nonfinite,
    without_strays,
)

NUM_GROUPS, NUM_ROWS = 8, 8_000


def window(totals):
    totals = np.asarray(totals, float)
    return Window(np.outer(totals, [1.0, 2.0]), totals)


def test_hopeless_draws_are_left_out_and_the_others_centred_anew():
    lowest = -hopeless_depth(3)
    kept = without_strays(window([0.0, lowest + 1.0, lowest - 1.0, np.nan, -np.inf]), 3)
    assert np.isfinite(kept.totals).tolist() == [True, True, False, False, False]
    assert np.isfinite(kept.values).all(axis=1).tolist() == [True, True, False, False, False]
    np.testing.assert_allclose([kept.totals[:2].mean(), kept.values[:2].mean()], 0.0, atol=1e-12)


def test_an_ordinary_window_stays_as_it_is(rng):
    ordinary = window(-rng.gamma(5.0, size=40))
    assert without_strays(ordinary, 10) is ordinary


def curved_ridge():
    """Counts in eight large groups whose effects are a scale times standard normals: their product is well known."""

    def log_prior(position):
        total = stats.norm.logpdf(position["mean"], 0.0, 2.0) + jnp.sum(stats.norm.logpdf(position["standard"]))
        return total + stats.norm.logpdf(jnp.exp(position["log_scale"])) + position["log_scale"]

    def log_likelihood(position, batch):
        effect = position["mean"] + jnp.exp(position["log_scale"]) * position["standard"][batch["group"]]
        return batch["y"] * effect - jnp.exp(effect)

    rng = np.random.default_rng(5)
    group = rng.integers(NUM_GROUPS, size=NUM_ROWS)
    data = {"group": group, "y": rng.poisson(np.exp(3.0 + 0.6 * rng.normal(size=NUM_GROUPS))[group]).astype(float)}
    start = {"mean": 0.0, "log_scale": 0.0, "standard": np.zeros(NUM_GROUPS)}
    return cm.Model(log_prior, log_likelihood, start, name="ridge"), data


@pytest.mark.full
def test_effects_times_their_scale_are_trained():
    model, data = curved_ridge()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fitted = cm.fit(model, data, coreset_size=300, draws=200, random_seed=0, progressbar=False)
    assert fitted.kl_estimate < 0.01


@pytest.mark.parametrize("is_whole", [True, False])
def test_weights_are_right_where_the_posterior_is(rng, is_whole):
    """Rows that agree with the sum near the posterior, and nowhere else; the broken twin solves for everywhere."""
    near, far = rng.normal(size=(60, 4)), 60.0 * rng.normal(size=(20, 4))
    draws = np.concatenate([near, far])
    values = -(np.abs(draws) ** np.array([2.0, 2.0, 2.5, 3.0]))
    totals = -np.sum(draws**2, axis=1)
    whole = Window(values - values.mean(axis=0), totals - totals.mean())
    solved = solve(without_nonfinite(without_strays(whole, 4) if is_whole else whole), np.ones(4), 1e-6).weights
    own = Window(values[:60] - values[:60].mean(axis=0), totals[:60] - totals[:60].mean())
    assert (half_variance(own, solved) < 0.5) == is_whole
