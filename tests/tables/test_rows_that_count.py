"""Weights, filters, rare levels, dates and empty interactions; of data frames and of scans alike."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data import layout as layouts
from tests.helpers.table_examples import RESPONSES, table
from tests.tables.test_formulas_on_scans import written
from tests.tables.test_frame_sources import assert_same, many, same_bits


@pytest.fixture
def short_leaves(monkeypatch):
    monkeypatch.setattr(layouts, "MOST_LEAF_ROWS", 256)


def log_posterior(built, position) -> float:
    rows = jax.tree.map(jnp.asarray, built.data)
    return float(built.model.log_prior(position) + jnp.sum(built.model.log_likelihood(position, rows)))


@pytest.mark.parametrize("family", list(RESPONSES))
@pytest.mark.parametrize("right", ["x * g + flag + (1|h)", "C(i) + x + offset(z)", "0 + g + x"])
def test_whole_numbers_as_weights_are_repeated_rows(family, right, monkeypatch):
    """Standardisation, default priors, start and log-posterior are those of the table with rows written out."""
    monkeypatch.setattr("coreset_mcmc.tables.factors.FEWEST_LEVELS", 4)
    frame = table().assign(times=lambda f: np.arange(len(f)) % 4)
    formula = f"{RESPONSES[family]} ~ {right}"
    weighted = cm.regression(formula, frame, family=family, weights="times")
    repeated = cm.regression(formula, frame.loc[frame.index.repeat(frame["times"])], family=family)
    assert weighted.priors == repeated.priors
    for name, value in repeated.model.initial_position.items():
        np.testing.assert_allclose(weighted.model.initial_position[name], value, rtol=1e-8, atol=1e-9)
    rng = np.random.default_rng(0)
    start = repeated.model.initial_position
    position = {name: value + 0.3 * rng.normal(size=value.shape) for name, value in start.items()}
    np.testing.assert_allclose(log_posterior(weighted, position), log_posterior(repeated, position), rtol=1e-9)
    assert "30 rows with weight 0 left out" in weighted.notes
    assert "times are frequency weights: 90 rows count as 180" in weighted.notes
    assert weighted.num_rows == 90


def test_importance_weights_are_said_to_be_such():
    frame = table().assign(share=0.5)
    built = cm.regression("y ~ x", frame, weights="share")
    note = (
        "share are importance weights, no whole numbers: log-likelihoods are multiplied with them, and intervals are "
    )
    assert built.notes == (note + "those of 60 rows, the sum of the weights, where there are 120",)
    rows = jax.tree.map(jnp.asarray, built.data)
    plain = {key: value for key, value in rows.items() if key != "weight"}
    position = built.model.initial_position
    halved = 0.5 * built.model.log_likelihood(position, plain)
    np.testing.assert_allclose(built.model.log_likelihood(position, rows), halved, rtol=1e-12)


CONDITIONS = {
    "x > 3": lambda f: f["x"] > 3,
    "x > 3 and not flag": lambda f: (f["x"] > 3) & ~f["flag"],
    "g in ['a', 'c'] or x * 2 >= 8": lambda f: f["g"].isin(["a", "c"]) | (f["x"] * 2 >= 8),
    "g not in ['a']": lambda f: f["g"] != "a",
    "1 < x <= 4.5": lambda f: (f["x"] > 1) & (f["x"] <= 4.5),
    "g != 'b' and flag": lambda f: (f["g"] != "b") & f["flag"],
    "`my col` > 0": lambda f: f["my col"] > 0,
    "np.abs(x - 3) < 1 and i % 2 == 0": lambda f: (np.abs(f["x"] - 3) < 1) & (f["i"] % 2 == 0),
    "h == 'low'": lambda f: f["h"] == "low",
    "-x < -3": lambda f: f["x"] > 3,
    "day >= '2020-02-01'": lambda f: f["day"] >= "2020-02-01",
    "year(day) == 2020 and month(day) < 3": lambda f: f["day"].dt.month < 3,
}


@pytest.mark.parametrize("where", list(CONDITIONS))
def test_filters(where):
    frame = table().assign(day=pd.date_range("2020-01-01", periods=120))
    built = cm.regression("y ~ z + i", frame, where=where)
    chosen = np.flatnonzero(CONDITIONS[where](frame))
    expected = cm.regression("y ~ z + i", frame.iloc[chosen])
    np.testing.assert_array_equal(built.row_numbers, chosen)
    assert same_bits(built.data, expected.data)
    assert f"{120 - len(chosen)} of 120 rows left out by the filter" in built.notes
    assert built.num_dropped == 120 - len(chosen)


def test_rows_that_a_filter_leaves_out_may_lack_values():
    frame = table()
    frame.loc[:9, "z"] = np.nan
    frame.loc[20:24, "x"] = np.nan
    with pytest.raises(cm.InputError, match=r"10 of 120 rows with missing values \(z: 10; first in row 0\)"):
        cm.regression("y ~ z", frame)
    with pytest.raises(cm.InputError, match=r"5 of \d+ rows with missing values \(z: 5; first in row 5\)"):
        cm.regression("y ~ z", frame.assign(place=range(120)), where="place > 4")
    built = cm.regression("y ~ z", frame, where="z > 0 and x < 100")
    assert built.num_rows == 120 - 15


def test_levels_that_only_other_rows_have_are_none():
    built = cm.regression("y ~ g", table(), where="g != 'b'")
    assert built.terms == ("g[c]",)


def rare() -> pd.DataFrame:
    names = ["common"] * 50 + ["usual"] * 40 + ["odd"] * 20 + ["rare"] * 9 + ["once"]
    return table().assign(name=names, code=np.repeat([1, 2, 3, 4], [60, 50, 6, 4]))


def test_rare_levels_are_one():
    built = cm.regression("y ~ x + name", rare(), lump_rare=15)
    assert built.terms == ("x", "name[odd]", "name[usual]", "name[other]")
    assert "2 levels of name with fewer than 15 rows are 'other' (10 rows): once, rare" in built.notes
    by_hand = rare().assign(name=lambda f: f["name"].replace({"rare": "zz", "once": "zz"}))
    np.testing.assert_array_equal(built.data["x"], cm.regression("y ~ x + name", by_hand).data["x"])
    numbers = cm.regression("y ~ C(code) + (1|name)", rare(), lump_rare=15)
    assert numbers.terms == ("C(code)[2]", "C(code)[other]")
    assert list(numbers.model.coords["name__factor_dim"]) == ["common", "odd", "usual", "other"]
    both = cm.regression("y ~ {x * code} + C(code)", rare(), lump_rare=15)
    assert "C(code)[3]" in both.terms, "a column that is used as numbers, too, keeps its values"


def test_new_levels_are_other_levels():
    built = cm.regression("y ~ x + name", rare(), lump_rare=15)
    new = built.new_rows(pd.DataFrame({"x": [1.0] * 3, "name": ["once", "never seen", "usual"]}))
    np.testing.assert_array_equal(new["x"][0], new["x"][1])
    assert not np.array_equal(new["x"][0], new["x"][2])


def test_a_single_rare_level_stays():
    built = cm.regression("y ~ name", rare(), lump_rare=5)
    assert "name: only 'once' has fewer than 5 rows, and keeps them" in built.notes
    assert "name[once]" in built.terms


def dated() -> pd.DataFrame:
    day = pd.date_range("2019-12-30 06:00", periods=120, freq="7h")
    return table().assign(day=day, text=day.strftime("%Y-%m-%d %H:%M"))


@pytest.mark.parametrize("name", ["day", "text"])
def test_dates_are_numbers(name):
    frame = dated()
    formula = f"y ~ year({name}) + dayofweek({name}) + hour({name}) + days({name}) + x"
    built = cm.regression(formula, frame)
    raw = built.data["x"] * built.design.scales + built.design.means
    day = frame["day"].dt
    expected = [day.year, day.day_of_week, day.hour, (frame["day"] - pd.Timestamp(0)) / pd.Timedelta(days=1)]
    np.testing.assert_allclose(raw[:, :4], np.stack(expected, axis=1), rtol=1e-9, atol=1e-9)
    assert built.terms[:2] == (f"year({name})", f"dayofweek({name})")
    assert built.columns == ("y", name, "x")
    new = built.new_rows(frame.drop(columns="y").iloc[[5, 7]])
    np.testing.assert_allclose(new["x"], built.data["x"][[5, 7]], rtol=1e-9, atol=1e-9)


def test_dates_as_levels_and_groups():
    built = cm.regression("y ~ C(dayofweek(day)) + (1|month(day))", dated())
    assert built.terms == tuple(f"C(dayofweek(day))[{day}]" for day in range(1, 7))
    assert "reference levels: C(dayofweek(day)) = 0" in built.notes
    assert list(built.model.coords["month(day)__factor_dim"]) == ["1", "2", "12"]


def test_interactions_that_no_row_has_are_left_out():
    frame = table().assign(g=["a", "b", "a", "c"] * 30, k=["u", "u", "v", "u"] * 30)
    built = cm.regression("y ~ x + g * k", frame)
    assert built.terms == ("x", "g[b]", "g[c]", "k[v]")
    assert "no row has these combinations of levels, which are left out: g[b]:k[v], g[c]:k[v]" in built.notes
    assert set(built.priors) == {"Intercept", "x", "g", "k", "sigma"}
    some = cm.regression(
        "y ~ g * k", frame.assign(k=["u", "u", "v", "u", "v", "v"] * 20, g=["a", "b", "a", "c", "b", "a"] * 20)
    )
    assert some.terms == ("g[b]", "g[c]", "k[v]", "g[b]:k[v]")
    rows = some.new_rows(frame.assign(g="b", k="v").iloc[:2])
    assert rows["x"].shape == (2, 4)


SCANNED = [
    ("y ~ x + (x|g) + (1|i)", "gaussian", {}),
    ("outcome ~ x + g", "bernoulli", {"link": "probit", "where": "x > 2 and g != 'last'"}),
    ("count ~ x + g", "zero_inflated_poisson", {"weights": "i"}),
    ("p(i, 9) ~ x * g", "binomial", {"lump_rare": 200}),
    ("censored(z, flag) ~ x", "weibull", {"where": "z > 0.6", "weights": "i"}),
    ("i ~ x + g", "cumulative", {}),
    ("g ~ x", "categorical", {}),
    ("z ~ month(day) + C(dayofweek(day))", "gamma", {"where": "year(day) >= 1970"}),
]


@pytest.mark.parametrize(("formula", "family", "options"), SCANNED)
def test_scans_give_the_same_bits(tmp_path, formula, family, options, short_leaves):
    frame = many().assign(day=lambda f: pd.date_range("1970-01-01", periods=len(f), freq="5h"))
    scan = cm.scan_parquet(written(tmp_path / "table", frame, "three files"))
    memory = cm.regression(formula, frame, family=family, **options)
    stream = cm.regression(formula, scan, family=family, **options)
    assert_same(memory, stream)
    assert memory.notes == stream.notes
    np.testing.assert_array_equal(memory.row_numbers, stream.row_numbers)


def test_what_needs_all_rows_is_refused_for_scans(tmp_path):
    scan = cm.scan_parquet(written(tmp_path / "table", many(), "one file"))
    with pytest.raises(cm.InputError, match="scale, which depends on all rows at once"):
        cm.regression("y ~ (scale(x)|g)", scan)
