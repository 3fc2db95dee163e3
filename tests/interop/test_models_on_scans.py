"""Models of other libraries on files: the bits of the same arrays in memory, and refusals that say why."""

from __future__ import annotations

import warnings

import jax
import numpy as np
import numpyro
import numpyro.distributions as dist
import pandas as pd
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data import layout

bmb = pytest.importorskip("bambi", reason="needs Bambi: pip install coreset-mcmc[bambi]")
import pymc as pm  # noqa: E402

SIZE, CUT, LEAF_ROWS = 1_500, 611, 512
"""Three leaves of rows in two files."""
FEW = 7
"""Rows with which a PyMC model is built."""
RNG = np.random.default_rng(0)
X = RNG.normal(size=(SIZE, 2)).astype(np.float32)
Y = RNG.random(SIZE) < 1 / (1 + np.exp(-X @ [1.0, -0.5]))
COLUMNS = ["x0", "x1"]
SETTINGS = {"coreset_size": 20, "draws": 20, "tune": 5, "chains": 2, "random_seed": 1, "progressbar": False}


@pytest.fixture(scope="module", autouse=True)
def short_leaves():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "MOST_LEAF_ROWS", LEAF_ROWS)
        yield


@pytest.fixture(scope="module")
def scanned(tmp_path_factory):
    """Columns of the files, by the names that a model has for them."""
    folder = tmp_path_factory.mktemp("files")
    table = pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "y": Y})
    for number, part in enumerate([table[:CUT], table[CUT:]]):
        part.to_parquet(folder / f"part-{number}.parquet", row_group_size=100)
    return lambda **columns: cm.scan_parquet(folder, columns=columns)


def fitted(model, data=None):
    with jax.enable_x64(True), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cm.fit(model, data, **SETTINGS)


def assert_same(one, other):
    for name in one.posterior.data_vars:
        np.testing.assert_array_equal(one.posterior[name], other.posterior[name])
    np.testing.assert_array_equal(one.coreset.indices, other.coreset.indices)
    np.testing.assert_array_equal(one.coreset.weights, other.coreset.weights)
    assert one.kl_estimate == other.kl_estimate


def in_numpyro(x, y=None):
    slopes = numpyro.sample("slopes", dist.Normal(0, 1).expand([2]).to_event(1))
    with numpyro.plate("rows", x.shape[0]):
        numpyro.sample("outcome", dist.Bernoulli(logits=x @ slopes), obs=y)


def in_pymc(x, y):
    with pm.Model() as model:
        slopes = pm.Normal("slopes", 0, 1, shape=2)
        pm.Bernoulli("outcome", logit_p=pm.math.dot(pm.Data("x", x), slopes), observed=pm.Data("y", y))
    return model


@pytest.fixture(scope="module")
def here():
    return fitted(cm.from_numpyro(in_numpyro), {"x": X, "y": Y})


@pytest.fixture(scope="module")
def there(scanned):
    return fitted(cm.from_numpyro(in_numpyro), scanned(x=COLUMNS, y="y"))


@pytest.mark.full
def test_numpyro_has_the_same_bits_from_files(here, there):
    assert there.rows.layout.num_leaves == 3
    assert_same(here, there)


@pytest.mark.full
def test_numpyro_has_the_same_predictions(here, there):
    one, other = (fit.predict(draws=3)["posterior_predictive"]["outcome"] for fit in (here, there))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"y": "y"}, r"nothing for the arguments \['x'\].*Add arrays of rows"),
        ({"x": COLUMNS}, r"latent site 'outcome'.*If it is the response, pass its values with the data"),
        ({"x": COLUMNS, "y": "y", "z": "x0"}, r"\['z'\]; expected names of arguments of the model \(x, y\).*scan"),
        ({"x": ["x0"], "y": "y"}, r"shapes x \(384, 1\), y \(384,\).*must have the shapes that it expects"),
        ({"x": "x0", "y": "y"}, r"shapes x \(384,\), y \(384,\).*must have the shapes that it expects"),
    ],
    ids=["no feature", "no response", "one too many", "too few columns", "no matrix"],
)
def test_columns_that_do_not_fit_a_numpyro_model_are_refused(scanned, columns, reason):
    with pytest.raises(cm.InputError, match=reason):
        fitted(cm.from_numpyro(in_numpyro), scanned(**columns))


@pytest.fixture(scope="module")
def few():
    """Placeholders: all alike, so that nothing but their names tells them apart."""
    with jax.enable_x64(True):
        return cm.from_pymc(in_pymc(np.zeros((FEW, 2)), np.zeros(FEW, bool)))


@pytest.mark.full
def test_pymc_has_the_same_bits_from_files(few, scanned):
    here = fitted(cm.from_pymc(in_pymc(X, Y)))
    assert_same(here, fitted(few, scanned(x=COLUMNS, y="y")))
    np.testing.assert_array_equal(here.tree["observed_data"]["outcome"], Y[here.coreset.indices])


def test_equal_placeholders_keep_their_names():
    zeros = np.zeros(FEW)
    with pm.Model() as model:
        slopes = pm.Normal("slopes", 0, 1, shape=2)
        mean = slopes[0] * pm.Data("one", zeros) + slopes[1] * pm.Data("other", zeros)
        pm.Normal("response", mean, 1, observed=pm.Data("y", zeros))
    made = cm.from_pymc(model)
    assert set(made.data) == {"one", "other", "y"}
    rows = {"one": np.array([1.0, 2.0]), "other": np.array([5.0, 3.0]), "y": np.array([1.5, 1.0])}
    found = made.log_likelihood({"slopes": np.array([1.0, 0.5])}, rows)
    np.testing.assert_allclose(found, -0.5 * (np.array([2.0, 2.5]) ** 2 + np.log(2 * np.pi)))


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"x": COLUMNS}, r"got nothing for y; expected the columns .*x \(2 numbers a row\)"),
        ({"x": COLUMNS, "y": "y", "z": "x0"}, "got z, which it does not have; expected"),
        ({"x": ["x0"], "y": "y"}, r"got x \(1 numbers a row\); expected .*x \(2 numbers a row\)"),
        ({"x": "x0", "y": "y"}, r"got x \(one number a row\); expected .*x \(2 numbers a row\)"),
    ],
    ids=["one missing", "one too many", "too few columns", "no matrix"],
)
def test_columns_that_do_not_fit_a_pymc_model_are_refused(few, scanned, columns, reason):
    with pytest.raises(cm.InputError, match=reason):
        fitted(few, scanned(**columns))


@pytest.mark.parametrize("name", ["x", "data_0"])
def test_data_without_a_name_cannot_be_replaced(scanned, name):
    """Not even under the name that they have in results."""
    with pm.Model() as model:
        slopes = pm.Normal("slopes", 0, 1, shape=2)
        pm.Bernoulli("y", logit_p=pm.math.dot(X[:FEW], slopes), observed=Y[:FEW])
    with pytest.raises(cm.InputError, match=r"data_0 are arrays without a name.*wrap them in pm\.Data"):
        fitted(cm.from_pymc(model), scanned(**{name: COLUMNS}, y="y"))


@pytest.mark.parametrize("formula", ["y ~ x0", "y ~ 1"])
def test_rows_of_a_bambi_model_cannot_be_replaced(scanned, formula):
    table = pd.DataFrame({"x0": X[:20, 0].astype(float), "y": X[:20, 1].astype(float)})
    model = cm.from_bambi(bmb.Model(formula, table))
    columns = {name: name if name == "y" else "x0" for name in model.data}
    with pytest.raises(cm.InputError, match=r"because Bambi has centred them.*use cm\.from_formula"):
        fitted(model, scanned(**columns))


@pytest.mark.parametrize("kind", ["data frame", "scan"])
def test_rows_of_a_formula_cannot_be_replaced(scanned, kind):
    """The names of a design are those of any regression; its columns are standardised."""
    table = pd.DataFrame(X[:20], columns=COLUMNS) if kind == "data frame" else scanned(x0="x0", x1="x1")
    model = cm.from_formula("x1 ~ x0", table)
    with pytest.raises(cm.InputError, match=r"standardised columns of a design: use cm\.from_formula"):
        fitted(model, scanned(x=["x0"], y="x1"))
