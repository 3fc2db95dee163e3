"""A table that is not in memory gives the same bits as a data frame, row by row and in all that follows from them."""

from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import replace

import cloudpickle
import jax
import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data import layout as layouts
from coreset_mcmc.data.engine import Local
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.tables.design_source import DesignSource, in_memory
from coreset_mcmc.tables.frames import FrameTable
from tests.helpers.frame_sources import Files
from tests.helpers.table_examples import table

SIZE = 1_100
LEAF = 256
CUTS = {"one file": (), "three files": (300, 811), "many files": tuple(range(70, SIZE, 70))}


@pytest.fixture(autouse=True)
def short_leaves(monkeypatch):
    """Several leaves, and a last one that is shorter, for a table of a thousand rows."""
    monkeypatch.setattr(layouts, "MOST_LEAF_ROWS", LEAF)


def many(seed: int = 0) -> pd.DataFrame:
    """The small table over and over, its numbers changed, with a level that occurs at the end only."""
    rng = np.random.default_rng(seed)
    frame = pd.concat([table()] * 10, ignore_index=True).iloc[:SIZE].copy()
    for name in ("x", "z", "y", "my col"):
        frame[name] += rng.uniform(0, 0.3, SIZE)
    frame.loc[[SIZE - 3, SIZE - 9], "g"] = "last"
    frame.loc[[SIZE - 2, SIZE - 5], "i"] = 9
    return frame


def with_gaps() -> pd.DataFrame:
    """Missing values in three columns; a whole leaf lacks something, and so does the first row."""
    frame = many()
    frame.loc[[0, 5, 700, SIZE - 1], "x"] = np.nan
    frame.loc[[1, 5, 1000], "g"] = None
    frame.loc[LEAF : 2 * LEAF - 1, "z"] = np.nan
    return frame


FORMULAS = {
    "numbers": ("y ~ x + z", "gaussian"),
    "numbers and booleans": ("y ~ x * z + flag", "t"),
    "no intercept": ("y ~ 0 + x + g", "gaussian"),
    "an intercept alone": ("y ~ 1", "gaussian"),
    "levels": ("count ~ x * g + h", "poisson"),
    "levels of numbers": ("y ~ C(i) + x:C(i)", "gaussian"),
    "coding": ("outcome ~ C(g, Sum) + T(i, 2) + S(h)", "bernoulli"),
    "nested levels": ("y ~ g / x", "gaussian"),
    "products of levels": ("y ~ g:h:x + flag:z", "gaussian"),
    "calls": ("outcome ~ np.log(z) + {x ** 2} + np.maximum(x, z) + np.where(x > z, 1, 0)", "bernoulli"),
    "comparisons": ("count ~ {g == 'last'} + {x > 3} + binary(g, 'b') + binary(h) + B(i)", "negativebinomial"),
    "levels inside a call": ("y ~ I(C(g)) + x", "gaussian"),
    "an offset": ("count ~ x + offset(np.log(z)) + offset({x / 2})", "poisson"),
    "an offset of a number": ("y ~ x + offset(z)", "gaussian"),
    "an offset of chances": ("success ~ x + offset(z)", "bernoulli"),
    "a response that is computed": ("np.log(z) ~ x + g", "gaussian"),
    "a level as the response": ("outcome['no'] ~ x", "bernoulli"),
    "a comparison as the response": ("{g == 'last'} ~ x", "bernoulli"),
    "a boolean response": ("flag ~ x", "bernoulli"),
}


def same_bits(one, other) -> bool:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return jax.tree.structure(one) == jax.tree.structure(other) and all(
        np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(a, b) for a, b in pairs
    )


def assert_same(memory: cm.Regression, stream: cm.Regression) -> None:
    for name in ("means", "scales", "gram", "with_response", "response_mean", "response_scale", "terms", "labels"):
        assert same_bits(getattr(memory.design, name), getattr(stream.design, name)), name
    assert same_bits(memory.model.initial_position, stream.model.initial_position)
    for name in ("priors", "notes", "terms", "num_dropped", "num_rows", "columns"):
        assert getattr(memory, name) == getattr(stream, name), name
    assert memory.model.compiled is stream.model.compiled
    assert isinstance(stream.data, DesignSource)
    assert stream.data is stream.model.data
    assert same_bits(memory.data, in_memory(stream.data))


@pytest.mark.parametrize("cuts", list(CUTS))
@pytest.mark.parametrize("name", list(FORMULAS))
def test_the_same_bits_from_memory_and_from_files(name, cuts):
    formula, family = FORMULAS[name]
    memory = cm.regression(formula, many(), family=family)
    assert_same(memory, cm.regression(formula, Files(many(), CUTS[cuts]), family=family))


@pytest.mark.parametrize("cuts", list(CUTS))
@pytest.mark.parametrize("formula", ["y ~ x + z", "outcome ~ x * g + np.log(z)", "g['b'] ~ C(i) + x + offset(z)"])
def test_the_same_bits_where_rows_are_dropped(formula, cuts):
    family = "gaussian" if formula.startswith("y") else "bernoulli"
    memory = cm.regression(formula, with_gaps(), family=family, drop_missing=True)
    stream = cm.regression(formula, Files(with_gaps(), CUTS[cuts]), family=family, drop_missing=True)
    assert_same(memory, stream)
    complete = with_gaps()[list(memory.columns)].notna().all(axis=1).to_numpy()
    assert 0 < memory.num_dropped == SIZE - complete.sum()
    np.testing.assert_array_equal(stream.row_numbers, np.flatnonzero(complete))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_same_bits_whoever_adds(threads):
    formula = "outcome ~ x * g + np.log(z)"
    one = cm.regression(formula, many(), family="bernoulli", engine=Local(1))
    assert_same(one, cm.regression(formula, Files(many()), family="bernoulli", engine=Local(threads)))


def test_another_leaf_changes_bits(monkeypatch):
    """The comparison can fail: sums over leaves of another length are other sums."""
    short = cm.regression("y ~ x + g", many())
    monkeypatch.setattr(layouts, "MOST_LEAF_ROWS", 2 * LEAF)
    long = cm.regression("y ~ x + g", many())
    assert not same_bits(short.design.gram, long.design.gram)
    np.testing.assert_allclose(short.design.gram, long.design.gram, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("frame", [many, with_gaps])
@pytest.mark.parametrize("leaf_rows", [64, 200, 256, 2_048])
def test_any_division_into_leaves(frame, leaf_rows):
    memory = cm.regression("y ~ x * g + offset(z)", frame(), drop_missing=True)
    source = cm.regression("y ~ x * g + offset(z)", Files(frame(), (300,)), drop_missing=True).data
    layout = Layout(source.size, leaf_rows)
    for leaf in source.leaves(layout, range(0, layout.num_leaves, 2)):
        assert same_bits(leaf.batch, {key: values[leaf.start : leaf.stop] for key, values in memory.data.items()})
    rng = np.random.default_rng(0)
    places = rng.integers(0, source.size, 37)
    assert same_bits(source.take(places), {key: values[places] for key, values in memory.data.items()})
    for start, stop in ((0, 1), (3, source.size), (source.size - 1, source.size), (250, 520)):
        assert same_bits(source.read(start, stop), {key: values[start:stop] for key, values in memory.data.items()})


@pytest.mark.parametrize("frame", [many, with_gaps])
def test_rows_of_the_table(frame):
    whole = frame()
    memory = cm.regression("outcome ~ x + g + z", whole, family="bernoulli", drop_missing=True)
    stream = cm.regression("outcome ~ x + g + z", Files(frame(), (300,)), family="bernoulli", drop_missing=True)
    places = np.random.default_rng(1).integers(0, memory.num_rows, 50)
    rows, again = memory.table_rows(places), stream.table_rows(places)
    assert rows.index.tolist() == again.index.tolist() == memory.row_numbers[places].tolist()
    assert rows.columns.tolist() == ["outcome", "x", "g", "z"]
    for name in rows.columns:
        assert rows[name].tolist() == again[name].tolist() == whole[name].iloc[rows.index].tolist()
    assert memory.table_rows(places[:3], ["y"]).columns.tolist() == ["y"]
    assert memory.table_rows(np.zeros(0, int)).empty
    row = int(memory.row_numbers[places[0]])
    assert memory.source.place_of(int(places[0])) == f"row {row}"
    assert stream.source.place_of(int(places[0])) == f"row {row - 300 * (row >= 300)} of file {int(row >= 300)}"


def test_few_passes():
    """Numbers need one pass, levels another before it; a few first rows are looked at beside them."""
    numbers, levels = Files(many()), Files(many())
    cm.regression("y ~ x + np.log(z) + flag", numbers)
    assert SIZE < numbers.num_read < 2 * SIZE
    cm.regression("y ~ x + g", levels)
    assert 2 * SIZE < levels.num_read < 3 * SIZE


@pytest.mark.parametrize("library", [pickle, cloudpickle])
def test_a_source_can_be_sent_elsewhere(library):
    formula = "outcome ~ x * g + np.log(z) + C(i) + binary(h)"
    source = cm.regression(formula, FrameTable(with_gaps()), family="bernoulli", drop_missing=True).data
    there = library.loads(library.dumps(source))
    assert same_bits(there.read(0, there.size), source.read(0, source.size))
    assert str(there.fingerprint()) == str(source.fingerprint())


def test_fingerprints():
    built = {cuts: cm.regression("y ~ x + g", Files(many(), CUTS[cuts])).data for cuts in CUTS}
    assert len({str(source.fingerprint(full=True)) for source in built.values()}) == 1
    other = cm.regression("y ~ x + g", Files(many(seed=1))).data
    assert str(other.fingerprint()) != str(built["one file"].fingerprint())


LEARNING = ["scale(x)", "center(x)", "standardize(x)", "poly(x, 2)", "bs(x, df=4)", "{scale(x) * 2}"]


@pytest.mark.parametrize("term", LEARNING)
def test_transforms_that_need_all_rows(term):
    assert cm.regression(f"y ~ g + {term}", many()).num_rows == SIZE
    files = Files(many())
    with pytest.raises(cm.InputError, match=r"depends on all rows at once.*not in memory.*Columns are centred"):
        cm.regression(f"y ~ g + {term}", files)
    assert files.num_read == 0


def test_levels_that_are_computed():
    formula = "y ~ x + np.where(x > 3, 'large', 'small')"
    assert cm.regression(formula, many()).terms[1].endswith("[small]")
    with pytest.raises(cm.InputError, match="which makes levels; expected levels that are a column"):
        cm.regression(formula, Files(many()))


BAD = {
    "infinite": ("x", np.inf, "y ~ x", r"column 'x': got 1 values.*first in row 197 of file 3"),
    "too large": ("x", 1e300, "y ~ x + g", r"1 values as large as 1e\+300 \(first in row 197 of file 3"),
    "missing": ("g", None, "y ~ x + g", r"1 of 1100 rows with missing values \(g: 1; first in row 197 of file 3\)"),
    "outside of a function": ("z", -1.0, "y ~ np.log(z)", r"term 'np.log\(z\)'.*first in row 197 of file 3"),
    "outside of the family": ("count", -4, "count ~ x", r"1 rows outside, first -4 in row 197 of file 3"),
}


@pytest.mark.parametrize("name", list(BAD))
def test_mistakes_in_the_last_file(name):
    column, value, formula, message = BAD[name]
    frame = many()
    frame.loc[SIZE - 3, column] = value
    with pytest.raises(cm.InputError, match=message):
        cm.regression(formula, Files(frame, (300, 600, 900)), family="poisson" if "count" in formula else "gaussian")


def test_mixed_types_in_different_leaves():
    frame = many()
    frame["k"] = [1] * (SIZE - 2) + ["a", "b"]
    with pytest.raises(cm.InputError, match="values of type int, str"):
        cm.regression("y ~ k", FrameTable(frame))


def test_ordered_categories_that_differ():
    class Reordered(FrameTable):
        def frame(self, start, stop, names):
            found = super().frame(start, stop, names)
            levels = ["low", "high"] if start < LEAF else ["high", "low"]
            return found.assign(h=pd.Categorical(found["h"], categories=levels, ordered=True))

    with pytest.raises(
        cm.InputError, match=r"column 'h': got ordered categories that differ.*\[high, low\]; \[low, high\]"
    ):
        cm.regression("y ~ h", Reordered(many()))


def test_no_table():
    with pytest.raises(cm.InputError, match="Exchange the two arguments"):
        cm.regression(FrameTable(many()), "y ~ x")
    with pytest.raises(cm.InputError, match="table: got str; expected a pandas DataFrame or a scan of files"):
        cm.regression("y ~ x", "table.parquet")


def test_new_rows_of_files():
    built = cm.regression("y ~ x * g + C(i) + offset(z)", many())
    other = many(seed=1).drop(columns="y")
    memory, stream = built.new_rows(other), built.new_rows(Files(other, (300,)))
    assert isinstance(stream, DesignSource)
    assert set(stream.schema) == set(memory) == {"x", "offset"}
    assert same_bits(memory, in_memory(stream))
    assert same_bits(memory, built.new_rows(other.astype({"g": "category"})))


NEW = {
    "an unknown level": ("g", "other", r"\(other\) in 'g' are not present.*first in row 197 of file 3"),
    "an unknown number": ("i", 77, r"\(77\) in 'i' are not present.*first in row 197 of file 3"),
    "a missing value": ("x", np.nan, r"missing values \(x: 1; first in row 197 of file 3"),
    "an infinite value": ("x", np.inf, r"column 'x': got 1 values.*first in row 197 of file 3"),
}


@pytest.mark.parametrize("name", list(NEW))
def test_mistakes_in_new_rows_of_files(name):
    column, value, message = NEW[name]
    built = cm.regression("y ~ x + g + C(i)", many())
    frame = many()
    frame.loc[SIZE - 3, column] = value
    source = built.new_rows(Files(frame, (300, 600, 900)))
    with pytest.raises(cm.InputError, match=message):
        in_memory(source)
    with pytest.raises(
        cm.InputError, match=message.replace("first in row 197 of file 3", "").replace("x: 1; ", "")[:20]
    ):
        built.new_rows(frame)


@pytest.mark.parametrize(("column", "values"), [("x", ["1", "2"]), ("x", ["a", "b"]), ("flag", ["no", "yes"])])
@pytest.mark.parametrize("kind", [object, "str", "category"])
def test_text_is_no_number_in_new_rows(column, values, kind):
    built = cm.regression("y ~ x + flag", many())
    frame = many().iloc[:2].assign(**{column: pd.Series(values, dtype=kind)})
    with pytest.raises(cm.InputError, match=f"column '{column}': got values of type"):
        built.new_rows(frame)


@pytest.mark.parametrize("kind", [int, float, object, "boolean", "Int64"])
def test_booleans_of_other_types_in_new_rows(kind):
    built = cm.regression("y ~ x + flag", many())
    some = many().iloc[:40]
    assert same_bits(built.new_rows(some), built.new_rows(some.assign(flag=some["flag"].astype(kind))))


def test_a_level_that_is_only_compared_may_be_new():
    built = cm.regression("y ~ {g == 'b'}", many())
    rows = built.new_rows(pd.DataFrame({"g": ["b", "other"]}))
    np.testing.assert_allclose(rows["x"][:, 0] * built.design.scales + built.design.means, [1.0, 0.0], atol=1e-12)


def test_a_table_that_has_changed():
    source = cm.regression("y ~ x + g", FrameTable(with_gaps()), drop_missing=True).data
    changed = with_gaps()
    changed.loc[SIZE - 1, "x"] = 0.0
    source = DesignSource(FrameTable(changed), source.standard, source.kept, is_checked=True)
    with pytest.raises(cm.InputError, match=r"where there were .*The table has changed meanwhile"):
        in_memory(source)


@pytest.mark.parametrize("formula", ["y ~ far", "y ~ far + x + g", "y ~ 0 + far"])
def test_a_column_that_varies_little_about_a_large_number(formula):
    """Sums of squares of 1e9 would have lost it: their last digit is larger than the variance."""
    rng = np.random.default_rng(0)
    small = rng.integers(0, 5, SIZE) / 8.0
    built = cm.regression(formula, many().assign(far=1e9 + small))
    place = built.terms.index("far")
    if built.design.has_intercept:
        assert built.design.scales[place] == pytest.approx(small.std(), rel=1e-12)
        assert built.design.means[place] == pytest.approx(1e9 + small.mean(), rel=1e-15)
        naive = np.sqrt(np.mean((1e9 + small) ** 2) - np.mean(1e9 + small) ** 2)
        assert naive != pytest.approx(small.std(), rel=1e-2)
    else:
        assert built.design.scales[place] == pytest.approx(1e9 + small.mean(), rel=1e-12)
    np.testing.assert_allclose(built.design.gram, built.data["x"].T @ built.data["x"] / SIZE, atol=1e-7)


def test_what_is_measured_is_what_the_rows_say():
    built = cm.regression("y ~ x * g + np.log(z) + offset(z)", with_gaps(), drop_missing=True)
    x, y = built.data["x"], built.data["y"] - built.data["offset"]
    np.testing.assert_allclose(built.design.gram, x.T @ x / len(x), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(built.design.with_response, x.T @ y / len(x), rtol=1e-11, atol=1e-13)
    assert y.mean() == pytest.approx(0, abs=1e-13)
    assert y.std() == pytest.approx(1, rel=1e-12)
    best, residual, *_ = np.linalg.lstsq(x, y, rcond=None)
    np.testing.assert_allclose(built.model.initial_position["coefficients"], best, rtol=1e-9, atol=1e-12)
    assert 2 * built.model.initial_position["log_sigma"] == pytest.approx(np.log(residual[0] / len(x)))


@pytest.mark.parametrize("noise", [1e-3, 1e-5])
def test_little_noise_is_measured_by_another_pass(noise):
    rng = np.random.default_rng(0)
    frame = many().assign(y=lambda f: 3.0 * f["x"] - f["z"] + noise * rng.normal(size=SIZE))
    built = cm.regression("y ~ x + z", frame)
    x, y = built.data["x"], built.data["y"]
    residual = np.linalg.lstsq(x, y, rcond=None)[1][0]
    assert 2 * built.model.initial_position["log_sigma"] == pytest.approx(np.log(residual / SIZE), rel=1e-6)
    assert_same(built, cm.regression("y ~ x + z", Files(frame)))


def test_memory_is_that_of_the_design(monkeypatch):
    monkeypatch.setattr(layouts, "MOST_LEAF_ROWS", 1_024)
    rng = np.random.default_rng(0)
    size, width = 30_000, 20
    frame = pd.DataFrame({f"x{place}": rng.normal(size=size).astype(np.float32) for place in range(width)})
    frame["y"], frame["g"] = rng.normal(size=size), rng.choice(["a", "b", "c"], size)
    formula = "y ~ g + " + " + ".join(f"x{place}" for place in range(width))
    cm.regression(formula, frame.iloc[:5_000])
    tracemalloc.start()
    built = cm.regression(formula, frame, engine=Local(1))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    data = sum(array.nbytes for array in built.data.values())
    assert data < peak < 1.25 * data


def test_passes_over_a_source():
    source = cm.regression("y ~ x + g", Files(with_gaps()), drop_missing=True).data
    total = Rows(source).sum(lambda batch, weights: weights @ batch["y"], description="sum")
    assert total == pytest.approx(0.0, abs=1e-10)


def test_models_differ_by_their_rows_alone():
    memory = cm.from_formula("y ~ x + g", many())
    stream = cm.from_formula("y ~ x + g", Files(many()))
    assert isinstance(stream.data, DesignSource)
    assert replace(stream, data=memory.data).identity.keys() == memory.identity.keys()
    stream.check_data(memory.data)
