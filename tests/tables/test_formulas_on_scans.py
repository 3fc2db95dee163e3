"""Formulas on Parquet files: the same bits as from a data frame, and errors that name file and row."""

from __future__ import annotations

import warnings

import cloudpickle
import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data import layout as layouts
from coreset_mcmc.tables.design_source import DesignSource, in_memory
from tests.tables.test_frame_sources import SIZE, assert_same, many, same_bits, with_gaps

LAYOUTS = {
    "one file": ((), None),
    "three files": ((300, 811), None),
    "small row groups": ((500,), 37),
}


@pytest.fixture(autouse=True)
def short_leaves(monkeypatch):
    monkeypatch.setattr(layouts, "MOST_LEAF_ROWS", 256)


def written(folder, frame: pd.DataFrame, layout: str = "one file") -> str:
    cuts, group = LAYOUTS[layout]
    folder.mkdir(exist_ok=True)
    for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(frame)], strict=True)):
        frame.iloc[start:stop].to_parquet(folder / f"part-{number}.parquet", index=False, row_group_size=group)
    return str(folder)


FORMULAS = [
    ("y ~ x + z", "gaussian"),
    ("y ~ x * g + flag + np.log(z)", "t"),
    ("outcome ~ C(i) + h + x", "bernoulli"),
    ("count ~ x + {g == 'last'} + offset(np.log(z))", "poisson"),
    ("outcome['no'] ~ 0 + g + x", "bernoulli"),
]


@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize(("formula", "family"), FORMULAS)
@pytest.mark.parametrize("frame", [many, with_gaps])
def test_the_same_bits(tmp_path, frame, formula, family, layout):
    scan = cm.scan_parquet(written(tmp_path / "first", frame(), layout))
    other = cm.scan_parquet(written(tmp_path / "other", many(seed=1), "three files"))
    memory = cm.regression(formula, frame(), family=family, drop_missing=True)
    stream = cm.regression(formula, scan, family=family, drop_missing=True)
    assert_same(memory, stream)
    np.testing.assert_array_equal(memory.row_numbers, stream.row_numbers)
    places = np.array([700, 3, 3, 11])
    rows, again = memory.table_rows(places), stream.table_rows(places)
    assert rows.index.equals(again.index)
    assert rows.astype(object).equals(again.astype(object))
    assert same_bits(memory.new_rows(many(seed=1)), in_memory(stream.new_rows(other)))
    sent = cloudpickle.loads(cloudpickle.dumps(stream.data))
    assert same_bits(sent.read(5, 600), stream.data.read(5, 600))


def test_small_types(tmp_path):
    """Stored as small as they are, computed with as float64: the same as a data frame of those types."""
    frame = many().astype({"x": np.float32, "z": np.float32, "i": np.int8, "count": np.int32, "g": "category"})
    memory = cm.regression("count ~ x * g + {i ** 5} + z", frame, family="poisson")
    assert_same(
        memory,
        cm.regression("count ~ x * g + {i ** 5} + z", cm.scan_parquet(written(tmp_path, frame)), family="poisson"),
    )


def test_mistakes_name_file_and_row(tmp_path):
    frame = many()
    frame.loc[SIZE - 1, "x"] = np.inf
    scan = cm.scan_parquet(written(tmp_path, frame, "three files"))
    with pytest.raises(cm.InputError, match=r"column 'x': got 1 values.*part-2\.parquet"):
        cm.regression("y ~ x + g", scan)
    frame.loc[SIZE - 1, "x"] = np.nan
    scan = cm.scan_parquet(written(tmp_path, frame, "three files"))
    with pytest.raises(cm.InputError, match=r"1 of 1100 rows with missing values \(x: 1; first in .*part-2\.parquet"):
        cm.regression("y ~ x + g", scan)
    built = cm.regression("y ~ x + g", many())
    with pytest.raises(cm.InputError, match=r"missing values \(x: 1; first in .*part-2\.parquet"):
        in_memory(built.new_rows(scan))


def test_dates_are_refused(tmp_path):
    frame = many().assign(day=pd.date_range("2020-01-01", periods=SIZE))
    with pytest.raises(cm.InputError, match="column 'day': got dates"):
        cm.regression("y ~ day", cm.scan_parquet(written(tmp_path, frame)))


@pytest.mark.full
def test_a_fit_has_the_same_bits(tmp_path):
    common = {"coreset_size": 60, "draws": 100, "tune": 50, "random_seed": 1, "progressbar": False}
    formula = "outcome ~ x * g + np.log(z)"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        memory = cm.fit(cm.from_formula(formula, with_gaps(), family="bernoulli", drop_missing=True), **common)
        scan = cm.scan_parquet(written(tmp_path, with_gaps(), "three files"))
        model = cm.from_formula(formula, scan, family="bernoulli", drop_missing=True)
        assert isinstance(model.data, DesignSource)
        stream = cm.fit(model, **common)
    np.testing.assert_array_equal(memory.coreset.indices, stream.coreset.indices)
    for name in memory.posterior.data_vars:
        np.testing.assert_array_equal(memory.posterior[name], stream.posterior[name])
