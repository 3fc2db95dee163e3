"""Effects of groups: names, default widths as Bambi's, rows without a matrix, and fits that find the spread."""

from __future__ import annotations

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm
from tests.helpers.family_examples import families_table


def test_names_and_dimensions():
    built = cm.regression("y ~ x + (x|g) + (g|h)", families_table())
    shown = built.model.constrain(built.model.initial_position)
    assert {name: np.shape(value) for name, value in shown.items() if "|" in name} == {
        **{"1|g": (3,), "1|g_sigma": (), "x|g": (3,), "x|g_sigma": ()},
        **{"1|h": (4,), "1|h_sigma": (), "g|h": (4, 2), "g|h_sigma": (2,)},
    }
    assert built.model.dims["g|h"] == ("h__factor_dim", "g__expr_dim")
    assert built.model.coords["h__factor_dim"] == ["u", "v", "w", "z"]
    assert set(built.priors) == {*shown} - {"1|g", "x|g", "1|h", "g|h"}


def test_rows_have_no_column_for_each_group():
    frame = families_table().assign(store=lambda f: np.arange(len(f)) % 70)
    built = cm.regression("y ~ x + (x|store)", frame)
    assert {name: array.shape[1:] for name, array in built.data.items()} == {
        "x": (1,),
        "y": (),
        "codes": (1,),
        "multipliers": (1,),
    }


def test_new_rows_and_their_groups():
    built = cm.regression("y ~ x + (x|g)", families_table())
    some = families_table().iloc[[5, 8, 9]]
    rows = built.new_rows(some)
    for name, array in rows.items():
        np.testing.assert_array_equal(array, built.data[name][[5, 8, 9]])
    with pytest.raises(cm.InputError, match=r"\(d\) in 'g' are not present in the original data"):
        built.new_rows(some.assign(g="d"))


def test_the_predictor_by_hand():
    """Shown effects times raw columns."""
    frame = families_table()
    built = cm.regression("y ~ x + (x|g) + (1|g:h)", frame)
    rng = np.random.default_rng(2)
    position = {name: value + rng.normal(size=np.shape(value)) for name, value in built.model.initial_position.items()}
    shown = {name: np.asarray(value) for name, value in built.model.constrain(position).items()}
    g, h = (
        np.searchsorted(list("abc"), frame["g"].to_numpy(str)),
        np.searchsorted(list("uvwz"), frame["h"].to_numpy(str)),
    )
    x = frame["x"].to_numpy()
    eta = shown["Intercept"] + shown["x"] * x + shown["1|g"][g] + shown["x|g"][g] * x + shown["1|g:h"][4 * g + h]
    expected = built.model.expected(position, jax.tree.map(jnp.asarray, built.data))["y"]
    np.testing.assert_allclose(expected, eta, rtol=1e-9, atol=1e-9)


def test_values_of_the_user_as_a_start():
    built = cm.regression("y ~ x + (x|g) + (1|h)", families_table())
    start = built.model.initial_position
    given = {"1|g": [0.5, -1.0, 2.0], "x|g_sigma": 0.7, "1|h_sigma": 1.5}
    shown = built.model.constrain(built.model.unconstrain(given, start))
    for name, value in given.items():
        np.testing.assert_allclose(shown[name], value, rtol=1e-9)
    with pytest.raises(cm.InputError, match=r"initvals 1\|h_sigma: got .*; expected numbers above 0"):
        built.model.unconstrain({"1|h_sigma": -1.0}, start)
    with pytest.raises(cm.InputError, match=r"initvals 1\|g: got 2 values; expected 3"):
        built.model.unconstrain({"1|g": [1.0, 2.0]}, start)


def test_a_flat_prior_of_a_spread_is_refused():
    with pytest.raises(cm.InputError, match=r"prior of 1\|g_sigma: got Flat; expected a proper prior"):
        cm.regression("y ~ x + (1|g)", families_table(), priors={"1|g_sigma": "Flat"})
    built = cm.regression("y ~ x + (1|g)", families_table(), priors={"1|g_sigma": "Exponential(2)"})
    assert built.priors["1|g_sigma"] == "Exponential(2)"


WIDTHS = [
    ("y ~ x + g + (x|h)", "gaussian"),
    ("success ~ x + g + (x|h)", "bernoulli"),
    ("success ~ x:g + (1|h)", "bernoulli"),
    ("count ~ x * g + (g|h)", "poisson"),
    ("rating ~ x + (1|g)", "cumulative"),
]


@pytest.mark.full
@pytest.mark.parametrize(("formula", "family"), WIDTHS)
def test_default_widths_are_those_of_bambi(formula, family):
    bmb = pytest.importorskip("bambi", reason="needs Bambi: pip install coreset-mcmc[bambi]")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = bmb.Model(formula, families_table(), family=family)
        theirs.build()
    ours = cm.regression(formula, families_table(), family=family)
    terms = theirs.components[theirs.family.likelihood.parent].group_specific_terms
    for name, term in terms.items():
        widths = np.atleast_1d(term.prior.args["sigma"].args["sigma"])
        found = [float(part.rpartition("(")[2].rstrip(")")) for part in ours.priors[f"{name}_sigma"].split("; ")]
        np.testing.assert_allclose(found, widths, rtol=2e-4)


def grouped(size: int, groups: int, family: str) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    code, x = rng.integers(0, groups, size), rng.normal(2, 1, size)
    intercepts, slopes = 0.6 * rng.normal(size=groups), 0.3 * rng.normal(size=groups)
    eta = -0.5 + 0.4 * x + intercepts[code] + slopes[code] * x
    frame = pd.DataFrame({"x": x, "g": [f"g{number:03d}" for number in code]})
    is_success = (rng.random(size) < 1 / (1 + np.exp(-eta))).astype(int)
    return frame.assign(y=is_success if family == "bernoulli" else eta + rng.normal(size=size))


def spreads(frame, family, **options) -> cm.Fit:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cm.from_formula("y ~ x + (x|g)", frame, family=family)
        return cm.fit(model, random_seed=1, progressbar=False, **options)


@pytest.mark.slow
def test_the_spread_of_groups_is_found():
    """The numbers of docs/formulas.md."""
    found = spreads(grouped(20_000, 30, "bernoulli"), "bernoulli").posterior
    assert found["1|g_sigma"].mean().item() == pytest.approx(0.61, abs=0.02)
    assert found["1|g_sigma"].std().item() == pytest.approx(0.10, abs=0.02)
    assert found["x|g_sigma"].mean().item() == pytest.approx(0.30, abs=0.01)
    assert found["x|g_sigma"].std().item() == pytest.approx(0.05, abs=0.01)


@pytest.mark.slow
def test_the_posterior_is_that_of_all_rows():
    """Means within a tenth of a standard deviation and spreads within a tenth of those of NUTS on all rows."""
    frame = grouped(3_000, 8, "gaussian")
    few = spreads(frame, "gaussian", draws=2000).posterior
    whole = spreads(frame, "gaussian", method=cm.NUTS(), draws=2000).posterior
    for name in ("Intercept", "x", "1|g", "x|g", "1|g_sigma", "x|g_sigma", "sigma"):
        one, other = (np.moveaxis(part[name].to_numpy().reshape(8000, -1), 0, -1) for part in (few, whole))
        scale = other.std(axis=-1)
        assert np.max(np.abs(one.mean(axis=-1) - other.mean(axis=-1)) / scale) < 0.15, name
        np.testing.assert_allclose(one.std(axis=-1), scale, rtol=0.15, err_msg=name)
