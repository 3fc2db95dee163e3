"""Text that is converted in stretches gives the same table as text that is read at once."""

from __future__ import annotations

import gzip
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

import coreset_mcmc as cm
from coreset_mcmc.core.watching import Stopped, stopped_by, watched_by
from coreset_mcmc.scans import csv, csv_to_parquet, text


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv, "BLOCK_BYTES", 200)


def agree(folder: Path, content: str) -> pd.DataFrame:
    """Both ways; units of times aside, which Parquet has other ones of."""
    path = folder / "table.csv"
    path.write_text(content, encoding="utf-8")
    streamed, at_once = cm.read_table(csv_to_parquet(path, folder / "table.parquet")), cm.read_table(path)
    for name, column in at_once.items():
        if pd.api.types.is_datetime64_any_dtype(column.dtype):
            assert pd.api.types.is_datetime64_any_dtype(streamed[name].dtype)
            at_once[name], streamed[name] = (
                frame[name].astype("int64") for frame in (at_once.astype({name: streamed[name].dtype}), streamed)
            )
    pd.testing.assert_frame_equal(streamed, at_once)
    return streamed


LATER = [
    ("1", "2.5", "float64"),
    ("1", "x", "str"),
    ("0", "true", "bool"),
    ("7", "true", "str"),
    ("", "5", "float64"),
    ("NA", "x", "str"),
    ("", "", "object"),
    ("1", "99999999999999999999", "float64"),
    ("2020-01-01", "2020-01-01 10:00:00", "datetime64"),
    ("2020-01-01", "2020-01-01 10:00:00.5", "datetime64"),
    ("2020-01-01T00:00:00Z", "2020-01-01T10:00:00.5Z", "datetime64"),
    ("2020-01-01T00:00:00Z", "2020-01-01T10:00:00", "str"),
    ("10:00:00", "later", "str"),
    ("1", "2020-01-01", "str"),
    ("1.5", "'it was \"quoted\", \n twice'", "str"),
    ("1", "inf", "float64"),
    ("1", "n/a", "float64"),
]


@pytest.mark.parametrize(("first", "later", "kind"), LATER)
def test_a_later_value_widens_the_type_of_its_column(first: str, later: str, kind: str, tmp_path: Path) -> None:
    quoted = '"' + later.replace('"', '""') + '"' if '"' in later else later
    content = "a,b\n" + f"{first},1\n" * 300 + f"{quoted},2\n" + f"{first},3\n" * 5
    frame = agree(tmp_path, content)
    assert len(frame) == 306
    assert kind in str(frame["a"].dtype) or kind == "datetime64"


def test_the_broken_twin_that_takes_text_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the order of types a column of numbers would end as text."""
    monkeypatch.setattr(csv, "_next_type", lambda path, kind, value: pa.string())
    with pytest.raises(AssertionError):
        agree(tmp_path, "a,b\n" + "1,1\n" * 300 + "2.5,2\n")


VALUES = st.sampled_from(
    ["0", "1", "-7", "2.5", "1e3", "true", "false", "2020-01-01", "2020-01-01 10:00:00", "10:00", "x", " 5", "", "NA"]
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(VALUES, VALUES, st.integers(1, 60)), min_size=1, max_size=6))
def test_any_mixture(tmp_path: Path, runs: list[tuple[str, str, int]]) -> None:
    agree(tmp_path, "a,b,c\n" + "".join(f"{a},{b},1\n" * count for a, b, count in runs))


def test_missing_value_words(tmp_path: Path) -> None:
    words = "".join(f'"{word}",{word},1\n' for word in text.MISSING)
    frame = agree(tmp_path, "a,b,c\n" + "x,1.5,1\n" * 200 + words)
    assert frame["b"].isna().sum() == len(text.MISSING)


def test_delimiters_compression_and_several_files(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a;b\n" + "1;2\n" * 100)
    with gzip.open(tmp_path / "2.csv.gz", "wt") as file:
        file.write("a;b\n" + "1;2.5\n" * 100)
    frame = cm.scan_parquet(csv_to_parquet([tmp_path / "1.csv", tmp_path / "2.csv.gz"], tmp_path / "a.parquet"))
    assert frame.size == 200
    np.testing.assert_array_equal(frame.read(99, 101)["b"], [2.0, 2.5])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n" + b"1,2\n" * 300 + b"1,2,3\n", "with 3 values; expected 2 values in every row"),
        (b"a,b\n" + b"x,2\n" * 300 + b"\xff,2\n", "byte 0xff in line 302, which is no UTF-8"),
        (b"a,b\n" + b"1,2\n" * 300 + b"\xff,2\n", "byte 0xff in line 302, which is no UTF-8"),
        (b"a,a\n1,2\n", r"repeated columns \['a'\]"),
        (b"a,\n1,2\n", "columns without a name"),
        (b"", "an empty file"),
        (b"a,b\n", "no rows"),
    ],
)
def test_refused_and_nothing_is_left(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(content)
    with pytest.raises(cm.InputError, match=message):
        csv_to_parquet(tmp_path / "table.csv", tmp_path / "table.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_other_columns_in_the_second_file(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,2\n")
    (tmp_path / "2.csv").write_text("b,a\n1,2\n")
    with pytest.raises(cm.InputError, match=r"2.csv: got columns \['b', 'a'\]; expected those of .*1.csv"):
        csv_to_parquet([tmp_path / "1.csv", tmp_path / "2.csv"], tmp_path / "a.parquet")
    with pytest.raises(cm.InputError, match="no such file"):
        csv_to_parquet(tmp_path / "3.csv", tmp_path / "a.parquet")


def test_a_cut_off_archive(tmp_path: Path) -> None:
    content = gzip.compress(("a,b\n" + "".join(f"{place},2\n" for place in range(5000))).encode())
    (tmp_path / "table.csv.gz").write_bytes(content[: len(content) // 2])
    with pytest.raises(cm.InputError, match=r"table.csv.gz: got"):
        csv_to_parquet(tmp_path / "table.csv.gz", tmp_path / "table.parquet")


def test_progress_and_the_end_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(csv, "GROUP_ROWS", 100)
    (tmp_path / "table.csv").write_text("a,b\n" + "1,2\n" * 1000)
    seen: list[tuple[str, int, int]] = []
    with watched_by(lambda *told: seen.append(told)):
        csv_to_parquet(tmp_path / "table.csv", tmp_path / "table.parquet")
    assert seen[-1] == ("converting table.csv to Parquet", 1000, 1000)
    assert len(seen) > 5
    assert [rows for _, rows, _ in seen] == sorted(rows for _, rows, _ in seen)
    assert all(rows <= estimate <= 1000 for _, rows, estimate in seen)
    event = threading.Event()
    event.set()
    with stopped_by(event), pytest.raises(Stopped):
        csv_to_parquet(tmp_path / "table.csv", tmp_path / "other.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["table.csv", "table.parquet"]


def test_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """47 million bytes of text, of which Arrow holds 32 blocks besides a row group."""
    monkeypatch.setattr(csv, "BLOCK_BYTES", 2**17)
    monkeypatch.setattr(csv, "GROUP_ROWS", 2**16)
    with (tmp_path / "table.csv").open("w") as file:
        file.write("a,b\n")
        for _ in range(40):
            file.write("1.234567,2.345678\n" * 2**16)
    pool = pa.default_memory_pool()
    before, peaks = pool.bytes_allocated(), []
    with watched_by(lambda *told: peaks.append(pool.bytes_allocated() - before)):
        csv_to_parquet(tmp_path / "table.csv", tmp_path / "table.parquet")
    assert parquet.read_metadata(tmp_path / "table.parquet").num_rows == 40 * 2**16
    assert max(peaks) < 40 * 2**17 + 4 * 16 * 2**16
