"""Predictions of a Bambi model for a new data frame: its rows are those that Bambi's own terms make."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import coreset_mcmc as cm
from tests.helpers.pymc_totals import positions_of

bmb = pytest.importorskip("bambi", reason="needs Bambi: pip install coreset-mcmc[bambi]")
from coreset_mcmc_benchmarks.interop.catalogue.bambi_models import FAMILIES, of_family, table  # noqa: E402

SIZE = 60
FRAME = table(SIZE)
MODELS = {
    "groups": lambda: bmb.Model("real ~ x + (x | group) + (1 | person)", FRAME),
    "groups without centring": lambda: bmb.Model("real ~ x + (1 | group)", FRAME, center_predictors=False),
    "splines": lambda: bmb.Model("real ~ bs(x, df=5) + scale(z) + group", FRAME),
    "offset": lambda: bmb.Model("count ~ x + offset(log(positive))", FRAME, family="poisson"),
    "a scale": lambda: bmb.Model(bmb.Formula("real ~ x", "sigma ~ z + (1 | group)"), FRAME),
    "trials": lambda: of_family("binomial", SIZE),
    "parts": lambda: of_family("multinomial", SIZE),
    "basis": lambda: bmb.Model("real ~ 0 + hsgp(x, m=6, c=2)", FRAME),
    "choices": lambda: bmb.Model("choice ~ x + (1 | group)", FRAME, family="categorical"),
    "censored": lambda: bmb.Model("censored(observed, censoring) ~ x", FRAME),
}
NOT_DRAWN = ("choices",)
"""PyTensor cannot draw categories of groups with JAX."""
FAST = ("groups", "splines", "trials")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FAST else pytest.mark.full) for name in MODELS]
)
def test_rows_of_a_frame_are_those_of_the_model(name):
    """Rows that the model has seen, as a frame in another order, are its own rows in that order, with its means, knots
    and levels; and what new responses depend on is all there."""
    source = MODELS[name]()
    model = cm.from_bambi(source)
    places = np.array([7, 3, 50, 4])
    made = model.new_rows(source.data.iloc[places].reset_index(drop=True))
    assert made
    for key, values in made.items():
        if name == "censored" and np.isinf(values).all():
            continue  # a new response is not censored
        np.testing.assert_allclose(values, model.data[key][places], rtol=1e-12, err_msg=key)
    if name in NOT_DRAWN:
        return
    drawn = jax.eval_shape(model.predictive, jax.random.key(0), positions_of(model)[0], made)
    assert all(values.shape[0] == 4 for values in drawn.values())


@pytest.mark.slow
@pytest.mark.parametrize("family", list(FAMILIES))
def test_every_family_takes_new_rows(family):
    source = of_family(family, SIZE)
    model = cm.from_bambi(source)
    made = model.new_rows(source.data.iloc[:3])
    for key, values in made.items():
        np.testing.assert_allclose(values, model.data[key][:3], rtol=1e-12, err_msg=key)


@pytest.fixture(scope="module")
def fitted():
    source = bmb.Model("real ~ x + (1 | group)", table(400), noncentered=False)
    fit = cm.fit(cm.from_bambi(source), coreset_size=60, draws=100, tune=100, random_seed=1, progressbar=False)
    return source, fit


@pytest.mark.full
def test_predictions_are_bambis(fitted):
    """The means of new responses are those of Bambi's own predict on the same draws, within five standard errors of
    4 000 draws a row: false alarms in fewer than 1 of 10^4 runs."""
    source, fit = fitted
    new = table(400).drop(columns="real").iloc[[5, 80, 200]].assign(x=[-1.0, 0.5, 2.0])
    draws = fit.predict(new, draws=400, quantiles=None)["posterior_predictive"]["real"].to_numpy()
    tree = fit.tree.copy()
    theirs = source.predict(_with_posterior(tree), data=new, inplace=False)
    expected = np.asarray(theirs.posterior["mu"]).reshape(-1, 3).mean(axis=0)
    spread = np.sqrt(draws.reshape(-1, 3).var(axis=0) / 400 + 1e-12)
    assert np.all(np.abs(draws.reshape(-1, 3).mean(axis=0) - expected) < 5 * spread)


def _with_posterior(tree):
    import arviz

    return arviz.InferenceData(posterior=tree["posterior"].to_dataset())


@pytest.mark.full
def test_frames_that_do_not_fit_are_refused_in_plain_words(fitted):
    _, fit = fitted
    new = table(400).iloc[:3]
    with pytest.raises(cm.InputError, match=r"(?s)a group in row 1 that no row of the model has.*g0"):
        fit.predict(new.assign(group=["g0", "elsewhere", "g1"]))
    with pytest.raises(cm.InputError, match=r"(?s)while making the predictors of mu.*The frame has"):
        fit.predict(new.drop(columns="x"))
    with pytest.raises(cm.InputError, match="expected a data frame with the predictors"):
        fit.predict([1, 2, 3])


@pytest.mark.full
def test_infinite_bounds_do_not_stop_predictions():
    model = cm.from_bambi(bmb.Model("censored(observed, censoring) ~ x", table(300)))
    fit = cm.fit(model, coreset_size=50, draws=50, tune=50, random_seed=1, progressbar=False)
    (drawn,) = fit.predict(draws=5)["posterior_predictive"].to_dataset().data_vars.values()
    assert np.all(np.isfinite(drawn))
