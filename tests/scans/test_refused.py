"""What is wrong with files is said in the user's words, with the name of the file, before any row is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import coreset_mcmc as cm
from tests.scans.conftest import write


def put(folder: Path, name: str, **columns: Any) -> Path:
    folder.mkdir(exist_ok=True)
    parquet.write_table(pa.table(columns), folder / name)
    return folder


def cut_off(folder: Path) -> Any:
    put(folder, "part-1.parquet", a=[1.0])
    whole = put(folder, "part-2.parquet", a=list(np.arange(1000.0))) / "part-2.parquet"
    whole.write_bytes(whole.read_bytes()[:-100])
    return folder


def of_bytes(name: str, content: bytes) -> Callable[[Path], Any]:
    def make(folder: Path) -> Any:
        put(folder, "part-1.parquet", a=[1.0])
        (folder / name).write_bytes(content)
        return folder

    return make


def two(first: dict[str, Any], second: dict[str, Any]) -> Callable[[Path], Any]:
    def make(folder: Path) -> Any:
        put(folder, "part-1.parquet", **first)
        return put(folder, "part-2.parquet", **second)

    return make


def partitioned(folder: Path) -> Any:
    put(folder, "unused", a=[1.0])
    for year in (2023, 2024):
        put(folder / f"year={year}", "part-0.parquet", a=[1.0])
    return folder


def damaged_index(folder: Path) -> Any:
    path = put(folder, "part-1.parquet", a=[1.0]) / "part-1.parquet"
    content = bytearray(path.read_bytes())
    content[-60:-20] = b"\xff" * 40
    path.write_bytes(content)
    return folder


NUMBER, TEXT = {"a": [1.0, 2.0], "b": [1, 2]}, {"a": ["x", "y"], "b": [1, 2]}

REFUSED: list[tuple[Callable[[Path], Any], Any, str]] = [
    (cut_off, None, r"part-2.parquet: got a Parquet file that is cut off; expected a complete Parquet file.*again"),
    (of_bytes("part-2.parquet", b"a,b\n1,2\n" * 9), None, "part-2.parquet: got a file in another format"),
    (of_bytes("part-2.parquet", b""), None, r"part-2.parquet: got an empty file \(0 bytes\).*Check what wrote it"),
    (of_bytes("part-2.parquet", b"PAR1"), None, "part-2.parquet: got 4 bytes, too few"),
    (of_bytes("part-2.parquet", b"PAR1" + b"x" * 20 + b"PARE"), None, "part-2.parquet: got an encrypted Parquet file"),
    (damaged_index, None, "part-1.parquet: got a damaged index at its end"),
    (two(NUMBER, {"b": [1]}), None, r"part-2.parquet: got no column 'a'; expected the columns.*part-1.parquet"),
    (two({"b": [1]}, NUMBER), ["a"], r"part-1.parquet: got no column 'a'; expected the columns.*part-2.parquet"),
    (two(NUMBER, TEXT), None, r"column 'a': got double in part-1.parquet but string in part-2.parquet"),
    (two(NUMBER, NUMBER), ["aa"], r"no column 'aa'; expected one of \['a', 'b'\]. Did you mean 'a'\?"),
    (two(NUMBER, NUMBER), {"x": ["a", "quite_other"]}, "no column 'quite_other'.*Check the spelling"),
    (
        two(TEXT, TEXT),
        {"x": ["a", "b"]},
        r"column 'a' of scan .*: got values of type string; expected numbers.*formula",
    ),
    (two(NUMBER, NUMBER), [], r"columns: got \[\]; expected a list of different names"),
    (two(NUMBER, NUMBER), ["a", "a"], "columns: got .* different names"),
    (two(NUMBER, NUMBER), "a", "columns: got 'a'"),
    (two(NUMBER, NUMBER), {"x": [1]}, "columns: got .*mapping such as"),
    (two(NUMBER, NUMBER), {}, "columns: got {}"),
    (lambda folder: folder / "none.parquet", None, "none.parquet: got no such file or folder.*Check the path"),
    (lambda folder: folder / "none-*.parquet", None, "got no file that matches; expected at least one Parquet file"),
    (lambda folder: put(folder, "a.txt", a=[1.0]), None, r"a folder without Parquet files \(1 other files\)"),
    (lambda folder: put(folder, "a.parquet", a=np.array([], float)), None, "got no rows in 1 file; expected at least"),
    (
        lambda folder: [put(folder, "a.parquet", a=[1.0]), folder / "a.parquet"],
        None,
        "the same file twice: .*a.parquet",
    ),
    (lambda folder: 3, None, "scan: got 3; expected a path"),
    (lambda folder: [], None, r"scan: got \[\]"),
    (lambda folder: ["s3://a/b", "gs://a/b"], None, "files in different stores"),
    (lambda folder: "nonsense://a/b", None, "an address that cannot be understood"),
    (partitioned, None, r"a partitioned folder: 'year' is in the names of folders.*/\*/\*.parquet"),
]


@pytest.mark.parametrize(("make", "columns", "message"), REFUSED)
def test_refused_by_name(
    make: Callable[[Path], Any], columns: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("coreset_mcmc.scans.reading.rows_of", None)
    with pytest.raises(cm.InputError, match=message):
        cm.scan_parquet(make(tmp_path / "data"), columns)


def test_text_and_dates_are_refused_where_numbers_are_needed_only(tmp_path: Path) -> None:
    days = np.array(["2020-01-01", "2020-01-02"], "datetime64[ns]")
    scan = cm.scan_parquet(put(tmp_path / "data", "a.parquet", a=[1.0, 2.0], day=days))
    assert scan.frame(0, 2)["day"].dt.day.tolist() == [1, 2]
    with pytest.raises(cm.InputError, match=r"column 'day'.*timestamp.*expected numbers.*days since a start"):
        _ = scan.schema


def test_repeated_columns(tmp_path: Path) -> None:
    table = pa.Table.from_arrays([pa.array([1.0]), pa.array([2.0])], names=["a", "a"])
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(cm.InputError, match=r"a.parquet: got repeated columns \['a'\]"):
        cm.scan_parquet(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"ARROW1\0\0" + b"x" * 50, "an Arrow file that is cut off"),
        (b"\xff\xff\xff\xff" + b"x" * 50, "a stream of Arrow batches, which has no index"),
        (b"a,b\n1,2\n" * 9, "a file in another format"),
        (b"ARROW1\0\0" + b"\xff" * 50 + b"\x20\0\0\0ARROW1", "a damaged index at its end"),
    ],
)
def test_arrow_files_that_are_none(content: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.arrow").write_bytes(content)
    with pytest.raises(cm.InputError, match=f"a.arrow: got {message}"):
        cm.scan_arrow(tmp_path)


class TestAccepted:
    def test_what_other_programs_leave_in_folders_is_skipped(self, few: Path) -> None:
        for name in ("_SUCCESS", "_metadata", ".part-0.parquet.crc", "part-1.parquet.crc", "README.txt"):
            (few / name).write_bytes(b"x")
        (few / "_temporary").mkdir()
        (few / "_temporary" / "part-0.parquet").write_bytes(b"x")
        (few / ".part-13.parquet").write_bytes(b"x")
        assert cm.scan_parquet(few).size == 120

    def test_files_without_rows_are_skipped(self, few: Path) -> None:
        write(few / "part-5b.parquet", pa.table({"a": np.array([], float), "b": np.array([], np.int64)}), 5)
        scan = cm.scan_parquet(few)
        np.testing.assert_array_equal(scan.read(0, 120)["a"], np.arange(120.0))
        assert len(list(scan.leaves(scan.layout, [0]))) == 1

    @pytest.mark.parametrize(
        ("pattern", "size"),
        [("part-?.parquet", 100), ("part-*.parquet", 120), ("part-[13].parquet", 20), ("part-[!13].parquet", 80)],
    )
    def test_patterns(self, few: Path, pattern: str, size: int) -> None:
        assert cm.scan_parquet(few / pattern).size == size

    def test_patterns_across_folders(self, few: Path) -> None:
        assert cm.scan_parquet(few.parent / "*" / "part-1*.parquet").size == 30
        assert cm.scan_parquet(few.parent / "**" / "part-1*.parquet").size == 30
        with pytest.raises(cm.InputError, match="no file that matches"):
            cm.scan_parquet(few.parent / "part-1*.parquet")

    def test_lists_folders_and_addresses_in_any_order(self, few: Path) -> None:
        paths = [few / "part-11.parquet", str(few / "part-2.parquet"), few / "part-0*.parquet"]
        np.testing.assert_array_equal(
            cm.scan_parquet(paths).read(0, 30)["b"], [*range(10), *range(20, 30), *range(110, 120)]
        )
        assert cm.scan_parquet(few.as_uri()).size == 120
        assert cm.scan_parquet(f"{few.as_uri()}/part-1*.parquet").size == 30

    def test_brackets_in_names(self, tmp_path: Path) -> None:
        assert cm.scan_parquet(put(tmp_path / "a[1]", "b*.parquet", a=[1.0]) / "b*.parquet").size == 1

    def test_partitions_by_a_pattern(self, tmp_path: Path) -> None:
        scan = cm.scan_parquet(partitioned(tmp_path / "data") / "*" / "*.parquet")
        assert scan.size == 2
        assert scan.place_of(1) == "row 0 of year=2024/part-0.parquet (row 1 of all)"

    @pytest.mark.parametrize(
        ("one", "other", "expected"),
        [
            (np.int32, np.int64, "int64"),
            (np.int32, np.float32, "float64"),
            (np.float32, np.float64, "float64"),
            (np.int8, np.float32, "float32"),
            (np.uint8, np.int8, "int16"),
            (bool, np.int32, "int32"),
        ],
    )
    def test_numbers_of_several_types_are_widened(self, one: Any, other: Any, expected: str, tmp_path: Path) -> None:
        put(tmp_path / "data", "part-1.parquet", a=np.array([1, 0]).astype(one))
        scan = cm.scan_parquet(put(tmp_path / "data", "part-2.parquet", a=np.array([1, 5]).astype(other)))
        assert scan.schema["a"].dtype == expected
        np.testing.assert_array_equal(scan.read(0, 4)["a"], [1, 0, 1, 5])
        assert scan.frame(0, 2)["a"].dtype == scan.frame(2, 4)["a"].dtype == expected

    def test_text_in_several_forms(self, tmp_path: Path) -> None:
        put(tmp_path / "data", "part-1.parquet", a=pa.array(["x", None], pa.large_string()))
        scan = cm.scan_parquet(put(tmp_path / "data", "part-2.parquet", a=pa.array(["y", "z"]).dictionary_encode()))
        assert scan.frame(0, 4)["a"].fillna("?").tolist() == ["x", "?", "y", "z"]
