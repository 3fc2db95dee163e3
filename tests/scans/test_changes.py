"""Files that change while a scan is in use are noticed; fingerprints tell them apart; failing reads are tried again."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import coreset_mcmc as cm
from coreset_mcmc.scans import retries
from tests.scans.conftest import write


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST_PAUSE", 0.001)


def rewrite(path: Path, factor: float = 2.0) -> None:
    """Other values, the same size."""
    table, state = parquet.read_table(path), path.stat()
    changed = pa.table({"a": table["a"].to_numpy() * factor, "b": table["b"]})
    parquet.write_table(changed, path, row_group_size=parquet.read_metadata(path).row_group(0).num_rows)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1_000))


def truncate(path: Path) -> None:
    with path.open("rb+") as file:
        file.truncate(path.stat().st_size // 2)


def add(path: Path) -> None:
    write(path.with_name("part-77.parquet"), pa.table({"a": [1.0], "b": [1]}), 1)


CHANGES: list[tuple[Callable[[Path], Any], str]] = [
    (truncate, r"part-7.parquet has changed: \d+ bytes then, \d+ now"),
    (rewrite, "part-7.parquet was written again"),
    (Path.unlink, "part-7.parquet has vanished"),
]


@pytest.mark.parametrize(("change", "message"), [*CHANGES, (add, "part-77.parquet was added")])
def test_a_pass_begins_with_a_look_at_all_files(few: Path, change: Callable[[Path], Any], message: str) -> None:
    scan = cm.scan_parquet(few)
    leaves = lambda: list(scan.leaves(scan.layout, range(scan.layout.num_leaves)))  # noqa: E731
    leaves()
    change(few / "part-7.parquet")
    with pytest.raises(cm.RunError, match=f"{message} since the scan of .* was opened.*scan and fit again"):
        leaves()
    with pytest.raises(cm.RunError, match=message):
        next(iter(scan.frames(scan.layout, [0])))


@pytest.mark.parametrize(
    ("suffix", "change", "message"),
    [(".parquet", *case) for case in CHANGES] + [(".arrow", *case) for case in CHANGES if case[0] is not rewrite],
)
def test_changes_in_mid_pass(tmp_path: Path, change: Callable[[Path], Any], message: str, suffix: str) -> None:
    for number in (7, 8):
        values = np.random.default_rng(number).random(200_000)
        write(tmp_path / f"part-{number}{suffix}", pa.table({"a": values, "b": values}), 30_000)
    scan = (cm.scan_parquet if suffix == ".parquet" else cm.scan_arrow)(tmp_path)
    leaves = scan.leaves(scan.layout, range(scan.layout.num_leaves))
    next(leaves)
    change(tmp_path / f"part-7{suffix}")
    with pytest.raises(cm.RunError, match=message.replace(".parquet", suffix)):
        list(leaves)


def test_all_files_vanish(few: Path) -> None:
    scan = cm.scan_parquet(few)
    for path in few.iterdir():
        path.unlink()
    with pytest.raises(cm.RunError, match=r"a folder without Parquet files.*since the scan was opened"):
        next(scan.leaves(scan.layout, [0]))


def test_rows_later_on_look_at_their_own_files_only(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many workers read parts of a pass: one of them looks at everything."""
    scan = cm.scan_parquet(few)
    layout = type(scan.layout)(scan.size, 10)
    monkeypatch.setattr(type(scan.files), "check_all", lambda self: pytest.fail("looked at all files"))
    assert [leaf.number for leaf in scan.leaves(layout, [3, 4])] == [3, 4]
    truncate(few / "part-7.parquet")
    list(scan.leaves(layout, [3, 4]))
    with pytest.raises(cm.RunError, match=r"part-7.parquet has changed"):
        list(scan.leaves(layout, [7]))


class TestFingerprint:
    def test_names_are_relative_to_the_folder(self, few: Path, tmp_path: Path) -> None:
        before = cm.scan_parquet(few).fingerprint()
        few.rename(tmp_path / "elsewhere")
        assert cm.scan_parquet(tmp_path / "elsewhere").fingerprint() == before
        assert "elsewhere" not in repr(before)

    @pytest.mark.parametrize("change", [rewrite, Path.unlink, add])
    @pytest.mark.parametrize("full", [False, True])
    def test_other_files_have_another(self, few: Path, change: Callable[[Path], Any], full: bool) -> None:
        before = cm.scan_parquet(few).fingerprint(full=full)
        assert cm.scan_parquet(few).fingerprint(full=full) == before
        change(few / "part-7.parquet")
        assert cm.scan_parquet(few).fingerprint(full=full) != before

    def test_a_touched_file_is_the_same_to_the_full_one_alone(self, few: Path) -> None:
        before = [cm.scan_parquet(few).fingerprint(full=full) for full in (False, True)]
        os.utime(few / "part-7.parquet", ns=(1, 1))
        after = [cm.scan_parquet(few).fingerprint(full=full) for full in (False, True)]
        assert [one == other for one, other in zip(before, after, strict=True)] == [False, True]

    def test_other_columns_have_another(self, few: Path) -> None:
        found = [cm.scan_parquet(few, columns).fingerprint() for columns in (None, ["a"], {"x": ["a"]}, {"x": "a"})]
        assert len({repr(item) for item in found[:3]}) == 3

    def test_a_byte_that_no_footer_shows(self, few: Path) -> None:
        """Hidden from sizes, times and footers; all bytes tell it."""
        path = few / "part-7.parquet"
        before = [cm.scan_parquet(few).fingerprint(full=full) for full in (False, True)]
        state, content = path.stat(), bytearray(path.read_bytes())
        content[40] ^= 1
        path.write_bytes(content)
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        after = [cm.scan_parquet(few).fingerprint(full=full) for full in (False, True)]
        assert [one == other for one, other in zip(before, after, strict=True)] == [True, False]


class Failing:
    """Reads of Parquet batches of which some fail, after the first batch."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
        self.left, self.calls = failures, 0
        true = parquet.ParquetFile.iter_batches

        def iterate(reader: Any, **kwargs: Any) -> Any:
            self.calls += 1
            for place, batch in enumerate(true(reader, **{**kwargs, "batch_size": 3})):
                if place == 1 and self.left:
                    self.left -= 1
                    raise OSError("connection reset by peer")
                yield batch

        monkeypatch.setattr(parquet.ParquetFile, "iter_batches", iterate)


def test_failing_reads_are_tried_again_from_where_they_were(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = cm.scan_parquet(few)
    failing = Failing(monkeypatch, failures=3)
    np.testing.assert_array_equal(scan.read(0, 120)["a"], np.arange(120.0))
    assert failing.calls == 12 + 3


def test_reads_that_go_on_failing_name_the_file(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan = cm.scan_parquet(few)
    failing = Failing(monkeypatch, failures=10**6)
    with pytest.raises(cm.RunError, match=r"part-3.parquet could not be read in 4 attempts \(connection reset by peer"):
        scan.read(30, 40)
    assert failing.calls == 4


def test_damage_inside_a_file_names_it(few: Path) -> None:
    """Bytes of a page were changed before the scan was opened: the footer is in order."""
    path = few / "part-3.parquet"
    content = bytearray(path.read_bytes())
    content[4:60] = b"\xff" * 56
    path.write_bytes(content)
    scan = cm.scan_parquet(few)
    with pytest.raises(cm.RunError, match=r"part-3.parquet could not be read"):
        scan.read(0, 120)


def test_files_that_may_not_be_read_are_not_tried_again(few: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def refuse(self: Any, path: str) -> None:
        calls.append(path)
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("coreset_mcmc.scans.stores.Store.open", refuse)
    with pytest.raises(cm.InputError, match=r"part-3.parquet could not be read \(.*Permission denied.*permissions"):
        cm.scan_parquet(few / "part-3.parquet")
    assert len(calls) == 1
