"""Bambi models, unchanged and never rebuilt on fewer rows."""

from __future__ import annotations

import warnings
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm
from tests.helpers.pymc_totals import assert_totals_agree, positions_of
from tests.interop.test_bambi_recipe import weighted_by_potential

bmb = pytest.importorskip("bambi", reason="needs Bambi: pip install coreset-mcmc[bambi]")
from coreset_mcmc_benchmarks.interop.models.bambi_gallery import MODELS  # noqa: E402

SIZE = 60


@cache
def source(name: str):
    return MODELS[name](SIZE)


@cache
def converted(name: str) -> cm.Model:
    return cm.from_bambi(source(name))


@pytest.mark.full
@pytest.mark.parametrize("name", list(MODELS))
def test_totals_are_those_of_bambi(name):
    ours = converted(name)
    assert_totals_agree(source(name).backend.model, ours)


def test_names_dims_and_labels_are_those_of_bambi():
    model = converted("sleepstudy")
    shown = jax.eval_shape(model.constrain, model.initial_position)
    assert set(shown) == {
        "sigma",
        "Intercept",
        "Days",
        "1|Subject",
        "1|Subject_sigma",
        "Days|Subject",
        "Days|Subject_sigma",
    }
    assert model.dims["1|Subject"] == ("Subject__factor_dim",)
    assert list(model.coords["Subject__factor_dim"]) == ["0", "1", "2", "3", "4", "5"]
    assert list(converted("election").coords["party_id_dim"]) == ["independent", "republican"]


@pytest.mark.parametrize("name", ["election", "sleepstudy"])
def test_the_intercept_is_that_of_predictors_that_are_not_centred(name):
    """The same numbers that Bambi makes of a draw after sampling."""
    bambi_model, model = source(name), converted(name)
    position = positions_of(model)[0]
    centred = cm.from_pymc(bambi_model.backend.model).constrain(position)
    (part,) = (item for item in bambi_model.backend.distributional_components.values() if item.component.common_terms)
    names = list(part.component.common_terms)
    slopes = np.concatenate([np.atleast_1d(centred[term]) for term in names])
    expected = centred["Intercept"] - np.asarray(part.design_matrix_without_intercept).mean(axis=0) @ slopes
    np.testing.assert_allclose(model.constrain(position)["Intercept"], expected, rtol=1e-10)
    assert abs(float(expected - centred["Intercept"])) > 1e-3


def data_with_weights() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    x = rng.normal(size=SIZE)
    return pd.DataFrame(
        {"x": x, "y": 1 + x + rng.normal(size=SIZE), "w": rng.uniform(1, 3, size=SIZE), "id": range(SIZE)}
    )


@pytest.mark.full
def test_weights_in_the_response_scale_the_rows():
    data = data_with_weights()
    weighted, plain = bmb.Model("weighted(y, w) ~ x", data), bmb.Model("y ~ x", data)
    with_weights, without = cm.from_bambi(weighted), cm.from_bambi(plain)
    assert_totals_agree(weighted.backend.model, with_weights)
    position = positions_of(without)[0]
    np.testing.assert_allclose(
        with_weights.log_likelihood(position, with_weights.data),
        data["w"].to_numpy() * without.log_likelihood(position, without.data),
        rtol=1e-8,
    )


def test_an_effect_for_each_row_is_refused():
    data = data_with_weights().astype({"id": "category"})
    with pytest.raises(cm.InputError, match="one value for each of the 60 rows"):
        cm.from_bambi(bmb.Model("y ~ x + (1|id)", data))


def test_only_a_bambi_model_is_taken():
    with pytest.raises(cm.InputError, match=r"expected a bambi\.Model"):
        cm.from_bambi("y ~ x")


PRIORS = {
    "Intercept": bmb.Prior("Normal", mu=0, sigma=5),
    "x": bmb.Prior("Normal", mu=0, sigma=5),
    "sigma": bmb.Prior("HalfNormal", sigma=5),
}


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2_000)
    data = pd.DataFrame({"x": x, "y": 1 + 2 * x + rng.normal(size=2_000)})
    model = bmb.Model("y ~ x", data, priors=PRIORS, center_predictors=False)
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = cm.fit(cm.from_bambi(model), coreset_size=100, draws=300, tune=200, random_seed=1, progressbar=False)
    return model, fit


@pytest.mark.full
@pytest.mark.statistical
def test_coreset_posterior_is_the_known_one(fitted):
    """Least squares on 2 000 rows is the posterior mean to a hundredth of its spread; five standard errors of at least
    200 effective draws and the shift that a KL of 0.02 allows: false alarms in fewer than 1 of 10^5 runs.
    """
    model, fit = fitted
    assert fit.kl_estimate < 0.02
    design = np.column_stack([np.ones(len(model.data)), model.data["x"]])
    best = np.linalg.lstsq(design, model.data["y"], rcond=None)[0]
    for name, value in zip(("Intercept", "x"), best, strict=True):
        draws = fit.posterior[name].to_numpy()
        assert abs(draws.mean() - value) < (5 / np.sqrt(200) + np.sqrt(0.04) + 0.01) / np.sqrt(2_000)


@pytest.mark.full
def test_recipe_for_bambi_has_the_posterior_of_the_coreset(fitted):
    """The recipe of docs/bring_your_model.md: weights as a potential, priors of the full model, no centring."""
    model, fit = fitted
    rows = fit.coreset.to_frame(model.data)
    small = bmb.Model("y ~ x", rows, priors=PRIORS, center_predictors=False)
    theirs = weighted_by_potential(small, rows["weight"].to_numpy()).compile_logp(mode="FAST_COMPILE")
    ours = fit.model
    batch = {key: jnp.asarray(value) for key, value in fit.coreset.columns.items()}
    for position in positions_of(ours):
        log_density = ours.log_prior(position) + fit.coreset.weights @ ours.log_likelihood(position, batch)
        np.testing.assert_allclose(
            theirs({key: np.asarray(value) for key, value in position.items()}), log_density, rtol=1e-8
        )
