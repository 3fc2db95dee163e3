"""Tables that are not read into memory: the same bits, changed files, interruptions, text, limits of memory."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from coreset_mcmc.commands.budget import in_words
from coreset_mcmc.core.watching import always_watched_by
from coreset_mcmc.data import layout as layouts
from coreset_mcmc.driver import log_lines, progress
from tests.helpers.killed_run import LEAF_ROWS, LEAVES_PER_PART
from tests.helpers.large_tables import (
    MODEL,
    QUICK,
    SIZE,
    SMALL,
    draws,
    in_every_form,
    outcomes,
    read,
    same_bits,
    written,
)

TINY = "20KB"
"""Of memory; the columns of the formula take 31 kB."""


@pytest.fixture(scope="module", autouse=True)
def short_leaves():
    """Six leaves in three parts."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(layouts, "MOST_LEAF_ROWS", LEAF_ROWS)
        patched.setattr(layouts, "LEAVES_PER_PART", LEAVES_PER_PART)
        yield


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> Path:
    return in_every_form(tmp_path_factory.mktemp("large"))


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
        patched.setattr(log_lines, "BETWEEN_LINES", 0.0)
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
def test_a_verdict_is_not_found_twice(streamed, command, tmp_path, monkeypatch):
    """A run that was killed after its checks and before its summary."""
    run = tmp_path / "run"
    shutil.copytree(streamed[0], run)
    (run / "summary.json").unlink()
    monkeypatch.setattr("coreset_mcmc.commands.checking.trust", lambda *arguments, **options: pytest.fail("again"))
    resumed = command("resume", run)
    assert resumed.exit_code == 0, resumed.output
    assert read(run)["trust"] == read(streamed[0])["trust"]


@pytest.mark.full
def test_every_pass_is_told_in_a_log(streamed):
    """Lines with rows done of all rows, for the table, training and checks alike; and a way to see that it streams.

    The verdict needs no pass of its own: all of these few draws were in the final check.
    """
    _, shown = streamed
    assert "streaming: 31 kB of rows" in shown
    for name in ("levels of the columns", "moments of the design", "first look at the rows",
                 "final check", "rows to check"):  # fmt: skip
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
    assert draws(run).equals(draws(in_memory)) == (pass_over_rows == "rows to check")
    seen = set()
    with always_watched_by(lambda description, *rows: seen.add(description)):
        resumed = command("resume", run)
    assert resumed.exit_code == 0, resumed.output
    same_bits(run, in_memory)
    assert ("sums over all rows" in seen) == (pass_over_rows == "looking for the mode")  # training is not repeated


@pytest.mark.full
def test_rows_that_lack_values_are_dropped_from_a_stream(command, tmp_path):
    """The numbers of rows still count all of them."""
    table = outcomes()
    table.loc[::7, "x"] = np.nan
    options = [*QUICK, "--engine", "stream", "--drop-missing", "--out", tmp_path / "run"]
    made = command("fit", written(tmp_path / "parts", table), *options)
    assert made.exit_code == 0, made.output
    assert "186 rows with missing values dropped" in made.output
    rows = pd.read_csv(tmp_path / "run" / "coreset.csv")
    assert list(rows["x"]) == list(table["x"].iloc[rows["row"]])
    assert read(tmp_path / "run")["coreset"]["num_rows"] == SIZE - 186
