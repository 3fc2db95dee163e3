"""Compiled programs on disk: the second process uses them, nobody else may write there, and nothing is left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import jax
import pytest
from rich.console import Console
from typer.testing import CliRunner

import coreset_mcmc as cm
from coreset_mcmc.commands.cli import app
from coreset_mcmc.commands.programs import kept_programs
from coreset_mcmc.core import program_cache
from coreset_mcmc.core.program_cache import FOLDER_VARIABLE, SETTINGS, clear, files_of, machine, num_bytes, prune

FIT = """
import sys
from coreset_mcmc.commands.cli import app
app(sys.argv[1:], standalone_mode=False)
"""


def settings():
    return {name: getattr(jax.config, name) for name in (*SETTINGS, "jax_compilation_cache_dir")}


def test_a_block_leaves_the_process_as_it_was(tmp_path):
    before = settings()
    with cm.cache(tmp_path / "kept") as kept:
        assert jax.config.jax_compilation_cache_dir.startswith(str(tmp_path / "kept"))
        jax.jit(lambda x: x * 3.0 + 17.0)(1.0)
        assert num_bytes(tmp_path / "kept") > 0
        assert "kept" in repr(kept)
    assert settings() == before
    kept.close()
    assert settings() == before
    taken = num_bytes(tmp_path / "kept")
    jax.jit(lambda x: x * 5.0 + 19.0)(1.0)
    assert num_bytes(tmp_path / "kept") == taken


def test_a_folder_is_private_and_one_that_is_not_is_refused(tmp_path):
    with cm.cache(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b").stat().st_mode & 0o777 == 0o700
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    before = settings()
    with pytest.raises(cm.InputError, match="yours alone"):
        cm.cache(shared)
    with pytest.raises(cm.InputError, match="max_bytes"):
        cm.cache(tmp_path / "c", max_bytes=0)
    (tmp_path / "file").write_text("")
    with pytest.raises(cm.InputError, match="folder that can be made"):
        cm.cache(tmp_path / "file")
    assert settings() == before


def test_the_bound_removes_what_was_not_used_for_longest(tmp_path):
    (tmp_path / machine()).mkdir()
    for number in range(5):
        path = tmp_path / machine() / f"{number}-cache"
        path.write_bytes(b"x" * 100)
        os.utime(path, (1_000 + number, 1_000 + number))
    prune(tmp_path, 250)
    assert sorted(path.name for path in files_of(tmp_path)) == ["3-cache", "4-cache"]


def test_files_of_the_user_are_never_removed(tmp_path):
    """A folder that holds other things, beyond the bound: only programs may go."""
    mine = [tmp_path / "thesis.pdf", tmp_path / "photos" / "one-cache", tmp_path / machine() / "notes.txt"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 1_000)
    with cm.cache(tmp_path, max_bytes=1):
        jax.jit(lambda x: x * 11.0 + 29.0)(1.0)
        assert num_bytes(tmp_path) > 0
    assert num_bytes(tmp_path) == 0
    clear(tmp_path)
    assert all(path.exists() for path in mine)


def test_show_and_clear(tmp_path, monkeypatch):
    folder = tmp_path / "programs"
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    assert "0 files" in CliRunner().invoke(app, ["cache", "show"]).output
    with cm.cache():
        jax.jit(lambda x: x * 7.0 + 23.0)(1.0)
    (folder / "mine.txt").write_text("not ours")
    assert " files" in CliRunner().invoke(app, ["cache", "show"]).output
    assert "removed" in CliRunner().invoke(app, ["cache", "clear"]).output
    assert files_of(folder) == []
    assert (folder / "mine.txt").exists()


def test_by_default_it_is_in_the_home_of_caches(tmp_path, monkeypatch):
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert program_cache.default_folder() == tmp_path / "coreset-mcmc" / "programs"


def test_nothing_is_kept_where_that_is_off_or_not_possible(tmp_path, monkeypatch):
    before = settings()
    shown = Console(record=True, width=200)
    monkeypatch.setenv(FOLDER_VARIABLE, "off")
    with kept_programs(shown, is_wanted=True):
        assert settings() == before
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "programs"))
    with kept_programs(shown, is_wanted=False):
        assert settings() == before
    assert not (tmp_path / "programs").exists()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(FOLDER_VARIABLE, str(tmp_path / "file"))
    with kept_programs(shown, is_wanted=True):
        assert settings() == before
    assert "are not kept" in shown.export_text()


@pytest.mark.full
def test_a_second_call_compiles_nothing_and_says_the_same(tmp_path):
    """The command line keeps programs by itself."""
    table = tmp_path / "rows.csv"
    table.write_text("y,x\n" + "".join(f"{(7 * n) % 11 > 4:d},{(n * 37 % 100) / 50 - 1}\n" for n in range(400)))

    def fit(name):
        arguments = ["fit", str(table), "-f", "y ~ x", "--family", "bernoulli", "--coreset-size", "40", "--draws", "50"]
        arguments += ["--seed", "1", "--no-trust", "--out", str(tmp_path / name)]
        environment = {**os.environ, FOLDER_VARIABLE: str(tmp_path / "programs")}
        subprocess.run([sys.executable, "-c", FIT, *arguments], env=environment, check=True, capture_output=True)
        return (tmp_path / name / "summary.json").read_text()

    first = fit("first")
    known = {path.name for path in files_of(tmp_path / "programs")}
    assert len(known) > 5
    second = fit("second")
    assert {path.name for path in files_of(tmp_path / "programs")} == known
    assert _numbers(first) == _numbers(second)


def _numbers(summary):
    told = json.loads(summary)
    return told["kl_estimate"], told.get("parameters")
