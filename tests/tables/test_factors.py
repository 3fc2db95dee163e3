"""Factors as codes: the same model as with a column of zeros and ones for each level, to rounding."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm
from coreset_mcmc.core.errors import InputError
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.data import layout as layouts
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.posterior.by_passes import FullPosterior, flat_position
from coreset_mcmc.tables import factors
from coreset_mcmc.tables.design_source import in_memory
from coreset_mcmc.tables.factors import CODES, FEWEST_LEVELS
from tests.helpers.frame_sources import Files

SIZE = 900
LEVELS = 12
RESPONSES = {"gaussian": "y", "t": "y", "bernoulli": "yes", "poisson": "count", "negativebinomial": "count"}


def many_levels() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    store, day = rng.permutation(np.arange(SIZE) % LEVELS), rng.integers(0, 9, SIZE)
    frame = pd.DataFrame({"x": rng.normal(3.0, 2.0, SIZE), "z": rng.uniform(0.5, 4.0, SIZE), "day": day})
    frame["store"] = np.array([f"store {number:02d}" for number in range(LEVELS)])[store]
    frame["few"] = np.array(["a", "b", "c"])[rng.integers(0, 3, SIZE)]
    effect = 0.3 * frame["x"] + 0.2 * store - 0.1 * day
    frame["y"] = effect + rng.normal(size=SIZE)
    frame["count"] = rng.poisson(np.exp(0.3 * effect))
    frame["yes"] = (rng.random(SIZE) < 1.0 / (1.0 + np.exp(1.0 - effect))).astype(int)
    return frame


FORMULAS = {
    "one factor": ("{} ~ x + store", 1),
    "it alone": ("{} ~ store", 1),
    "two factors": ("{} ~ store + x * few + C(day) + z", 2),
    "no intercept": ("{} ~ 0 + store + x + C(day)", 2),
    "another reference": ("{} ~ x + T(day, 4) + z", 1),
    "with an interaction": ("{} ~ x * store", 1),
    "an offset": ("{} ~ store + offset(0.1 * z)", 1),
    "sums are no codes": ("{} ~ C(store, Sum) + S(day)", 0),
}
every_formula = pytest.mark.parametrize("name", FORMULAS)


def built(formula, table, family, monkeypatch, *, as_codes=True, **options):
    monkeypatch.setattr(factors, "FEWEST_LEVELS", FEWEST_LEVELS if as_codes else 10**6)
    return cm.regression(formula, table, family=family, **options)


def both(name, monkeypatch, family="gaussian", frame=None, **options):
    formula, num_factors = FORMULAS[name]
    table = many_levels() if frame is None else frame
    coded, dense = (
        built(formula.format(RESPONSES[family]), table, family, monkeypatch, as_codes=as_codes, **options)
        for as_codes in (True, False)
    )
    assert coded.data.get(CODES, np.zeros((0, 0))).shape[1] == num_factors
    assert CODES not in dense.data
    return coded, dense


def somewhere(regression, seed=0):
    rng = np.random.default_rng(seed)
    start = regression.model.initial_position
    return {name: np.asarray(value + 0.3 * rng.normal(size=np.shape(value))) for name, value in start.items()}


def assert_close(one, other, tolerance=1e-10):
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for found, expected in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        size = np.abs(np.asarray(expected)).max(initial=1.0)
        np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * size)


@double_precision
def assert_same_model(coded, dense):
    for name in ("means", "scales", "gram", "with_response", "response_mean", "response_scale"):
        assert_close(getattr(coded.design, name), getattr(dense.design, name))
    for name in ("priors", "terms", "notes", "num_dropped", "num_rows", "columns"):
        assert getattr(coded, name) == getattr(dense, name), name
    assert coded.model.dims == dense.model.dims
    assert coded.model.coords == dense.model.coords
    assert_close(coded.model.initial_position, dense.model.initial_position)
    position = somewhere(dense)
    assert_close(coded.model.constrain(position), dense.model.constrain(position))
    assert_close(coded.model.log_prior(position), dense.model.log_prior(position))
    rows = [jax.tree.map(jnp.asarray, regression.data) for regression in (coded, dense)]
    values = [one.model.log_likelihood(position, batch) for one, batch in zip((coded, dense), rows, strict=True)]
    assert_close(*values)
    if dense.model.change_bound is not None:
        lengths = [one.model.change_bound.row_statistic(own) for one, own in zip((coded, dense), rows, strict=True)]
        assert_close(*lengths)


@double_precision
def derivatives(regression, position):
    posterior = FullPosterior(regression.model.compiled, to_rows(regression.data), position)
    return posterior.derivatives(flat_position(position), "derivatives")


@every_formula
def test_the_same_model(name, monkeypatch):
    assert_same_model(*both(name, monkeypatch))


@pytest.mark.parametrize("family", RESPONSES)
def test_families(family, monkeypatch):
    coded, dense = both("two factors", monkeypatch, family)
    assert_same_model(coded, dense)
    position = somewhere(dense)
    assert_close(derivatives(coded, position), derivatives(dense, position))


@pytest.mark.parametrize("name", ["no intercept", "it alone"])
def test_derivatives(name, monkeypatch):
    coded, dense = both(name, monkeypatch, "poisson")
    assert_close(derivatives(coded, somewhere(dense)), derivatives(dense, somewhere(dense)))


@double_precision
def test_a_broken_twin_is_found(monkeypatch):
    """Without the mean of a column the model is another one."""
    coded, dense = both("one factor", monkeypatch)
    structure = coded.model.linear_predictor.predictor.__self__
    uncentred = replace(structure.factors[0], means=(0.0,) * (LEVELS - 1))
    position, rows = somewhere(dense), jax.tree.map(jnp.asarray, coded.data)
    broken = replace(structure, factors=(uncentred,)).predictor(position, rows)
    expected = dense.model.linear_predictor.predictor(position, jax.tree.map(jnp.asarray, dense.data))
    assert_close(structure.predictor(position, rows), expected)
    with pytest.raises(AssertionError):
        assert_close(broken, expected)


def test_missing_values(monkeypatch):
    frame = many_levels()
    frame.loc[[0, 17, 500], "store"] = None
    frame.loc[[3, 17], "x"] = np.nan
    frame.loc[frame["store"] == "store 07", "z"] = np.nan
    coded, dense = both("two factors", monkeypatch, frame=frame, drop_missing=True)
    assert_same_model(coded, dense)
    assert "store[store 07]" not in coded.terms
    np.testing.assert_array_equal(coded.row_numbers, dense.row_numbers)


@pytest.mark.parametrize("change", [{"store": "unheard of"}, {"store": None}, {"x": np.nan}])
def test_new_rows_are_refused_in_the_same_words(change, monkeypatch):
    strange = many_levels().head(4)
    strange.loc[2, list(change)] = list(change.values())
    messages = []
    for regression in both("two factors", monkeypatch):
        with pytest.raises(InputError) as refused:
            regression.new_rows(strange)
        messages.append(str(refused.value))
    assert messages[0] == messages[1]


def test_new_rows_of_few_levels(monkeypatch):
    """Codes are those of the first table, whichever levels there are."""
    coded, _ = both("two factors", monkeypatch)
    some = coded.new_rows(many_levels().iloc[5:9].drop(columns="y"))
    np.testing.assert_array_equal(some[CODES], coded.data[CODES][5:9])
    assert some[CODES].dtype == np.int32


@pytest.mark.parametrize("name", ["two factors", "no intercept"])
def test_the_same_bits_from_files(name, monkeypatch):
    monkeypatch.setattr(layouts, "MOST_LEAF_ROWS", 256)
    formula = FORMULAS[name][0].format("count")
    memory = built(formula, many_levels(), "poisson", monkeypatch)
    stream = built(formula, Files(many_levels(), (100, 450)), "poisson", monkeypatch)
    assert memory.model.compiled is stream.model.compiled
    found = in_memory(stream.data)
    for key, column in memory.data.items():
        assert found[key].dtype == column.dtype
        np.testing.assert_array_equal(found[key], column)


def test_separation_is_noted(monkeypatch):
    frame = many_levels()
    frame["yes"] = np.where(frame["store"] == "store 05", 1, frame["yes"])
    coded, dense = both("one factor", monkeypatch, "poisson", frame=frame.assign(count=0).assign(count=frame["yes"]))
    assert coded.notes == dense.notes
    every = frame["store"] == "store 03"
    coded, dense = both("it alone", monkeypatch, "poisson", frame=frame.assign(count=every.astype(int)))
    assert coded.notes == dense.notes
    assert any("store 03" in note for note in coded.notes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda codes: None, "keys"),
        (lambda codes: codes[:, :1], "shape"),
        (lambda codes: codes + 100, "code 1"),
        (lambda codes: codes - 100, "code -"),
    ],
)
def test_codes_that_are_none_are_refused(change, said, monkeypatch):
    coded, _ = both("two factors", monkeypatch)
    codes = change(coded.data[CODES])
    data = {name: column for name, column in coded.data.items() if name != CODES or codes is not None}
    with pytest.raises(InputError, match=said):
        coded.model.check_data(data if codes is None else {**data, CODES: codes})


def test_a_response_that_is_explained_nearly_exactly(monkeypatch):
    """The variance then comes from residuals of rows, not from products of columns."""
    frame = many_levels()
    exact = 5.0 * (frame["store"] == "store 03") - 3.0 * frame["day"] + frame["x"] - 2.0 * (frame["few"] == "b")
    frame["y"] = exact + 1e-4 * np.sin(np.arange(SIZE))
    coded, dense = both("two factors", monkeypatch, frame=frame)
    assert float(dense.model.initial_position["log_sigma"]) < -10.0
    assert_close(coded.model.initial_position, dense.model.initial_position, 1e-6)


def test_rows_hold_one_number_for_each_factor(monkeypatch):
    coded, dense = both("two factors", monkeypatch)
    assert dense.source.bytes_per_row - coded.source.bytes_per_row == 8 * (LEVELS - 1 + 8) - 4 * 2


@pytest.mark.full
def test_a_fit_is_saved_read_and_predicts(tmp_path, monkeypatch):
    """Rows of a coreset hold codes, on disk as well; the posterior is that of the dense columns."""
    means = []
    for regression in both("one factor", monkeypatch, "bernoulli"):
        fit = cm.fit(regression.model, draws=300, random_seed=1, progressbar=False)
        fit.save(tmp_path / "fit.nc")
        again = cm.load(tmp_path / "fit.nc", model=regression.model)
        new = regression.new_rows(many_levels().head(3))
        assert fit.predict(new).identical(again.predict(new))
        means.append(fit.posterior["store"].mean(("chain", "draw")).to_numpy())
        spread = fit.posterior["store"].std(("chain", "draw")).to_numpy()
    assert np.abs(means[0] - means[1]).max() < 0.5 * spread.min()
