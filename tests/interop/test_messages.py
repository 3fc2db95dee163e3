"""What users are told about rows on another axis, sizes written into a model, and divergences: the true cause."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
import pytest
import xarray

import coreset_mcmc as cm
from coreset_mcmc.diagnostics.mixing import sampling_warnings

SIZE = 300
RNG = np.random.default_rng(0)
WIDE = RNG.normal(size=(3, SIZE))
Y = RNG.normal(size=SIZE)


def columns_first(x, y):
    slopes = numpyro.sample("slopes", dist.Normal().expand([3]).to_event(1))
    numpyro.sample("y", dist.Normal(slopes @ x, 1.0), obs=y)


def only_wide(y):
    means = numpyro.sample("means", dist.Normal().expand([3]).to_event(1))
    with numpyro.plate("rows", y.shape[1]):
        numpyro.sample("y", dist.Normal(means, 1.0).to_event(1), obs=y.T)


def reshaped(x, y):
    numpyro.sample("y", dist.Normal(numpyro.sample("slope", dist.Normal()) * x.reshape(SIZE), 1.0), obs=y)


def with_zeros(x, y):
    numpyro.sample("y", dist.Normal(numpyro.sample("slope", dist.Normal()) * x + jnp.zeros(SIZE), 1.0), obs=y)


def first_rows(x, y):
    numpyro.sample("y", dist.Normal(numpyro.sample("slope", dist.Normal()) * x[:250], 1.0), obs=y[:250])


@pytest.mark.parametrize(
    ("model", "data", "words"),
    [
        (
            columns_first,
            {"x": WIDE, "y": Y},
            r"(?s)data\['x'\] has 300 along another one.*numpy.moveaxis\(array, 1, 0\)",
        ),
        (only_wide, {"y": WIDE}, r"(?s)got 3 rows.*y of shape \(3, 300\) has 3 rows.*transposed"),
        (reshaped, {"x": Y, "y": Y}, "(?s)300.*any number of rows.*x.shape"),
        (with_zeros, {"x": Y, "y": Y}, "(?s)300.*any number of rows.*x.shape"),
    ],
)
def test_numpyro_models_are_told_where_their_rows_are(model, data, words):
    with pytest.raises(cm.InputError, match=words):
        cm.from_numpyro(model).bind(data)


def a_fit(log_likelihood, data):
    model = cm.Model(lambda position: -(position["b"] ** 2), log_likelihood, {"b": jnp.zeros(())})
    return cm.fit(model, data, draws=10, tune=10, coreset_size=20, progressbar=False)


@pytest.mark.parametrize(
    ("log_likelihood", "data", "words"),
    [
        (lambda at, rows: -(rows["y"] ** 2) * at["b"], {"x": WIDE, "y": Y}, r"data\['x'\] has 300 along another one"),
        (lambda at, rows: at["b"] * jnp.zeros(SIZE), {"y": Y}, "(?s)The length 300 is written into the model.*x.shape"),
        (lambda at, rows: at["b"] * jnp.sum(rows["y"]), {"y": Y}, "Do not sum over rows"),
        (lambda at, rows: at["b"] * (rows["y"] + jnp.zeros(SIZE)), {"y": Y}, "The length 300 is written"),
    ],
)
def test_functions_are_told_what_is_wrong_with_their_shapes(log_likelihood, data, words):
    with pytest.raises(cm.InputError, match=words):
        a_fit(log_likelihood, data)


def test_pymc_models_are_told_where_their_rows_are():
    pm = pytest.importorskip("pymc")
    with pm.Model() as model:
        pm.Normal("y", pm.Normal("mu", shape=3)[:, None], 1, observed=WIDE)
    with pytest.raises(cm.InputError, match=r"(?s)got 3 rows.*'y' of shape \(3, 300\) has 3 rows.*transposed"):
        cm.from_pymc(model)


def diverging(names) -> xarray.DataTree:
    draws = {name: (("chain", "draw"), RNG.normal(size=(4, 500))) for name in names}
    stats = {"diverging": (("chain", "draw"), RNG.uniform(size=(4, 500)) < 0.1)}
    return xarray.DataTree.from_dict({"posterior": xarray.Dataset(draws), "sample_stats": xarray.Dataset(stats)})


def test_advice_about_divergences_follows_the_form_of_the_model():
    (centred,) = sampling_warnings(diverging(["mean", "effect"]))
    assert "write them as mean + scale * standard normal" in centred
    (standard,) = sampling_warnings(diverging(["mean", "1|group_offset"]))
    assert "'1|group_offset' says that effects are written as mean + scale * standard normal" in standard
    assert "write them as Normal(mean, scale)" in standard
