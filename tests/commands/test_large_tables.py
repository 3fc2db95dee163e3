"""Tables that are not read into memory: the same bits, changed files, interruptions, text, limits of memory."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray

from coreset_mcmc.commands.budget import in_words
from coreset_mcmc.core.watching import always_watched_by
from coreset_mcmc.data import layout as layouts
from coreset_mcmc.driver import progress
from tests.helpers.code_blocks import ROOT
from tests.helpers.killed_run import LEAF_ROWS, LEAVES_PER_PART, NOBODY

SIZE = 1_300
MODEL = ["-f", "y ~ x + group", "--family", "bernoulli"]
SMALL = ["--draws", "60", "--tune", "40", "--chains", "2", "--seed", "1", "--coreset-size", "60"]
QUICK = [*MODEL, *SMALL, "--no-trust", "--no-report"]
TINY = "20KB"
"""Of memory; the columns of the formula take 31 kB."""


@pytest.fixture(scope="module", autouse=True)
def short_leaves():
    """Six leaves in three parts."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(layouts, "MOST_LEAF_ROWS", LEAF_ROWS)
        patched.setattr(layouts, "LEAVES_PER_PART", LEAVES_PER_PART)
        yield


def outcomes() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    x = generator.normal(size=SIZE)
    y = generator.binomial(1, 1 / (1 + np.exp(-x)))
    return pd.DataFrame({"y": y, "x": x, "group": np.resize(["a", "b", "c"], SIZE), "other": np.arange(SIZE)})


def written(folder: Path, table: pd.DataFrame) -> Path:
    """Three files in groups of 90 rows; a pattern for them would sort the last one before the second."""
    folder.mkdir()
    for name, (start, stop) in {"part-1": (0, 300), "part-2": (300, 811), "part-10": (811, SIZE)}.items():
        table.iloc[start:stop].to_parquet(folder / f"{name}.parquet", index=False, row_group_size=90)
    return folder


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    """The same table in one file, in three, and as text."""
    place, table = tmp_path_factory.mktemp("large"), outcomes()
    table.to_parquet(place / "table.parquet", index=False)
    written(place / "parts", table)
    with gzip.open(place / "first.csv.gz", "wt") as file:
        table.iloc[:500].to_csv(file, index=False)
    table.iloc[500:].to_csv(place / "second.csv", index=False)
    return place


def read(run):
    return json.loads((run / "summary.json").read_text())


def draws(run):
    with xarray.open_datatree(run / "draws.nc", engine="h5netcdf") as tree:
        return tree["posterior"].to_dataset().load()


def same_bits(run, other):
    assert draws(run).equals(draws(other))
    assert (run / "coreset.csv").read_bytes() == (other / "coreset.csv").read_bytes()
    assert read(run)["kl_estimate"] == read(other)["kl_estimate"]


@pytest.fixture(scope="module")
def in_memory(tmp_path_factory, tables, command):
    run = tmp_path_factory.mktemp("memory") / "run"
    made = command("fit", tables / "table.parquet", *QUICK, "--out", run)
    assert made.exit_code == 0, made.output
    assert "streaming" not in made.output
    return run


@pytest.fixture(scope="module")
def streamed(tmp_path_factory, tables, command):
    """With a check and a report; every pass is slow enough to be told."""
    run = tmp_path_factory.mktemp("stream") / "run"
    config = run.parent / "cheap.toml"
    config.write_text("[trust]\ncoresets = 1\nsensitivity = false\n")
    options = [*MODEL, *SMALL, "--config", config, "--engine", "stream", "--out", run]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(progress, "PATIENCE", 0.0)
        patched.setattr(progress, "BETWEEN_LINES", 0.0)
        made = command("fit", tables / "parts", *options)
    assert made.exit_code == 0, made.output
    return run, made.output


def stopped_fit(*arguments, **options):
    raise KeyboardInterrupt


@pytest.fixture
def no_fit(monkeypatch):
    """Runs end before there is a fit, with exit code 130."""
    monkeypatch.setattr("coreset_mcmc.commands.fitting.fit", stopped_fit)


@pytest.mark.full
def test_the_same_bits_as_from_memory(streamed, in_memory):
    same_bits(streamed[0], in_memory)


@pytest.mark.full
def test_a_streamed_run_leaves_everything(streamed, command):
    run, _ = streamed
    assert {path.name for path in run.iterdir()} >= {
        "config.toml", "draws.nc", "coreset.csv", "summary.json", "report.html", "predictive.json",
    }  # fmt: skip
    rows, table = pd.read_csv(run / "coreset.csv"), outcomes()
    assert list(rows.columns) == ["row", "weight", "y", "x", "group"]
    for name in ("y", "x", "group"):
        assert list(rows[name]) == list(table[name].iloc[rows["row"]])
    summary = read(run)
    assert summary["verdict"] is not None
    assert summary["settings"]["engine"]["name"] == "stream"
    assert summary["settings"]["data"]["num_files"] == 3
    assert "parts" in (run / "report.html").read_text()
    page = (run / "report.html").read_bytes()
    assert command("report", run).exit_code == 0
    assert (run / "report.html").read_bytes() == page
    assert "finished" in command("resume", run).output


@pytest.mark.full
def test_every_pass_is_told_in_a_log(streamed):
    """Lines with rows done of all rows, for the table, training and checks alike; and a way to see that it streams."""
    _, shown = streamed
    assert "streaming: 31 kB of rows" in shown
    for name in ("levels of the columns", "moments of the design", "first look at the rows", "looking for the mode",
                 "final check", "checking", "rows to check"):  # fmt: skip
        assert f"{name}: 512 of 1,300 rows" in shown, name
        assert f"{name}: 1,300 of 1,300 rows in " in shown, name


@pytest.mark.full
def test_text_is_converted_beside_the_run(in_memory, tables, command, tmp_path):
    """Too large for the limit; one file is compressed. The converted table goes with --overwrite."""
    run = tmp_path / "run"
    files = [tables / "first.csv.gz", tables / "second.csv"]
    made = command("fit", *files, *QUICK, "--memory-limit", TINY, "--out", run)
    assert made.exit_code == 0, made.output
    assert f"streaming: {in_words(3 * 8 * SIZE)[0]}" in made.output
    assert "--memory-limit 20 kB" in made.output
    same_bits(run, in_memory)
    assert pd.read_parquet(run / "table.parquet").equals(outcomes())
    before = (run / "table.parquet").stat()
    again = command("fit", tables / "table.parquet", *MODEL, "--out", run, "--overwrite", "--coreset-size", "5000")
    assert again.exit_code == 2
    assert before.st_size > 0
    assert not (run / "table.parquet").exists()


@pytest.mark.parametrize(
    ("limit", "engine"), [("20KB", "stream"), ("1GB", "memory"), (None, "memory")], ids=["tiny", "large", "none"]
)
def test_memory_decides(limit, engine, tables, command, tmp_path, no_fit):
    options = [] if limit is None else ["--memory-limit", limit]
    shown = command("fit", tables / "parts", *QUICK, *options, "--out", tmp_path / "run")
    assert shown.exit_code == 130
    assert ("streaming: 31 kB of rows, --memory-limit 20 kB" in shown.output) == (engine == "stream")
    assert f'name = "{engine}"' in (tmp_path / "run" / "config.toml").read_text()


def test_free_memory_decides(tables, command, tmp_path, no_fit, monkeypatch):
    monkeypatch.setattr("coreset_mcmc.core.memory._found_free", lambda: 90_000)
    shown = command("fit", tables / "table.parquet", *QUICK, "--out", tmp_path / "run")
    assert "streaming: 31 kB of rows, 90 kB of memory free" in shown.output


WAYS = {
    "a folder": ["parts"],
    "a pattern": ["parts/*.parquet"],
    "several files": ["parts/part-10.parquet", "parts/part-1.parquet", "parts/part-2.parquet"],
    "an address": ["file://{}/parts"],
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("engine", ["memory", "stream"])
def test_ways_to_name_a_table(way, engine, tables, command, tmp_path, no_fit, monkeypatch):
    """All mean the same three files, whatever the folder is from which they are resumed."""
    monkeypatch.chdir(tables)
    paths = [path.format(tables) for path in WAYS[way]]
    run = tmp_path / "run"
    assert command("fit", *paths, *QUICK, "--engine", engine, "--out", run).exit_code == 130
    monkeypatch.chdir(tmp_path)
    resumed = command("resume", run)
    assert resumed.exit_code == 130, resumed.output
    assert "1,300 rows" in resumed.output
    assert "'coreset-mcmc resume" in resumed.output


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda parts: (parts / "part-2.parquet").unlink(), "part-2.parquet has vanished"),
        (lambda parts: outcomes().to_parquet(parts / "part-3.parquet"), "part-3.parquet was added"),
        (lambda parts: outcomes().to_parquet(parts / "part-2.parquet"), "part-2.parquet has changed: "),
        (lambda parts: os.utime(parts / "part-2.parquet", ns=(1, 1)), "part-2.parquet was written again"),
    ],
    ids=["vanished", "added", "changed", "rewritten"],
)
def test_files_that_changed_are_not_resumed(change, words, command, tmp_path, no_fit):
    parts, run = written(tmp_path / "parts", outcomes()), tmp_path / "run"
    assert command("fit", f"{parts}/*.parquet", *QUICK, "--engine", "stream", "--out", run).exit_code == 130
    assert command("resume", run).exit_code == 130
    change(parts)
    result = command("resume", run)
    assert result.exit_code == 2
    assert words in result.stderr


def test_text_that_changed_is_not_resumed(tables, command, tmp_path, no_fit):
    text, run = tmp_path / "table.csv", tmp_path / "run"
    text.write_bytes((tables / "second.csv").read_bytes())
    assert command("fit", text, *QUICK, "--engine", "stream", "--out", run).exit_code == 130
    converted = (run / "table.parquet").read_bytes()
    (run / "table.parquet").unlink()
    assert command("resume", run).exit_code == 130
    assert (run / "table.parquet").read_bytes() == converted
    with text.open("a") as file:
        file.write("1,0.5,a,0\n")
    result = command("resume", run)
    assert result.exit_code == 2
    assert "table.csv has changed: " in result.stderr


@pytest.fixture
def in_a_process(tmp_path):
    """Runs in processes of their own, all with the same options of XLA; programs that one has compiled serve the next.

    This process may have other options, which were set too late for it, and those change the last bits.
    """
    environment = {"JAX_COMPILATION_CACHE_DIR": str(tmp_path), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}

    def call(checkpoint, number, *arguments):
        life = [sys.executable, "-m", "tests.helpers.killed_run", checkpoint, str(number), *map(str, arguments)]
        ended = subprocess.run(
            life, cwd=ROOT, env={**os.environ, **environment}, check=False, capture_output=True, text=True
        )
        assert ended.returncode == (0 if checkpoint == NOBODY else -signal.SIGKILL), ended.stdout + ended.stderr

    return call


def num_steps(run):
    """Of training, in its last checkpoint."""
    with np.load(run / "checkpoint" / "training.npz") as saved:
        return json.loads(saved["header"].tobytes())["num_steps"]


@pytest.mark.full
def test_a_run_killed_anywhere_ends_with_the_same_bits(tables, tmp_path, in_a_process):
    """SIGKILL after the first, a middle and the last checkpoint of training, and in sampling, one after the other."""
    whole, run = tmp_path / "whole", tmp_path / "run"
    in_a_process("training.npz", 1, "fit", tables / "parts", *QUICK, "--engine", "stream", "--out", run)
    assert num_steps(run) == 1
    in_a_process("training.npz", 3, "resume", run)
    assert num_steps(run) == 4
    in_a_process("training.npz", 0, "resume", run)
    assert num_steps(run) > 4
    assert not (run / "checkpoint" / "sampling.npz").exists()
    in_a_process("sampling.npz", 2, "resume", run)
    assert (run / "checkpoint" / "sampling.npz").exists()
    assert not (run / "draws.nc").exists()
    in_a_process(NOBODY, 1, "resume", run, "then", "fit", tables / "table.parquet", *QUICK, "--out", whole)
    same_bits(run, whole)
    assert num_steps(run) == num_steps(whole)


@pytest.mark.full
@pytest.mark.parametrize("pass_over_rows", ["looking for the mode", "rows to check"])
def test_ctrl_c_in_the_middle_of_a_pass(pass_over_rows, in_memory, tables, command, tmp_path):
    """Training goes on with what there is; a check is left out. Either way there are draws, and a way on."""
    run, sent = tmp_path / "run", []

    def interrupt(description, num_done, num_rows):
        if description == pass_over_rows and 0 < num_done < num_rows and not sent:
            sent.append(description)
            os.kill(os.getpid(), signal.SIGINT)

    with always_watched_by(interrupt):
        stopped = command("fit", tables / "parts", *QUICK, "--engine", "stream", "--out", run)
    assert stopped.exit_code == 130, stopped.output
    assert f"'coreset-mcmc resume {run}' goes on" in stopped.output.replace("\n", "")
    assert read(run)["status"] == "interrupted"
    assert draws(run).sizes["draw"] > 0
    seen = set()
    with always_watched_by(lambda description, *rows: seen.add(description)):
        resumed = command("resume", run)
    assert resumed.exit_code == 0, resumed.output
    same_bits(run, in_memory)
    assert ("sums over all rows" in seen) == (pass_over_rows == "looking for the mode")  # training is not repeated
