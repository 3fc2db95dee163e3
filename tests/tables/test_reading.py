"""Round trips and errors of every format."""

from __future__ import annotations

import gzip
import hashlib
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import coreset_mcmc as cm
from coreset_mcmc.core.watching import watched_by
from coreset_mcmc.tables import column_names, digest

FRAME = pd.DataFrame(
    {
        "x": [0.1, -2.5, 1e-300],
        "count": [3, 0, 12345678901],
        "flag": [True, False, True],
        "group": ["a", "b, with comma", "ü"],
        "my col": [1.0, 2.0, 3.0],
    }
)


def write(path: Path, frame: pd.DataFrame = FRAME) -> Path:
    name = path.name
    if ".csv" in name:
        frame.to_csv(path, index=False)
    elif ".tsv" in name or ".txt" in name:
        frame.to_csv(path, index=False, sep="\t")
    elif name.endswith((".parquet", ".pq")):
        frame.to_parquet(path)
    elif name.endswith(".feather"):
        frame.to_feather(path)
    else:
        table = pa.Table.from_pandas(frame)
        maker = pa.ipc.new_stream if name.endswith(".ipc") else pa.ipc.new_file
        with pa.OSFile(str(path), "wb") as sink, maker(sink, table.schema) as writer:
            writer.write_table(table)
    return path


SUFFIXES = ["csv", "csv.gz", "tsv", "tsv.gz", "txt", "txt.gz", "parquet", "pq", "feather", "arrow", "ipc"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_round_trip(tmp_path, suffix):
    path = write(tmp_path / f"table.{suffix}")
    frame = cm.read_table(path)
    pd.testing.assert_frame_equal(frame, FRAME, check_dtype=False, check_exact=True)
    assert [frame[name].dtype.kind for name in ("x", "count", "flag")] == ["f", "i", "b"]
    assert column_names(path) == list(FRAME.columns)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_only_some_columns(tmp_path, suffix):
    frame = cm.read_table(write(tmp_path / f"table.{suffix}"), ["group", "x"])
    assert list(frame.columns) == ["group", "x"]
    assert frame["x"].tolist() == FRAME["x"].tolist()


def test_archive_of_arrays(tmp_path):
    path = tmp_path / "table.npz"
    np.savez(path, y=np.arange(3), x=np.arange(6.0).reshape(3, 2), name=np.array(["a", "b", "c"]))
    frame = cm.read_table(path)
    assert frame.to_dict("list") == {"y": [0, 1, 2], "x_0": [0, 2, 4], "x_1": [1, 3, 5], "name": ["a", "b", "c"]}
    assert list(cm.read_table(path, ["x_1", "y"])) == ["x_1", "y"]


def test_a_folder_of_parts(tmp_path):
    folder = tmp_path / "table"
    folder.mkdir()
    FRAME.iloc[:2].to_parquet(folder / "part-0.parquet")
    FRAME.iloc[2:].to_parquet(folder / "part-1.parquet")
    frame = cm.read_table(folder)
    pd.testing.assert_frame_equal(frame, FRAME, check_dtype=False)
    first = digest(folder)
    (folder / "part-1.parquet").rename(folder / "part-2.parquet")
    assert digest(folder) != first


def test_an_index_is_no_column(tmp_path):
    path = tmp_path / "table.parquet"
    FRAME.set_index(pd.Index([7, 8, 9])).to_parquet(path)
    assert column_names(path) == list(FRAME.columns)


def test_semicolons_blanks_and_a_byte_order_mark(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbfx;y\n1;2\n3;4\n")
    (tmp_path / "b.txt").write_text("x y\n1 2\n3 4\n")
    for name in ("a.csv", "b.txt"):
        assert cm.read_table(tmp_path / name).to_dict("list") == {"x": [1, 3], "y": [2, 4]}


def test_missing_values_and_lines_inside_quotes(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('x,g\n1,"two\nlines"\nNA,\n,c\n')
    frame = cm.read_table(path)
    assert frame["x"].isna().tolist() == [False, True, True]
    assert frame["g"].isna().tolist() == [False, True, False]
    assert frame["g"][0] == "two\nlines"


def test_decimals_become_numbers(tmp_path):
    path = tmp_path / "table.parquet"
    pa.parquet.write_table(pa.table({"price": pa.array([Decimal("1.50"), Decimal("2.25")])}), path)
    assert cm.read_table(path)["price"].to_numpy().tolist() == [1.5, 2.25]


def test_digest_is_the_usual_one(tmp_path):
    path = tmp_path / "a.bin"
    path.write_bytes(b"abc" * 1_000_000)
    assert digest(path) == hashlib.sha256(b"abc" * 1_000_000).hexdigest()


def make(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


BROKEN = {
    "empty file": ("t.csv", b"", "got an empty file"),
    "unknown suffix": ("t.xlsx", b"x", r"got the suffix '.xlsx'; expected one of .csv, .tsv"),
    "no suffix": ("table", b"x", "got no suffix"),
    "header only": ("t.csv", "x,y\n", "got no rows"),
    "repeated names": ("t.csv", "x,y,x\n1,2,3\n", r"repeated columns \['x'\]"),
    "empty name": ("t.csv", "x,,z\n1,2,3\n", r"no name for columns \[2\]"),
    "too few values": ("t.csv", "x,y\n1,2\n3\n", "with 1 values; expected 2 values in every row"),
    "too many values": ("t.csv", "x,y\n1,2\n3,4,5\n", "with 3 values; expected 2 values in every row"),
    "not UTF-8": ("t.csv", "x,name\n1,Müller\n".encode("latin1"), "byte 0xfc in line 2, which is no UTF-8.*iconv"),
    "header not UTF-8": ("t.csv", "x,größe\n1,2\n".encode("latin1"), "in line 1, which is no UTF-8"),
    "UTF-16": ("t.csv", "x,y\n1,2\n".encode("utf-16"), "no UTF-8"),
    "text as gzip": ("t.csv.gz", "x,y\n1,2\n", "cannot be read as text"),
    "cut gzip": ("t.csv.gz", gzip.compress(b"x,y\n" + b"1,2\n" * 9999)[:-20], "cannot be read as text"),
    "text as parquet": ("t.parquet", "x,y\n1,2\n", "cannot be read as Parquet"),
    "text as arrow": ("t.arrow", "x,y\n1,2\n", "cannot be read as Arrow"),
    "text as npz": ("t.npz", "x,y\n1,2\n", "cannot be read as NumPy archive|Python objects"),
}


@pytest.mark.parametrize("name", list(BROKEN))
def test_broken_files(tmp_path, name):
    file, content, message = BROKEN[name]
    with pytest.raises(cm.InputError, match=rf"table .*{message}"):
        cm.read_table(make(tmp_path / file, content))


@pytest.mark.parametrize("suffix", ["parquet", "feather", "arrow", "npz"])
def test_cut_off_files(tmp_path, suffix):
    path = tmp_path / f"table.{suffix}"
    if suffix == "npz":
        np.savez(path, x=np.arange(1000.0))
    else:
        write(path, pd.concat([FRAME] * 100))
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(cm.InputError, match="cannot be read as"):
        cm.read_table(path)


def test_no_such_file_and_folders(tmp_path):
    with pytest.raises(cm.InputError, match="no such file"):
        cm.read_table(tmp_path / "none.csv")
    with pytest.raises(cm.InputError, match="a folder without tables"):
        cm.read_table(tmp_path)
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(cm.InputError, match="a folder without tables"):
        cm.read_table(tmp_path / "t.csv")


def test_no_permission(tmp_path, monkeypatch):
    path = write(tmp_path / "table.csv")

    def refuse(*args, **options):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    for function in (cm.read_table, digest):
        with pytest.raises(cm.InputError, match=r"Permission denied; expected a file that may be read"):
            function(path)


def test_unknown_columns_are_named(tmp_path):
    with pytest.raises(cm.InputError, match=r"no column 'grup'.*Did you mean 'group'\?"):
        cm.read_table(write(tmp_path / "table.parquet"), ["x", "grup"])


def test_archives_that_are_no_tables(tmp_path):
    path = tmp_path / "table.npz"
    np.savez(path, x=np.arange(3), y=np.arange(4))
    with pytest.raises(cm.InputError, match=r"arrays of lengths \{'x': 3, 'y': 4\}"):
        cm.read_table(path)
    np.savez(path, x=np.zeros((2, 2, 2)))
    with pytest.raises(cm.InputError, match=r"array 'x' .*shape \(2, 2, 2\)"):
        cm.read_table(path)


def test_pickled_objects_are_never_loaded(tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "was here",))

    path = tmp_path / "table.npz"
    np.savez(path, x=np.array([Trap()], dtype=object))
    with pytest.raises(cm.InputError, match="Python objects"):
        cm.read_table(path)
    assert not (tmp_path / "was here").exists()


def test_a_folder_of_other_tables_is_called_what_it_is(tmp_path):
    frame = pd.DataFrame({"y": [1.0, 2.0], "x": [1, 2]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(cm.InputError, match=r"a folder with 1 files of text with delimiters \(a.csv\)"):
        cm.read_table(tmp_path)
    frame.to_parquet(tmp_path / "b.parquet")
    with pytest.raises(cm.InputError, match=r"\(a.csv\) and 1 files of Parquet \(b.parquet\)"):
        cm.read_table(tmp_path)


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "parquet"])
def test_reading_tells_how_far_it_is(tmp_path, suffix):
    path = tmp_path / f"table.{suffix}"
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20_000, 4)), columns=list("abcd"))
    frame.to_parquet(path, row_group_size=5_000) if suffix == "parquet" else frame.to_csv(path, index=False)
    seen = []
    with watched_by(lambda *told: seen.append(told)):
        read = cm.read_table(path)
        digest(path)
    pd.testing.assert_frame_equal(read, frame)
    described = {description for description, _, _ in seen}
    is_rows = suffix == "parquet"
    assert described == {f"reading {path.name}" + ("" if is_rows else " [MB]"), f"looking at {path.name} [MB]"}
    assert all(0 <= done <= total for _, done, total in seen)
    assert not is_rows or [done for name, done, _ in seen if name == f"reading {path.name}"] == [5e3, 1e4, 1.5e4, 2e4]


def test_building_a_design_tells_how_far_it_is():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(9_000, 2)), columns=["y", "x"])
    seen = []
    with watched_by(lambda *told: seen.append(told)):
        cm.regression("y ~ x", frame)
    told = [(done, total) for name, done, total in seen if name == "building the design"]
    assert told[0] == (0, 9_000)
    assert told[-1] == (9_000, 9_000)
