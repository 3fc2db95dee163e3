"""Missing values of files become NaN and are named by file and row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import coreset_mcmc as cm
from coreset_mcmc.data import to_rows
from coreset_mcmc.data.finite import NotFinite, check_finite
from coreset_mcmc.data.task import Task

SIZE = 100_000


def with_gap(kind: Any, size: int = SIZE) -> pa.Table:
    """The last row lacks a value."""
    return pa.table({"a": pa.array([*([1] * (size - 1)), None]).cast(kind), "b": np.ones(size)})


def without_gap(kind: Any) -> pa.Table:
    return pa.table({"a": pa.array([0] * 10).cast(kind), "b": np.ones(10)})


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.int8(), pa.int64(), pa.bool_(), pa.decimal128(20, 1)])
def test_a_gap_in_the_last_row_group_is_named(kind: Any, suffix: str, tmp_path: Path) -> None:
    put = parquet.write_table if suffix == "parquet" else feather.write_feather
    put(without_gap(kind), tmp_path / f"part-1.{suffix}")
    put(with_gap(kind), tmp_path / f"part-2.{suffix}")
    rows = to_rows(getattr(cm, f"scan_{suffix}")(tmp_path))
    assert rows.source.schema["a"].dtype == (np.float32 if kind == pa.float32() else np.float64)
    (found,) = rows.scan([Task(NotFinite())], "checks")
    message = (
        rf"data\['a'\]: got NaN .* 1 of 100010 rows \(first at row 99999 of part-2.{suffix} \(row 100009 of all\)\)"
    )
    with pytest.raises(cm.InputError, match=message):
        check_finite(found, rows.source)
    np.testing.assert_array_equal(rows.source.read(100_008, 100_010)["a"], [1.0, np.nan])


@pytest.mark.parametrize("kind", [pa.int32(), pa.bool_()])
def test_columns_without_gaps_keep_their_type(kind: Any, tmp_path: Path) -> None:
    parquet.write_table(without_gap(kind), tmp_path / "a.parquet")
    assert cm.scan_parquet(tmp_path).schema["a"].dtype == kind.to_pandas_dtype()


@pytest.mark.parametrize("kind", [pa.int32(), pa.bool_()])
def test_a_gap_that_the_file_does_not_tell_of_is_named_when_it_is_met(kind: Any, tmp_path: Path) -> None:
    parquet.write_table(without_gap(kind), tmp_path / "part-1.parquet")
    parquet.write_table(with_gap(kind), tmp_path / "part-2.parquet", write_statistics=False, row_group_size=7_000)
    scan = cm.scan_parquet(tmp_path)
    assert scan.schema["a"].dtype == kind.to_pandas_dtype()
    scan.read(0, SIZE)
    with pytest.raises(
        cm.InputError, match=r"column 'a': got a missing value in row 99999 of part-2.parquet \(row 100009"
    ):
        to_rows(scan).scan([Task(NotFinite())], "checks")


def test_a_column_that_is_missing_throughout(tmp_path: Path) -> None:
    parquet.write_table(pa.table({"a": pa.nulls(3)}), tmp_path / "part-1.parquet")
    parquet.write_table(pa.table({"a": [1, 2, 3]}), tmp_path / "part-2.parquet")
    scan = cm.scan_parquet(tmp_path)
    np.testing.assert_array_equal(scan.read(0, 6)["a"], [np.nan, np.nan, np.nan, 1, 2, 3])
    pd.testing.assert_series_equal(scan.frame(2, 4)["a"], pd.Series([np.nan, 1.0], name="a"))


def test_nested_columns_do_not_shift_the_counts(tmp_path: Path) -> None:
    """Statistics and heads of batches count the parts of nested columns too."""
    nested = pa.array([{"u": 1, "v": [1, 2]}, {"u": 2, "v": [3]}, None])
    pairs = pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64()))
    table = pa.table({"s": nested, "m": pairs, "a": [1, 2, 3], "b": [1, None, 3]})
    parquet.write_table(table, tmp_path / "a.parquet")
    feather.write_feather(table, tmp_path / "a.arrow")
    for scan in (cm.scan_parquet(tmp_path, ["a", "b"]), cm.scan_arrow(tmp_path, ["a", "b"])):
        assert (scan.schema["a"].dtype, scan.schema["b"].dtype) == (np.int64, np.float64)
        np.testing.assert_array_equal(scan.read(0, 3)["b"], [1, np.nan, 3])


def test_flags_have_one_type_in_all_frames(tmp_path: Path) -> None:
    parquet.write_table(with_gap(pa.bool_(), 10), tmp_path / "a.parquet")
    scan = cm.scan_parquet(tmp_path)
    assert scan.frame(0, 5)["a"].dtype == scan.frame(5, 10)["a"].dtype == object
    assert scan.frame(9, 10)["a"].isna().all()
