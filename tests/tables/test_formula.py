"""What formulas mean, against designs built by hand, and what they must not do."""

from __future__ import annotations

import math
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import coreset_mcmc as cm
from coreset_mcmc.tables.formula import read_formula
from coreset_mcmc.tables.formula_check import NUMPY_FUNCTIONS, environment
from tests.helpers.table_examples import SIZE, table

FRAME = table()
X, Z, WHOLE, FLAG = (FRAME[name].to_numpy(float) for name in ("x", "z", "i", "flag"))
LEVEL = {level: (FRAME["g"] == level).to_numpy(float) for level in "abc"}
HIGH = (FRAME["h"] == "high").to_numpy(float)


def orthogonal(values: np.ndarray, degree: int) -> np.ndarray:
    """Orthonormal polynomials by QR, up to their signs."""
    q, r = np.linalg.qr(np.vander(values - values.mean(), degree + 1, increasing=True))
    return (q * np.sign(np.diag(r)))[:, 1:]


def spline(values: np.ndarray, df: int) -> np.ndarray:
    from scipy.interpolate import BSpline

    inner = np.percentile(values, 100 * np.linspace(0, 1, df - 3 + 2)[1:-1])
    knots = np.r_[[values.min()] * 4, inner, [values.max()] * 4]
    inside = np.minimum(values, np.nextafter(values.max(), -np.inf))
    return BSpline.design_matrix(inside, knots, 3).toarray()[:, 1:]


DESIGNS = {
    "y ~ x": [X],
    "y ~ x + g": [X, LEVEL["b"], LEVEL["c"]],
    "y ~ 0 + g": [LEVEL["a"], LEVEL["b"], LEVEL["c"]],
    "y ~ g - 1": [LEVEL["a"], LEVEL["b"], LEVEL["c"]],
    "y ~ 0 + x": [X],
    "y ~ h": [HIGH],
    "y ~ flag": [FLAG],
    "y ~ x * z": [X, Z, X * Z],
    "y ~ x:z": [X * Z],
    "y ~ x * g": [X, LEVEL["b"], LEVEL["c"], X * LEVEL["b"], X * LEVEL["c"]],
    "y ~ x / h": [X, X * HIGH],
    "y ~ g / x": [LEVEL["b"], LEVEL["c"], X * LEVEL["a"], X * LEVEL["b"], X * LEVEL["c"]],
    "y ~ (x + z) ** 2": [X, Z, X * Z],
    "y ~ x + z - x": [Z],
    "y ~ C(i)": [WHOLE == 1, WHOLE == 2, WHOLE == 3],
    "y ~ C(i, Treatment(2))": [WHOLE == 0, WHOLE == 1, WHOLE == 3],
    "y ~ C(g, Sum)": [LEVEL["a"] - LEVEL["c"], LEVEL["b"] - LEVEL["c"]],
    "y ~ T(g, 'b')": [LEVEL["a"], LEVEL["c"]],
    "y ~ S(g, 'a')": [LEVEL["b"] - LEVEL["a"], LEVEL["c"] - LEVEL["a"]],
    "y ~ 0 + scale(x)": [(X - X.mean()) / X.std()],
    "y ~ 0 + standardize(x)": [(X - X.mean()) / X.std()],
    "y ~ 0 + center(x)": [X - X.mean()],
    "y ~ np.log(z)": [np.log(Z)],
    "y ~ np.maximum(x, z) + np.where(x > z, 1, 0)": [np.maximum(X, Z), X > Z],
    "y ~ I(x ** 2) + {x / z}": [X**2, X / Z],
    "y ~ {x > 3}": [X > 3],
    "y ~ {g == 'b'}": [LEVEL["b"]],
    "y ~ poly(x, 3)": list(orthogonal(X, 3).T),
    "y ~ poly(x, 2, raw=True)": [X, X**2],
    "y ~ bs(x, df=5)": list(spline(X, 5).T),
    "y ~ `my col`": [FRAME["my col"].to_numpy()],
    "y ~ {i ** 3}": [WHOLE**3],
}


@pytest.mark.parametrize("formula", list(DESIGNS))
def test_designs(formula):
    expected = np.column_stack(DESIGNS[formula]).astype(float)
    built = cm.regression(formula, FRAME)
    has_intercept = "0 +" not in formula and "- 1" not in formula
    assert built.design.has_intercept == has_intercept
    shown = built.data["x"] * built.design.scales + built.design.means
    np.testing.assert_allclose(shown, expected, atol=1e-9)
    np.testing.assert_allclose(np.mean(built.data["x"] ** 2, axis=0), 1.0, rtol=1e-12)
    if has_intercept:
        np.testing.assert_allclose(built.data["x"].mean(axis=0), 0.0, atol=1e-13)
    assert len(built.terms) == expected.shape[1]


def test_names_of_terms_and_levels():
    built = cm.regression("y ~ x * g + poly(z, 2) + {x / z}", FRAME)
    assert built.terms[:5] == ("x", "g[b]", "g[c]", "x:g[b]", "x:g[c]")
    assert built.model.dims == {name: (f"{name}_dim",) for name in ("g", "poly(z, 2)", "x:g")}
    assert built.model.coords["g_dim"] == ["b", "c"]
    assert built.model.coords["poly(z, 2)_dim"] == ["0", "1"]
    assert "I(x div z)" in built.priors
    assert built.columns == ("y", "x", "g", "z")


def test_levels_are_sorted_unless_the_user_has_ordered_them():
    frame = table()
    frame["g"] = frame["g"].astype("category").cat.set_categories(["c", "b", "a", "never"])
    assert cm.regression("y ~ g", frame).terms == ("g[b]", "g[c]")
    frame["g"] = frame["g"].cat.as_ordered()
    assert cm.regression("y ~ g", frame).terms == ("g[b]", "g[a]")


def test_whole_numbers_do_not_overflow():
    frame = table()
    frame["i"] = frame["i"].astype(np.int8) + np.int8(100)
    built = cm.regression("y ~ {i ** 2}", frame)
    assert built.design.means[0] == pytest.approx(np.mean((WHOLE + 100) ** 2))


def test_offsets():
    built = cm.regression("count ~ x + offset(np.log(z))", FRAME, family="poisson")
    np.testing.assert_allclose(built.data["offset"], np.log(Z))
    assert built.terms == ("x",)


def test_types_of_other_libraries():
    frame = table()
    frame["x"], frame["i"] = frame["x"].astype("Float64"), frame["i"].astype("Int16")
    frame["flag"] = frame["flag"].astype("boolean")
    frame["g"] = frame["g"].astype(object)
    frame["z"] = frame["z"].astype("float32")
    built = cm.regression("y ~ x + C(i) + flag + g + z", frame)
    assert built.data["x"].dtype == float
    assert built.terms == ("x", "C(i)[1]", "C(i)[2]", "C(i)[3]", "flag", "g[b]", "g[c]", "z")
    frame["flag"] = frame["flag"].astype(object).where(np.arange(SIZE) > 0, None)
    assert cm.regression("y ~ flag", frame, drop_missing=True).num_dropped == 1


INJECTIONS = [
    "__import__('os').system('touch {mark}')",
    "__import__('pathlib').Path('{mark}').touch()",
    "`__import__('pathlib').Path('{mark}').touch()`",
    "().__class__.__base__.__subclasses__()",
    "''.__class__",
    "x.__class__",
    "x.values.tofile('{mark}')",
    "I(x.values.tofile('{mark}'))",
    "np.load('{mark}')",
    "np.save('{mark}', x)",
    "np.log.__class__(x)",
    "np.lib.npyio.save('{mark}', x)",
    "np.random.seed(0)",
    "np.sum(x)",
    "np.where(x > 0, open('{mark}', 'w'), x)",
    "open('{mark}', 'w')",
    "eval('1')",
    "exec('1')",
    "getattr(x, 'y')",
    "print(x)",
    "I(np)",
    "I(__builtins__)",
    "I(open)",
    "I(x)(z)",
    "I.__globals__(x)",
    "C(x, open('{mark}', 'w'))",
    "C(i, Treatment(open('{mark}', 'w')))",
    "C(i, contrast=np.log)",
    "{{open('{mark}', 'w')}}",
    "{{x + __import__('os')}}",
    "bs(x, df=open('{mark}', 'w'))",
    "offset(open('{mark}', 'w'))",
    "lambda q: q",
    "(lambda: x)()",
    "[q for q in x]",
    "{{'a': x}}",
    "x if x else z",
    "x; import os",
    "x\nimport os",
    "np.log(x, z)",
    "np.log(x, out=z)",
    "np.clip(x, 0, 1, z)",
    "f'{{x}}'",
    "x := 3",
    "@x",
    "$x",
    "pd.eval('1')",
    "cm.fit(x)",
    "Treatment(x)",
    "prop(x, z)",
    "Proportion.__init__(x)",
]


@pytest.mark.parametrize("term", INJECTIONS)
@pytest.mark.parametrize("side", ["left", "right"])
def test_no_formula_runs_code(tmp_path, term, side, monkeypatch):
    mark = tmp_path / "was here"
    evil = term.format(mark=mark)
    formula = f"y ~ x + {evil}" if side == "right" else f"{evil} ~ x"
    evaluated = []
    module = sys.modules["coreset_mcmc.tables.regression"]
    monkeypatch.setattr(module, "build_design", lambda *args: evaluated.append(args))
    with pytest.raises(cm.InputError, match="formula"):
        cm.regression(formula, FRAME)
    assert not evaluated
    assert not mark.exists()


def test_the_environment_holds_nothing_else():
    """A second wall: were a name to slip through the first, it would not be found."""
    space = environment().namespace
    assert set(vars(space["np"])) == set(NUMPY_FUNCTIONS)
    for name in ("open", "__builtins__", "Path", "pd", "cm", "FRAME"):
        assert name not in space
    assert all(isinstance(getattr(np, name), np.ufunc) or callable(getattr(np, name)) for name in NUMPY_FUNCTIONS)


def test_a_formula_does_not_change_the_table():
    frame = table()
    before = frame.copy(deep=True)
    cm.regression("y ~ scale(x) + center(z) + {x ** 2} + np.clip(x, 0, 1)", frame)
    assert frame.equals(before)


@pytest.mark.parametrize("power", [5, 10])
def test_products_cannot_explode(power):
    many = table().assign(**{f"v{place}": 0.0 for place in range(40)})
    names = " + ".join(f"v{place}" for place in range(40))
    with pytest.raises(cm.InputError, match=rf"{sum(math.comb(40, k) for k in range(1, power + 1))} terms"):
        read_formula(f"y ~ ({names}) ** {power}", many.columns)
    with pytest.raises(cm.InputError, match="expected at most 300 terms"):
        read_formula(f"y ~ {names.replace('+', '*')}", many.columns)


@pytest.mark.parametrize("formula", ["y ~ " + "+".join(["x"] * 4000), "y ~ " + "(" * 4000 + "x" + ")" * 4000])
def test_very_long_formulas(formula):
    with pytest.raises(cm.InputError) as caught:
        read_formula(formula, ["x", "y"])
    assert len(str(caught.value)) < 500


PIECES = [
    *"yxz~+-*/:|(){}[]`'\"., 0129=<>!_%@\\\n",
    "np.",
    "np.log(",
    "C(",
    "I(",
    "offset(",
    "**",
    "==",
    "__",
    "None",
    " ~ ",
]


@settings(max_examples=1500, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), st.booleans())
def test_any_text_is_a_formula_or_refused(text, with_response):
    """No other exception, and columns of the table alone."""
    try:
        formula = read_formula(f"y ~ {text}" if with_response else text, ["x", "y", "z"])
    except cm.InputError:
        return
    assert set(formula.columns) <= {"x", "y", "z"}


def test_as_many_columns_as_allowed():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"column_{place}": rng.normal(size=400) for place in range(301)})
    formula = "column_300 ~ " + " + ".join(f"column_{place}" for place in range(300))
    assert len(cm.regression(formula, frame).terms) == 300
