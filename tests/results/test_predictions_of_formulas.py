"""A fit from a formula predicts from a table with the columns of the formula, as Bambi does from the same draws."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm

SIZE = 400
FORMULA = "y ~ x + g + C(k) + np.log(z) + x:g"


def table(seed: int = 0) -> pd.DataFrame:
    generator = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": generator.normal(3.0, 2.0, SIZE),
            "z": generator.uniform(1.0, 5.0, SIZE),
            "g": generator.choice(["a", "b", "c"], SIZE),
            "k": generator.integers(0, 3, SIZE),
            "hours": generator.uniform(0.5, 2.0, SIZE),
        }
    )
    eta = 0.3 * frame["x"] - 0.5 * (frame["g"] == "b") + 0.2 * frame["k"]
    frame["y"] = 5.0 + 3.0 * (eta + generator.normal(size=SIZE))
    frame["one"] = (eta + generator.logistic(size=SIZE) > 1.0).astype(int)
    frame["count"] = generator.poisson(np.exp(0.3 * eta))
    return frame


def quick_fit(model: cm.Model) -> cm.Fit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return cm.fit(
            model,
            coreset_size=50,
            draws=30,
            tune=30,
            chains=2,
            method=cm.Uniform(cm.kernels.RandomWalk(0.1)),
            random_seed=1,
            progressbar=False,
        )


@pytest.fixture(scope="module")
def fitted() -> cm.Fit:
    return quick_fit(cm.from_formula(FORMULA, table()))


@pytest.mark.full
@pytest.mark.parametrize(
    ("formula", "family"),
    [
        (FORMULA, "gaussian"),
        (FORMULA.replace("y ~", "y ~ 0 +"), "t"),
        (FORMULA.replace("y ~", "one ~"), "bernoulli"),
        ("count ~ x*g + offset(np.log(hours))", "poisson"),
        ("count ~ scale(x) + g", "negativebinomial"),
    ],
)
def test_expected_responses_are_those_of_bambi_on_the_same_draws(formula, family):
    bambi = pytest.importorskip("bambi")
    frame, other = table(), table(seed=5).iloc[:40]
    fit = quick_fit(cm.from_formula(formula, frame, family=family))
    response = formula.partition("~")[0].strip()
    peer = bambi.Model(formula, frame, family=family)
    peer.build()
    predicted = peer.predict(fit.to_inferencedata(), data=other, kind="response_params", inplace=False)
    theirs = predicted["posterior"]["mu" if family != "bernoulli" else "p"].to_numpy()
    ours = fit.predict(other.drop(columns=response), draws=10_000, quantiles=None)["expected"][response].to_numpy()
    np.testing.assert_allclose(ours.reshape(theirs.shape), theirs, rtol=1e-8)


@pytest.mark.full
def test_summaries_are_those_of_the_draws(fitted, tmp_path):
    new = table(seed=1).iloc[:25]
    draws = fitted.predict(new, quantiles=None, draws=60)["expected"]["y"].to_numpy()[0]
    shown = fitted.predict(new, quantiles=(0.1, 0.9), draws=60)["expected"]["y"]
    expected = [draws.mean(0), draws.std(0), *np.quantile(draws, [0.1, 0.9], axis=0)]
    np.testing.assert_allclose(shown.to_numpy(), np.stack(expected, axis=1), rtol=1e-12)
    written = pd.read_parquet(fitted.predict(new, quantiles=(0.1, 0.9), draws=60, to=tmp_path / "made.parquet"))
    assert list(written)[:5] == ["row", "y_expected_mean", "y_expected_sd", "y_expected_q0.1", "y_expected_q0.9"]
    np.testing.assert_array_equal(written["y_expected_q0.9"], shown.to_numpy()[:, 3])


@pytest.mark.full
@pytest.mark.statistical
def test_new_responses_scatter_around_the_expected(fitted):
    """Mean squares over 400 rows and 60 draws: sigma^2 is known to a relative error of about 0.01."""
    both = fitted.predict(table(), quantiles=None, draws=60)
    residual = both["posterior_predictive"]["y"].to_numpy() - both["expected"]["y"].to_numpy()
    sigma = fitted.posterior["sigma"].to_numpy()
    assert np.mean(residual**2) == pytest.approx(np.mean(sigma**2), rel=0.06)


@pytest.mark.full
@pytest.mark.parametrize("form", ["mapping", "one row", "categories", "other order", "more columns", "index"])
def test_forms_of_a_table(fitted, form):
    some = table(seed=1).iloc[[3]].drop(columns=["y"])
    given = {
        "mapping": some.to_dict("list"),
        "one row": some.iloc[0].to_dict(),
        "categories": some.astype({"g": "category"}),
        "other order": some[some.columns[::-1]],
        "more columns": some.assign(extra="text", date=pd.Timestamp("2020-01-01")),
        "index": some.set_axis(["Monday"], axis=0),
    }[form]
    expected = fitted.predict(some, quantiles=None)["expected"]["y"].to_numpy()
    np.testing.assert_array_equal(fitted.predict(given, quantiles=None)["expected"]["y"].to_numpy(), expected)


NEW = table(seed=1).iloc[:5].drop(columns="y")
MISTAKES = {
    "a column that is not there": (NEW.drop(columns="x"), "no column 'x' among z, g, k"),
    "another spelling": (NEW.rename(columns={"x": "X"}), "Rename 'X' if that is meant"),
    "an unknown level": (NEW.assign(g="z"), r"(z) in 'g' are not present.*expected levels among a, b, c"),
    "an unknown number as a level": (NEW.assign(k=9), r"(9) in 'k'.*levels among 0, 1, 2"),
    "numbers for levels": (NEW.assign(g=1.5), r"(1.5) in 'g'"),
    "a missing number": (NEW.assign(x=[1.0, np.nan, 1, 1, 1]), r"missing values (x: 1; first in row 1"),
    "a missing level": (NEW.assign(g=[None, "a", "a", "a", "a"]), r"missing values (g: 1; first in row 0"),
    "pandas' own missing value": (NEW.assign(k=pd.array([1, 2, None, 1, 1], "Int64")), "missing values (k: 1"),
    "text for a number": (NEW.assign(x="much"), "column 'x': got values of type str"),
    "an infinite number": (NEW.assign(x=np.inf), "column 'x': got 5 values that are infinite"),
    "a number that stands for nothing": (NEW.assign(x=1e300), "column 'x': got 5 values as large as"),
    "outside the domain of a transform": (NEW.assign(z=-1.0), "term 'np.log(z)': got 5 values that are infinite"),
    "zero in a logarithm": (NEW.assign(z=0.0), "term 'np.log(z)'"),
    "dates": (NEW.assign(x=pd.Timestamp("2020-01-01")), "column 'x': got dates"),
    "durations": (NEW.assign(x=pd.Timedelta("1h")), "column 'x': got durations"),
    "complex numbers": (NEW.assign(x=1j), "column 'x': got complex numbers"),
    "no rows": (NEW.iloc[:0], "0 rows"),
    "an array": (NEW[["x", "z"]].to_numpy(), "got ndarray; expected a pandas DataFrame"),
    "a column alone": (NEW["x"], "got Series"),
    "the name of a file": ("new.csv", "got str; expected a pandas DataFrame"),
    "columns of other lengths": ({"x": [1.0, 2.0], "z": [1.0], "g": ["a"], "k": [1]}, "columns of the same length"),
    "a column twice": (pd.concat([NEW, NEW[["x"]]], axis=1), "repeated columns ['x']"),
}


@pytest.mark.full
@pytest.mark.parametrize("name", list(MISTAKES))
def test_mistakes_in_a_new_table(fitted, name):
    given, message = MISTAKES[name]
    pattern = ".*".join(re.escape(part) for part in message.split(".*"))
    with pytest.raises(cm.InputError, match=pattern):
        fitted.predict(given)


@pytest.mark.full
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantiles": (0.5, 1.2)}, "probabilities between 0 and 1"),
        ({"quantiles": (-0.1,)}, "probabilities between 0 and 1"),
        ({"quantiles": (float("nan"),)}, "probabilities between 0 and 1"),
        ({"draws": 0}, "draws: got 0"),
        ({"draws": 2.5}, "draws: got 2.5"),
        ({"var_names": "z"}, "names among"),
        ({"to": "made.csv"}, "ends in .parquet"),
    ],
)
def test_mistakes_in_options(fitted, options, message):
    with pytest.raises(cm.InputError, match=re.escape(message)):
        fitted.predict(NEW, **options)


def test_models_are_printed_in_a_line():
    built = cm.regression(FORMULA, table())
    assert repr(built.model) == f"Model({FORMULA!r}, 400 rows)"
    assert repr(built) == f"Regression({FORMULA!r}, gaussian, 400 rows)"
    assert len(repr(cm.models.logistic_regression(3))) < 80
