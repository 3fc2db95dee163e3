"""Rows on disk are the same rows as in memory, whatever the files look like."""

from __future__ import annotations

import pickle
import tracemalloc
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import coreset_mcmc as cm
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.source import ArraySource
from coreset_mcmc.scans.reading import stretches
from tests.scans.conftest import MAPPING, SIZE, as_batch, little_columns, write

LAYOUTS = ["one", "seven", "groups"]


@dataclass(frozen=True)
class Moments:
    def __call__(self, batch: Any, weights: Any, shift: Any) -> Any:
        score = jnp.tanh(batch["x"] @ shift) * (batch["y"] + 0.1 * batch["n"])
        return {"sum": (weights * score).sum(), "cross": (weights * score) @ batch["x"]}


def equal(one: Any, other: Any) -> None:
    assert set(one) == set(other)
    for key in one:
        assert one[key].dtype == other[key].dtype
        np.testing.assert_array_equal(one[key], other[key])


@pytest.fixture(params=["parquet", "arrow"])
def layouts(request: pytest.FixtureRequest) -> tuple[Any, dict[str, Path]]:
    return getattr(cm, f"scan_{request.param}"), request.getfixturevalue(f"{request.param}_layouts")


@pytest.mark.parametrize("name", LAYOUTS)
def test_leaves_and_sums_have_the_bits_of_arrays(layouts: tuple[Any, dict[str, Path]], name: str) -> None:
    scan_files, folders = layouts
    scan = scan_files(folders[name], MAPPING)
    arrays = ArraySource(as_batch(little_columns()))
    assert (scan.size, scan.layout, scan.schema) == (SIZE, arrays.layout, arrays.schema)
    numbers = range(scan.layout.num_leaves)
    both = zip(scan.leaves(scan.layout, numbers), arrays.leaves(scan.layout, numbers), strict=True)
    for leaf, other in both:
        assert (leaf.number, leaf.start, leaf.stop) == (other.number, other.start, other.stop)
        equal(leaf.batch, other.batch)
    shift = np.array([0.3, -0.2, 1.1])
    total, expected = (Rows(source).sum(Moments(), shift, description="sum") for source in (scan, arrays))
    assert {key: value.tobytes() for key, value in total.items()} == {
        key: value.tobytes() for key, value in expected.items()
    }


@pytest.mark.parametrize("name", LAYOUTS)
def test_any_run_of_rows_and_any_rows(layouts: tuple[Any, dict[str, Path]], name: str) -> None:
    scan_files, folders = layouts
    scan, batch = scan_files(folders[name], MAPPING), as_batch(little_columns())
    for start, stop in [(0, 1), (29_999, 30_003), (65_535, 100_001), (SIZE - 1, SIZE), (5, 5), (0, SIZE)]:
        equal(scan.read(start, stop), {key: array[start:stop] for key, array in batch.items()})
    indices = np.array([140_000, 3, 65_536, 3, SIZE - 1])
    equal(scan.take(indices), {key: array[indices] for key, array in batch.items()})


def test_opening_reads_no_row(parquet_layouts: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("rows were read")

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", refuse)
    scan = cm.scan_parquet(parquet_layouts["seven"])
    assert scan.size == SIZE
    assert scan.names == ["x1", "x2", "x3", "y", "n"]
    with pytest.raises(AssertionError, match="rows were read"):
        scan.read(0, 1)


def groups_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Row groups in the order in which they are decoded."""
    seen: list[int] = []
    true = parquet.ParquetFile.iter_batches

    def note(self: Any, *args: Any, row_groups: list[int], **kwargs: Any) -> Any:
        seen.extend(row_groups)
        return true(self, *args, row_groups=row_groups, **kwargs)

    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", note)
    return seen


def test_each_group_is_decoded_once_and_others_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a.parquet", pa.table({"a": np.arange(300_000.0)}), 10_001)
    scan, seen = cm.scan_parquet(tmp_path / "a.parquet"), groups_read(monkeypatch)
    leaves = list(scan.leaves(scan.layout, range(scan.layout.num_leaves)))
    assert len(leaves) == 10
    assert seen == list(range(30))
    seen.clear()
    scan.read(10_001, 20_002)
    assert seen == [1]
    seen.clear()
    scan.read(10_000, 20_003)
    assert seen == [0, 1, 2]
    seen.clear()
    scan.take(np.array([299_999, 5]))
    assert seen == [0, 1, 2, 3, 29]


def test_large_row_groups_take_little_memory(tmp_path: Path) -> None:
    """A row group of 32 million bytes is never held as a whole, neither as arrays nor in buffers of Arrow."""
    columns = {f"x{place}": np.random.default_rng(place).random(1_000_000) for place in range(4)}
    write(tmp_path / "a.parquet", pa.table(columns), 1_000_000)
    scan = cm.scan_parquet(tmp_path / "a.parquet", {"x": list(columns)})
    del columns
    pool = pa.default_memory_pool()
    before, peak = pool.bytes_allocated(), 0
    tracemalloc.start()
    for leaf in scan.leaves(scan.layout, range(scan.layout.num_leaves)):
        peak = max(peak, pool.bytes_allocated() - before)
        del leaf
    traced = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    leaf_bytes = scan.layout.leaf_rows * scan.bytes_per_row
    assert scan.size * scan.bytes_per_row == 32_000_000
    assert traced < 4 * leaf_bytes
    assert peak < 8 * leaf_bytes


def test_natural_order_and_places(few: Path) -> None:
    scan = cm.scan_parquet(few)
    np.testing.assert_array_equal(scan.read(0, 120)["a"], np.arange(120.0))
    assert scan.place_of(25) == "row 5 of part-2.parquet (row 25 of all)"
    assert scan.place_of(119) == "row 9 of part-11.parquet (row 119 of all)"
    assert cm.scan_parquet(few / "part-3.parquet").place_of(4) == "row 4 of part-3.parquet"


def test_pickled_scans_read_for_themselves(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = cm.scan_parquet(few, {"z": ["a", "b"]})
    scan.read(0, 5)
    monkeypatch.chdir("/")
    copy = pickle.loads(pickle.dumps(scan))
    equal(copy.read(7, 33), scan.read(7, 33))
    assert copy.fingerprint() == scan.fingerprint()
    assert len(pickle.dumps(scan)) < 20_000


def test_relative_paths_survive_another_working_directory(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(few.parent)
    scan = cm.scan_parquet("few/part-*.parquet")
    monkeypatch.chdir("/")
    assert scan.read(119, 120)["b"] == 119


def test_types_of_matrices_are_the_widest(tmp_path: Path) -> None:
    table = pa.table(
        {
            "half": np.ones(3, np.float16),
            "single": np.ones(3, np.float32),
            "double": np.ones(3),
            "small": np.ones(3, np.int8),
            "flag": np.ones(3, bool),
            "money": pa.array([1, 2, 3]).cast(pa.decimal128(24, 2)),
            "level": pa.array([5, 6, 5]).dictionary_encode(),
        }
    )
    parquet.write_table(table, tmp_path / "a.parquet")
    mapping = {
        "a": ["half", "single"],
        "b": ["single", "double"],
        "c": ["small", "flag"],
        "d": ["single", "small"],
        "e": "money",
        "f": "level",
        "g": ["flag"],
    }
    schema = cm.scan_parquet(tmp_path / "a.parquet", mapping).schema
    kinds = {key: row.dtype.name for key, row in schema.items()}
    assert kinds == {
        **{"a": "float32", "b": "float64", "c": "int8", "d": "float32", "e": "float64", "f": "int64", "g": "bool"}
    }
    batch = cm.scan_parquet(tmp_path / "a.parquet", mapping).read(0, 3)
    np.testing.assert_array_equal(batch["e"], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(batch["f"], [5, 6, 5])
    assert batch["g"].shape == (3, 1)


FRAME = pd.DataFrame(
    {
        "text": ["a", None, "c", "d"],
        "level": pd.Categorical(["u", "v", "u", None]),
        "day": pd.to_datetime(["2020-01-01", "2020-01-02", None, "2020-01-04"]),
        "count": pd.array([1, 2, None, 4], dtype="Int64"),
        "flag": [True, False, True, True],
        "number": [0.5, np.nan, 1.5, 2.5],
    }
)


def test_frames_are_those_of_read_table(tmp_path: Path) -> None:
    FRAME.to_parquet(tmp_path / "a.parquet", row_group_size=3)
    scan = cm.scan_parquet(tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(scan.frame(0, 4), cm.read_table(tmp_path / "a.parquet"))
    part = scan.frame(1, 3, ["count", "text"])
    assert part.columns.tolist() == ["count", "text"]
    assert part["count"].dtype == scan.frame(0, 2)["count"].dtype == np.float64
    assert str(scan.column_types["level"]).startswith("dictionary")
    with pytest.raises(cm.InputError, match=r"no column 'txt'.*Did you mean 'text'"):
        scan.frame(0, 1, ["txt"])


@pytest.mark.parametrize("name", LAYOUTS)
def test_frames_of_leaves(layouts: tuple[Any, dict[str, Path]], name: str) -> None:
    scan_files, folders = layouts
    scan = scan_files(folders[name])
    found = dict(scan.frames(scan.layout, [0, 2], ["n", "x2"]))
    assert list(found) == [0, 2]
    expected = pd.DataFrame(little_columns())[["n", "x2"]]
    for number, frame in found.items():
        start, stop = scan.layout.rows_of_leaf(number)
        pd.testing.assert_frame_equal(frame, expected.iloc[start:stop].reset_index(drop=True))


def test_small_groups_are_read_together(few: Path) -> None:
    scan = cm.scan_parquet(few / "part-0.parquet")
    assert list(stretches(scan.files, [0, 1, 2], 8)) == [[0, 1], [2]]
    assert list(stretches(scan.files, [0, 2], 100)) == [[0], [2]]
