"""The whole model: back-transforms, densities on the user's scale, agreement with Bambi, sharing of programs."""

from __future__ import annotations

import warnings
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import scipy.stats

import coreset_mcmc as cm
from coreset_mcmc.driver.compiled import num_compiled_programs
from coreset_mcmc.driver.fingerprint import fingerprint
from coreset_mcmc.tables.regression import Regression
from tests.helpers.table_examples import RESPONSES, SIZE, table

FORMULA = "{} ~ x * g + np.log(z) + flag"


def build(family: str, right: str = "x * g + np.log(z) + flag", **options) -> Regression:
    return cm.regression(f"{RESPONSES[family]} ~ {right}", table(), family=family, **options)


def somewhere(built: Regression, seed: int = 0) -> dict:
    """A position away from where chains start."""
    rng = np.random.default_rng(seed)
    return {name: value + 0.3 * rng.normal(size=value.shape) for name, value in built.model.initial_position.items()}


def predictor_by_hand(built: Regression, values: dict) -> np.ndarray:
    """The linear predictor from shown parameters and the raw design."""
    raw = built.data["x"] * built.design.scales + built.design.means
    coefficients = np.concatenate([np.atleast_1d(values[term.name]) for term in built.design.terms])
    return values.get("Intercept", 0.0) + raw @ coefficients


def response_by_hand(family: str) -> np.ndarray:
    name = RESPONSES[family]
    frame = table()
    return (frame[name] == "yes").to_numpy(float) if name == "outcome" else frame[name].to_numpy(float)


def density_by_hand(family: str, eta: np.ndarray, values: dict, y: np.ndarray) -> np.ndarray:
    if family == "gaussian":
        return scipy.stats.norm(eta, values["sigma"]).logpdf(y)
    if family == "t":
        return scipy.stats.t(values["nu"], eta, values["sigma"]).logpdf(y)
    if family == "bernoulli":
        return scipy.stats.bernoulli(1 / (1 + np.exp(-eta))).logpmf(y)
    if family == "poisson":
        return scipy.stats.poisson(np.exp(eta)).logpmf(y)
    alpha = values["alpha"]
    return scipy.stats.nbinom(alpha, alpha / (alpha + np.exp(eta))).logpmf(y)


@pytest.mark.parametrize("family", list(RESPONSES))
@pytest.mark.parametrize("right", ["x * g + np.log(z) + flag", "0 + g + x", "x + offset(z)", "1"])
def test_shown_parameters_give_the_density_of_the_response(family, right):
    """The back-transform is exact: densities from shown parameters and raw columns are those of the model."""
    built = build(family, right)
    position = somewhere(built)
    values = jax.tree.map(np.asarray, dict(built.model.constrain(position)))
    found = built.model.log_likelihood(position, jax.tree.map(jnp.asarray, built.data))
    eta = np.full(SIZE, values["Intercept"]) if right == "1" else predictor_by_hand(built, values)
    eta = eta + (table()["z"].to_numpy() if "offset" in right else 0.0)
    expected = density_by_hand(family, eta, values, response_by_hand(family))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("family", list(RESPONSES))
def test_compiled_steps_see_the_same_densities_up_to_a_constant(family):
    built = build(family)
    rows = jax.tree.map(jnp.asarray, built.data)
    one, other = somewhere(built), somewhere(built, seed=1)
    model, inner = built.model, built.model.compiled
    of_model = model.log_likelihood(one, rows) - model.log_likelihood(other, rows)
    of_inner = inner.log_likelihood(one, rows) - inner.log_likelihood(other, rows)
    np.testing.assert_allclose(of_model, of_inner, rtol=1e-9, atol=1e-12)
    assert float(model.log_prior(one)) == float(inner.log_prior(one))


@pytest.mark.parametrize("family", list(RESPONSES))
def test_given_priors_are_those_of_the_shown_parameters(family):
    priors = {
        "Intercept": "StudentT(3, 1, 4)",
        "coefficients": "Normal(0.5, 2)",
        "g": "Laplace(0, 1.5)",
        "flag": "Cauchy(0, 2.5)",
        **dict.fromkeys(("sigma", "nu", "alpha"), "Exponential(0.7)"),
    }
    built = build(family)
    priors = {name: text for name, text in priors.items() if name in [*built.priors, "coefficients"]}
    built = build(family, priors=priors)
    one, other = somewhere(built), somewhere(built, seed=1)

    def expected(position) -> float:
        values = jax.tree.map(np.asarray, dict(built.model.constrain(position)))
        coefficients = np.concatenate([np.atleast_1d(values[term.name]) for term in built.design.terms])
        at_centre = values["Intercept"] + built.design.means @ coefficients
        total = scipy.stats.t(3, 1, 4).logpdf(at_centre)
        for term in built.design.terms:
            of = {"g": scipy.stats.laplace(0, 1.5), "flag": scipy.stats.cauchy(0, 2.5)}
            total += of.get(term.name, scipy.stats.norm(0.5, 2)).logpdf(values[term.name]).sum()
        for name in set(values) & {"sigma", "nu", "alpha"}:
            total += scipy.stats.expon(scale=1 / 0.7).logpdf(values[name]) + np.log(values[name])
        return float(total)

    found = float(built.model.log_prior(one) - built.model.log_prior(other))
    assert found == pytest.approx(expected(one) - expected(other), rel=1e-9)
    assert built.priors["x"] == "Normal(0.5, 2)"
    assert built.priors["g"] == "Laplace(0, 1.5)"


def test_default_priors_in_words():
    frame = table()
    built = cm.regression("y ~ x + flag", frame)
    spread = frame["y"].std(ddof=0)
    assert built.priors == {
        "Intercept": f"Normal({frame['y'].mean():.4g}, {2.5 * spread:.4g})",
        "x": f"Normal(0, {2.5 * spread / frame['x'].std(ddof=0):.4g})",
        "flag": f"Normal(0, {2.5 * spread / frame['flag'].std(ddof=0):.4g})",
        "sigma": f"HalfStudentT(4, {spread:.4g})",
    }
    logit = cm.regression("success ~ x", frame, family="bernoulli")
    share = frame["success"].mean()
    assert logit.priors["Intercept"] == f"Normal({round(np.log(share / (1 - share)))}, 2.5)"
    assert logit.priors["x"] == f"Normal(0, {2.5 / frame['x'].std(ddof=0):.4g})"
    assert build("t").priors["nu"] == "Gamma(2, 0.1)"
    assert build("negativebinomial").priors["alpha"] == "HalfCauchy(1)"


@pytest.mark.parametrize("family", list(RESPONSES))
def test_default_priors_are_what_the_words_say(family):
    """The same model from its own words has the same prior, up to the four digits shown."""
    words = build(family, "x + flag").priors
    by_words = build(family, "x + flag", priors=words)
    built = build(family, "x + flag")
    one, other = somewhere(built), somewhere(built, seed=1)
    found = float(built.model.log_prior(one) - built.model.log_prior(other))
    assert float(by_words.model.log_prior(one) - by_words.model.log_prior(other)) == pytest.approx(found, rel=1e-2)


@pytest.mark.full
@pytest.mark.parametrize("family", ["gaussian", "bernoulli", "poisson", "negativebinomial", "t"])
def test_the_posterior_is_that_of_bambi(family):
    """Log-posteriors differ by a constant over positions, with the same priors given to both."""
    bmb = pytest.importorskip("bambi", reason="needs Bambi: pip install coreset-mcmc[bambi]")
    frame = table()
    left = "outcome['yes']" if family == "bernoulli" else RESPONSES[family]
    formula = f"{left} ~ x * g + flag"
    extra = {"gaussian": ("sigma",), "t": ("sigma", "nu"), "negativebinomial": ("alpha",)}.get(family, ())
    ours = cm.regression(
        formula,
        frame,
        family=family,
        priors={
            "Intercept": "Normal(1, 2)",
            "coefficients": "Normal(0, 1.5)",
            **dict.fromkeys(extra, "HalfNormal(3)"),
        },
    )
    model = bmb.Model(
        formula,
        frame.assign(flag=frame["flag"].astype(float)),
        family=family,
        priors={
            "Intercept": bmb.Prior("Normal", mu=1, sigma=2),
            **{term.name: bmb.Prior("Normal", mu=0, sigma=1.5) for term in ours.design.terms},
            **{name: bmb.Prior("HalfNormal", sigma=3) for name in extra},
        },
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = cm.from_bambi(model)

    differences = []
    for seed in range(4):
        position = somewhere(ours, seed)
        values = jax.tree.map(np.asarray, dict(ours.model.constrain(position)))
        matching = {
            **theirs.initial_position,
            **{
                name: np.asarray(values[name]).reshape(np.shape(theirs.initial_position[name]))
                for name in theirs.initial_position
                if name in values
            },
        }
        coefficients = np.concatenate([np.atleast_1d(values[term.name]) for term in ours.design.terms])
        matching["Intercept"] = values["Intercept"] + ours.design.means @ coefficients
        for name in extra:
            key = next(key for key in theirs.initial_position if name in key)
            matching[key] = np.log(values[name])
        shown = theirs.constrain(matching)
        for name, value in values.items():
            np.testing.assert_allclose(np.ravel(shown[name]), np.ravel(value), rtol=1e-9)
        differences.append(
            log_posterior(ours.model, position, ours.data) - log_posterior(theirs, matching, theirs.data)
        )
    np.testing.assert_allclose(differences, differences[0], rtol=0, atol=1e-8)


def log_posterior(model: cm.Model, position, data) -> float:
    rows = jax.tree.map(jnp.asarray, data)
    return float(model.log_prior(position) + jnp.sum(model.log_likelihood(position, rows)))


@pytest.mark.parametrize("family", list(RESPONSES))
def test_values_of_the_user_as_a_start(family):
    built = build(family)
    position = somewhere(built)
    values = jax.tree.map(np.asarray, dict(built.model.constrain(position)))
    back = built.model.unconstrain(values, built.model.initial_position)
    for name, value in position.items():
        np.testing.assert_allclose(back[name], value, rtol=1e-9, atol=1e-12)
    some = built.model.unconstrain({"x": 1.25}, built.model.initial_position)
    assert float(built.model.constrain(some)["x"]) == pytest.approx(1.25)
    with pytest.raises(cm.InputError, match=r"unknown names \['q'\]"):
        built.model.unconstrain({"q": 1.0}, built.model.initial_position)
    with pytest.raises(cm.InputError, match="initvals g: got 3 values; expected 2"):
        built.model.unconstrain({"g": [1, 2, 3]}, built.model.initial_position)


@pytest.mark.full
def test_tables_of_the_same_shape_share_compiled_programs():
    one = build("gaussian")
    shifted = table().assign(x=lambda f: 7 * f["x"] + 1, y=lambda f: 3 - 2 * f["y"])
    other = cm.regression(FORMULA.format("y"), shifted)
    assert other.model is not one.model
    assert other.model.compiled is one.model.compiled
    assert build("gaussian", priors={"x": "Normal(0, 1)"}).model.compiled is not one.model.compiled


@pytest.mark.full
def test_the_fingerprint_follows_the_model_and_not_the_process():
    first, again = build("bernoulli"), build("bernoulli")
    assert first.model is not again.model
    assert fingerprint(first.model) == fingerprint(again.model)
    assert fingerprint(first.model) != fingerprint(build("bernoulli", priors={"x": "Normal(0, 1)"}).model)
    assert fingerprint(first.model) != fingerprint(build("bernoulli", "x * g + np.log(z)").model)


def test_row_numbers_and_notes():
    frame = table()
    frame.loc[[2, 5], "x"] = np.nan
    frame.loc[[5, 9], "outcome"] = None
    frame.index = frame.index[::-1]
    built = cm.regression("outcome ~ x", frame, family="bernoulli", drop_missing=True)
    assert built.num_dropped == 3
    assert built.row_numbers.tolist() == [row for row in range(SIZE) if row not in (2, 5, 9)]
    kept = frame.iloc[built.row_numbers]
    np.testing.assert_array_equal(built.data["y"], kept["outcome"] == "yes")
    assert built.notes == ("3 rows with missing values dropped", "the success level of outcome is 'yes'")
    assert len(built.data["x"]) == len(built.row_numbers) == SIZE - 3


@pytest.mark.parametrize(
    ("response", "expected"),
    [
        ("outcome", "yes"),
        ("outcome['yes']", "yes"),
        ("outcome[yes]", "yes"),
        ("outcome['no']", "no"),
        ("success", "yes"),
        ("{success == 1}", "yes"),
        ("{outcome == 'no'}", "no"),
        ("binary(outcome, 'yes')", "yes"),
    ],
)
def test_two_outcomes(response, expected):
    built = cm.regression(f"{response} ~ x", table(), family="bernoulli")
    np.testing.assert_array_equal(built.data["y"], table()["outcome"] == expected)


def test_a_boolean_response():
    built = cm.regression("flag ~ x", table(), family="bernoulli")
    np.testing.assert_array_equal(built.data["y"], table()["flag"])


def test_separation_is_noted():
    frame = table().assign(success=lambda f: (f["x"] > 3).astype(int), count=lambda f: f["count"] * (f["g"] != "b"))
    assert any(
        "each of x parts the two outcomes" in note
        for note in cm.regression("success ~ x + z", frame, family="bernoulli").notes
    )
    assert any(
        "each of g[b] parts rows with counts" in note
        for note in cm.regression("count ~ x + g", frame, family="poisson").notes
    )
    assert build("bernoulli", "x + g").notes == ("the success level of outcome is 'yes'", "reference levels: g = a")


def test_new_rows_are_transformed_as_the_first():
    formula = "y ~ scale(x) + poly(z, 2) + bs(`my col`, df=5) + g + C(i) + offset(z) + flag"
    built = cm.regression(formula, table())
    some = table().drop(columns="y").iloc[[7, 3, 3]]
    rows = built.new_rows(some)
    np.testing.assert_allclose(rows["x"], built.data["x"][[7, 3, 3]], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(rows["offset"], built.data["offset"][[7, 3, 3]])


@pytest.mark.parametrize("family", list(RESPONSES))
def test_check_data(family):
    built = build(family)
    built.model.check_data(built.data)
    with pytest.raises(cm.InputError, match="features x"):
        built.model.check_data({**built.data, "x": built.data["x"][:, 1:]})
    with pytest.raises(cm.InputError, match="regression data"):
        built.model.check_data({**built.data, "offset": built.data["y"]})
    if family not in ("gaussian", "t"):
        with pytest.raises(cm.InputError, match="response y"):
            built.model.check_data({**built.data, "y": built.data["y"] - 0.5})


FITTED = "y ~ x + g + {x ** 3 / 9}"


def made(family: str, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.normal(seed, 2.0, 400), "g": rng.choice(["a", "b"], 400)})
    eta = 0.5 * (frame["x"] - seed) - 0.7 * (frame["g"] == "b")
    is_success = rng.random(400) < 1 / (1 + np.exp(-eta))
    return frame.assign(y=eta + 0.5 * rng.normal(size=400) if family == "gaussian" else is_success)


def quick_fit(model: cm.Model) -> cm.Fit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cm.fit(model, coreset_size=100, draws=200, tune=100, random_seed=0, progressbar=False)


@pytest.mark.full
@pytest.mark.parametrize("family", ["gaussian", pytest.param("bernoulli", marks=pytest.mark.slow)])
def test_a_fit_from_a_formula(family, tmp_path):
    """Names, levels, predictions, a slope within five standard deviations; a second table compiles nothing."""
    frame = made(family, seed=3)
    fitted = quick_fit(cm.from_formula(FITTED, frame, family=family))
    num_compiled = num_compiled_programs()
    quick_fit(cm.from_formula(FITTED, made(family, seed=4), family=family))
    assert num_compiled_programs() == num_compiled > 0
    posterior = fitted.posterior
    assert posterior["g"].dims == ("chain", "draw", "g_dim")
    assert posterior["g_dim"].to_numpy().tolist() == ["b"]
    slope = posterior["x"].to_numpy()
    assert slope.mean() == pytest.approx(0.5, abs=5 * slope.std())
    built = cm.regression(FITTED, frame, family=family)
    predicted = fitted.predict(built.new_rows(frame.iloc[:3]), draws=50)["posterior_predictive"]["y"]
    assert predicted.sizes["row"] == 3
    observed = fitted.tree["observed_data"]["y"].to_numpy()
    np.testing.assert_allclose(observed, frame["y"].to_numpy(float)[fitted.coreset.indices], rtol=1e-12)
    again = cm.load(fitted.save(tmp_path / "fit.nc"), model=built.model, data=built.data)
    assert set(again.posterior.data_vars) == {*built.priors}
    assert "I(x ** 3 div 9)" in built.priors


def test_a_replaced_prior_does_not_go_unnoticed():
    with pytest.raises(cm.InputError, match="Model compiled"):
        replace(build("gaussian").model, log_prior=lambda position: jnp.zeros(()))
