"""Values on the user's scale, predictions and LOO, on models small enough to check by hand."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data import blocks
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.models import user_scale as constrained
from coreset_mcmc.models.user_scale import shown_draws, shown_names
from coreset_mcmc.results import loo
from coreset_mcmc.results.predictive import predict

Y = np.random.default_rng(0).normal(1.0, 2.0, size=500)


def log_prior(position):
    return -0.5 * position["mean"] ** 2 / 100 - 0.5 * position["log_scale"] ** 2


def log_likelihood(position, rows):
    return -0.5 * ((rows["y"] - position["mean"]) * jnp.exp(-position["log_scale"])) ** 2 - position["log_scale"]


def shown(position):
    scale = jnp.exp(position["log_scale"])
    return {"mean": position["mean"], "scale": scale, "both": jnp.stack([position["mean"], scale])}


def predictive(key, position, rows):
    noise = jax.random.normal(key, (rows["x"] if "x" in rows else rows["y"]).shape[:1])
    return {"y": position["mean"] + jnp.exp(position["log_scale"]) * noise, "fixed": 0.0 * noise + position["mean"]}


MODEL = cm.Model(
    log_prior,
    log_likelihood,
    {"mean": np.zeros(()), "log_scale": np.zeros(())},
    constrain=shown,
    unconstrain=lambda values, position: {**position, "log_scale": jnp.log(values["scale"])},
    predictive=predictive,
    observed=("y",),
    dims={"both": ("statistic",)},
    coords={"statistic": ["mean", "scale"]},
    data={"y": Y},
)


@pytest.fixture(scope="module")
def fitted():
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cm.fit(MODEL, coreset_size=40, draws=250, tune=100, chains=4, random_seed=0, progressbar=False)


def test_a_model_may_hold_its_data(fitted):
    assert fitted.coreset.num_rows == 500
    with pytest.raises(cm.InputError, match="data: got None, and the model holds none"):
        cm.fit(cm.Model(log_prior, log_likelihood, MODEL.initial_position))


def test_posterior_shows_what_the_user_knows(fitted):
    tree = fitted.tree
    assert set(tree["posterior"].data_vars) == {"mean", "scale", "both"}
    assert list(tree["posterior"]["both"]["statistic"].to_numpy()) == ["mean", "scale"]
    positions = tree["unconstrained_posterior"]
    np.testing.assert_allclose(tree["posterior"]["scale"], np.exp(positions["log_scale"]), rtol=1e-14)
    np.testing.assert_array_equal(tree["observed_data"]["y"], Y[fitted.coreset.indices])


def test_chunks_do_not_change_a_value(monkeypatch):
    rng = np.random.default_rng(0)
    draws = {"mean": rng.normal(size=(7, 3)), "log_scale": rng.normal(size=(7, 3))}
    whole = shown_draws(MODEL, draws, ["scale", "both"])
    monkeypatch.setattr(constrained, "MAX_CHUNK", 4)
    pieces = shown_draws(MODEL, draws, ["scale", "both"])
    assert whole["scale"].shape == (3, 7)
    assert whole["both"].shape == (3, 7, 2)
    for name in whole:
        np.testing.assert_array_equal(pieces[name], whole[name])
    np.testing.assert_allclose(whole["scale"], np.exp(draws["log_scale"]).T, rtol=1e-14)


@pytest.mark.parametrize(
    ("asked", "kept"), [(None, ["both", "mean", "scale"]), ("scale", ["scale"]), (["~both"], ["mean", "scale"])]
)
def test_var_names(asked, kept):
    assert sorted(shown_names(MODEL, MODEL.initial_position, asked)) == kept
    with pytest.raises(cm.InputError, match=r"var_names: got \['sigma'\]; expected names among"):
        shown_names(MODEL, MODEL.initial_position, ["sigma"])


@pytest.mark.statistical
def test_predictions_have_the_right_moments(fitted):
    """The mean and deviation of 200 x 500 new responses, against draws; five standard errors, 1 in 10^6 by chance."""
    summary = fitted.predict(draws=200)["posterior_predictive"]
    posterior = fitted.posterior
    scale = float(posterior["scale"].mean())
    error = 5 * scale / np.sqrt(200 * 500) + 5 * float(posterior["mean"].std()) / np.sqrt(200)
    assert float(summary["y"].sel(statistic="mean").mean()) == pytest.approx(float(posterior["mean"].mean()), abs=error)
    assert float(summary["y"].sel(statistic="sd").mean()) == pytest.approx(scale, rel=0.05)
    assert float(summary["fixed"].sel(statistic="sd").max()) < 0.3


def test_blocks_of_rows_do_not_change_summaries(monkeypatch):
    positions = {"mean": np.linspace(0, 1, 30).reshape(2, 15), "log_scale": np.full((2, 15), -50.0)}
    options = {"draws": 30, "quantiles": [0.5], "var_names": None, "random_seed": 0}
    whole = predict(MODEL, positions, {"y": Y}, **options)
    monkeypatch.setattr(blocks, "VALUES_PER_BLOCK", 600)
    pieces = predict(MODEL, positions, {"y": Y}, **options)
    np.testing.assert_allclose(
        pieces["posterior_predictive"]["y"], whole["posterior_predictive"]["y"], rtol=1e-12, atol=1e-15
    )
    assert whole["posterior_predictive"]["y"].shape == (500, 3)


def test_models_without_predictions_say_what_to_do(fitted):
    bare = cm.Model(log_prior, log_likelihood, MODEL.initial_position)
    with pytest.raises(cm.InputError, match=r"Pass Model\(\.\.\., predictive=function\)"):
        predict(bare, {}, {"y": Y}, draws=3, quantiles=None, var_names=None, random_seed=0)
    with pytest.raises(cm.InputError, match=r"var_names: got \['z'\]"):
        fitted.predict(var_names="z")


def full_posterior_draws(count=2_000):
    """Draws of the full posterior by its Gaussian approximation, which 500 rows make good to a few percent."""
    rng = np.random.default_rng(1)
    scale = Y.std()
    mean = rng.normal(Y.mean(), scale / np.sqrt(500), (4, count // 4))
    return {"mean": mean, "log_scale": rng.normal(np.log(scale), 1 / np.sqrt(1000), (4, count // 4))}


def test_a_coreset_that_is_too_far_away_is_said_to_be():
    draws = full_posterior_draws(400)
    far = {"mean": draws["mean"], "log_scale": draws["log_scale"] * 3}
    with pytest.warns(UserWarning, match="too far from the full one to be corrected"):
        loo.loo(MODEL, far, {"y": Y}, coreset=SelectedRows(np.arange(5), np.ones(5)), draws=None, reweight=True)
    with pytest.raises(cm.InputError, match="at least 25 draws"):
        loo.loo(MODEL, draws, {"y": Y}, coreset=None, draws=10, reweight=True)


def test_outliers_are_pointed_out():
    draws = full_posterior_draws(400)
    with pytest.warns(UserWarning, match=r"k-hat of 1 of 501 rows is above .*loo\.pareto_k"):
        found = loo.loo(MODEL, draws, {"y": np.append(Y, 60.0)}, coreset=None, draws=None, reweight=True)
    assert int(np.argmax(found.pareto_k.to_numpy())) == 500


def test_legacy_containers(fitted):
    arviz = pytest.importorskip("arviz")
    if not hasattr(arviz, "InferenceData"):
        with pytest.raises(cm.InputError, match="arviz below version 1"):
            fitted.to_inferencedata()
        return
    legacy = fitted.to_inferencedata()
    assert {"posterior", "sample_stats", "observed_data", "coreset"} <= set(legacy.groups())
    np.testing.assert_array_equal(legacy.posterior["scale"], fitted.posterior["scale"])


def test_initvals_go_through_the_users_scale():
    from coreset_mcmc.posterior.problem import starting_positions

    positions = starting_positions(MODEL, jax.random.key(0), 3, {"scale": 2.0})
    np.testing.assert_allclose(positions["log_scale"], np.full(3, np.log(2.0)))
