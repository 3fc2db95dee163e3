"""The rows of a Dask DataFrame, computed by Dask's own scheduler; test_dask.py has those on a cluster."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.source import ArraySource
from tests.helpers.engine_frames import COLUMNS, frame_with_another_type, in_partitions, table
from tests.helpers.engine_programs import few_leaves, logistic_arrays

dataframe = pytest.importorskip("dask.dataframe")


def test_rows_are_those_of_the_partitions_in_order():
    frame = table()
    source = cm.source_from_dask(in_partitions(frame), COLUMNS)
    assert source.size == len(frame)
    rows = source.read(90, 9_700)
    np.testing.assert_array_equal(rows["x"], frame[["x0", "x1", "x2"]].to_numpy()[90:9_700])
    np.testing.assert_array_equal(rows["y"], frame["y"].to_numpy()[90:9_700])
    assert rows["x"].dtype == np.float32
    assert rows["y"].dtype == bool
    assert source.place_of(9_105) == "row 9105 (row 5 of partition 3)"


def test_columns_are_used_by_their_names_without_a_mapping():
    source = cm.source_from_dask(in_partitions(table()), ["x1", "y"])
    assert list(source.schema) == ["x1", "y"]
    assert list(cm.source_from_dask(in_partitions(table())).schema) == ["x0", "x1", "x2", "y"]


def sums(rows: Rows) -> list[np.ndarray]:
    return list(rows.sum(sum_of_rows, description="").values())


def sum_of_rows(batch: dict[str, np.ndarray], weights: np.ndarray) -> dict[str, np.ndarray]:
    return {name: weights @ array for name, array in batch.items()}


def test_a_frame_gives_the_bits_of_arrays_and_computes_partitions_once(tmp_path: Path):
    source = cm.source_from_dask(in_partitions(table(), tmp_path), COLUMNS)
    computed = (tmp_path / "computed").stat().st_size
    found, expected = sums(few_leaves(source)), sums(few_leaves(ArraySource(logistic_arrays())))
    assert all(map(np.array_equal, found, expected))
    is_ahead = 1  # the first leaf is read by itself, to compile with
    assert (tmp_path / "computed").stat().st_size <= computed + 5 + is_ahead


def test_fingerprints_tell_frames_apart():
    one, other = table(), table()
    other.loc[20_000, "x0"] = 7.0
    fingerprints = [
        cm.source_from_dask(dataframe.from_pandas(frame, npartitions=3)).fingerprint() for frame in (one, one, other)
    ]
    assert fingerprints[0] == fingerprints[1] != fingerprints[2]


def test_mistakes_are_refused_before_any_work():
    frame = table()
    with pytest.raises(cm.InputError, match=r"\['z'\], which the Dask DataFrame has not"):
        cm.source_from_dask(in_partitions(frame), {"x": ["x0", "z"]})
    with pytest.raises(cm.InputError, match=r"column 'y' of the Dask DataFrame.*Encode text"):
        cm.source_from_dask(in_partitions(frame.assign(y="text")), COLUMNS)
    with pytest.raises(cm.InputError, match="0 rows"):
        cm.source_from_dask(dataframe.from_pandas(frame.iloc[:0], npartitions=1))


def test_a_partition_of_another_type_is_named():
    with pytest.raises(cm.InputError, match=r"partition 0 of the Dask DataFrame, column 'y': got type float64"):
        frame_with_another_type().read(0, 50)


def test_a_partition_that_changes_is_named(tmp_path: Path):
    frame = table()

    def load(number: int) -> pd.DataFrame:
        return frame.iloc[: 90 if (tmp_path / "changed").exists() else 100]

    source = cm.source_from_dask(dataframe.from_map(load, range(2), meta=frame.iloc[:0]), COLUMNS)
    (tmp_path / "changed").touch()
    with pytest.raises(cm.RunError, match=r"Partition 0 .* had 100 rows at first and has 90 now"):
        source.read(0, 50)
