"""What people get wrong: each mistake has one message, exit code 2 and no work done."""

from __future__ import annotations

import errno
import gzip
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from coreset_mcmc.commands import folder as folders
from coreset_mcmc.core import files
from tests.helpers.little_table import little

FORMULA = ["-f", "y ~ x"]


@pytest.fixture(scope="module")
def bad_files(tmp_path_factory) -> Path:
    """Files of every bad sort, and one good one."""
    place = tmp_path_factory.mktemp("bad")
    table = little(np.random.default_rng(0))
    table.to_csv(place / "good.csv", index=False)
    table.to_parquet(place / "good.parquet")
    (place / "empty.csv").write_text("")
    (place / "header.csv").write_text("y,x\n")
    (place / "latin.csv").write_bytes("y,x\n1,Malm\u00f6\n".encode("latin-1"))
    (place / "ragged.csv").write_text("y,x\n1,2\n1,2,3\n")
    (place / "twice.csv").write_text("y,x,x\n1,2,3\n")
    (place / "truncated.parquet").write_bytes((place / "good.parquet").read_bytes()[:-100])
    (place / "text.parquet").write_text("this is not Parquet")
    (place / "text.feather").write_text("this is not Feather")
    (place / "text.csv.gz").write_text("this is not gzip")
    with gzip.open(place / "cut.csv.gz", "wt") as file:
        file.write("y,x\n" + "1,2\n" * 5_000)
    (place / "cut.csv.gz").write_bytes((place / "cut.csv.gz").read_bytes()[:-20])
    (place / "text.npz").write_text("this is not npz")
    np.savez(place / "unequal.npz", y=np.zeros(3), x=np.zeros(4))
    np.savez(place / "pickled.npz", y=np.array([{}, []], dtype=object), x=np.zeros(2))
    (place / "table.xlsx").write_text("")
    (place / "folder.csv").mkdir()
    for name, change in {
        "missing": {"x": table["x"].where(table.index > 3)},
        "allmissing": {"x": np.nan},
        "constant": {"x": 1.0},
        "constantresponse": {"y": 1.0},
        "infinite": {"x": table["x"].where(table.index != 5, np.inf)},
        "huge": {"x": table["x"] * 1e300},
        "collinear": {"z": 2 * table["x"] + 1},
        "ids": {"x": [f"id{number}" for number in table.index]},
        "negative": {"y": np.arange(len(table)) - 3},
        "fractional": {"y": table["x"].abs()},
        "three": {"y": np.resize(["a", "b", "c"], len(table))},
        "mixed": {"x": [*table["x"][:-1].astype(object), "n/a"]},
    }.items():
        table.assign(**change).to_csv(place / f"{name}.csv", index=False)
    table.assign(x=pd.Timestamp("2013-01-01") + pd.to_timedelta(table.index, "D")).to_parquet(place / "dates.parquet")
    for name, text in {
        "broken": "[data\npath = 1",
        "section": "[modle]\nformula = 'y ~ x'",
        "key": "[model]\nformulas = 'y ~ x'",
        "type": "[sampling]\ndraws = '1000'",
        "table": "model = 'y ~ x'",
        "boolean": "[sampling]\nchains = true",
    }.items():
        (place / f"{name}.toml").write_text(text)
    (place / "latin.toml").write_bytes("# \u00f6\n".encode("latin-1"))
    return place


MISTAKES: dict[str, tuple[list[str], str]] = {
    "no data": (FORMULA, "Name a table"),
    "no formula": (["good.csv"], "Pass one: --formula"),
    "no such file": (["nothing.csv", *FORMULA], "nothing.csv"),
    "a folder": (["folder.csv", *FORMULA], "folder"),
    "unknown suffix": (["table.xlsx", *FORMULA], ".parquet"),
    "empty file": (["empty.csv", *FORMULA], "empty"),
    "no rows": (["header.csv", *FORMULA], "rows"),
    "not UTF-8": (["latin.csv", *FORMULA], "UTF-8"),
    "ragged rows": (["ragged.csv", *FORMULA], "3"),
    "a column twice": (["twice.csv", *FORMULA], "x"),
    "truncated Parquet": (["truncated.parquet", *FORMULA], "Parquet"),
    "not Parquet": (["text.parquet", *FORMULA], "Parquet"),
    "not Feather": (["text.feather", *FORMULA], "text.feather"),
    "not gzip": (["text.csv.gz", *FORMULA], "gz"),
    "truncated gzip": (["cut.csv.gz", *FORMULA], "cut.csv.gz"),
    "not npz": (["text.npz", *FORMULA], "npz"),
    "npz of unequal lengths": (["unequal.npz", *FORMULA], "length"),
    "npz with objects": (["pickled.npz", *FORMULA], "y"),
    "unknown column": (["good.csv", "-f", "y ~ xx"], "xx"),
    "wrong response": (["good.csv", "-f", "z ~ x"], "z"),
    "no response": (["good.csv", "-f", "~ x"], "'y ~ x"),
    "broken formula": (["good.csv", "-f", "y ~ x +"], "formula"),
    "code in the formula": (["good.csv", "-f", "y ~ __import__('os').system('touch hacked')"], "formula"),
    "a file read by the formula": (["good.csv", "-f", "y ~ np.load('good.csv')"], "np.load"),
    "attributes in the formula": (["good.csv", "-f", "y ~ x.__class__"], "formula"),
    "a bar without parentheses": (["good.csv", "-f", "y ~ x + 1|group"], "(1|g)"),
    "unknown family": (["good.csv", *FORMULA, "--family", "tweedie"], "tweedie"),
    "unknown link": (["good.csv", *FORMULA, "--link", "logit"], "Error: --link: got 'logit'"),
    "unknown weights": (["good.csv", *FORMULA, "--weights", "ww"], "Error: --weights: got 'ww'"),
    "a filter that is none": (["good.csv", *FORMULA, "--where", "x >"], "Error: --where 'x >'"),
    "no rows pass": (["good.csv", *FORMULA, "--where", "x > 1e9"], "for which it holds"),
    "one row is not rare": (["good.csv", *FORMULA, "--lump-rare", "1"], "Error: --lump-rare: got 1"),
    "no trials": (["good.csv", *FORMULA, "--family", "binomial"], "--trials n"),
    "trials of another family": (["good.csv", *FORMULA, "--trials", "5"], "--family binomial"),
    "missing values": (["missing.csv", *FORMULA], "x: 4"),
    "nothing but missing values": (["allmissing.csv", *FORMULA, "--drop-missing"], "rows"),
    "constant column": (["constant.csv", *FORMULA], "x"),
    "constant response": (["constantresponse.csv", *FORMULA], "y"),
    "infinite values": (["infinite.csv", *FORMULA], "infinite"),
    "huge values": (["huge.csv", *FORMULA], "x"),
    "collinear columns": (["collinear.csv", "-f", "y ~ x + z"], "z"),
    "identifiers": (["ids.csv", *FORMULA], "levels"),
    "negative counts": (["negative.csv", *FORMULA, "--family", "poisson"], "y"),
    "fractional counts": (["fractional.csv", *FORMULA, "--family", "negativebinomial"], "y"),
    "three outcomes": (["three.csv", *FORMULA, "--family", "bernoulli"], "y"),
    "text for a number": (["three.csv", *FORMULA], "y"),
    "dates": (["dates.parquet", *FORMULA], "x"),
    "prior without a name": (["good.csv", *FORMULA, "--prior", "Normal(0, 1)"], "name=Distribution"),
    "prior of nothing": (["good.csv", *FORMULA, "--prior", "zz=Normal(0, 1)"], "zz"),
    "unknown prior": (["good.csv", *FORMULA, "--prior", "x=Norml(0, 1)"], "Norml"),
    "negative scale": (["good.csv", *FORMULA, "--prior", "x=Normal(0, -1)"], "-1"),
    "positive prior of a coefficient": (["good.csv", *FORMULA, "--prior", "sigma=Normal(0, 1)"], "sigma"),
    "coreset size in words": (["good.csv", *FORMULA, "--coreset-size", "many"], "many"),
    "coreset of no rows": (["good.csv", *FORMULA, "--coreset-size", "0"], "coreset"),
    "more rows than there are": (["good.csv", *FORMULA, "--coreset-size", "61"], "61"),
    "no draws": (["good.csv", *FORMULA, "--draws", "0"], "draws"),
    "no chains": (["good.csv", *FORMULA, "--chains", "0"], "chains"),
    "negative tuning": (["good.csv", *FORMULA, "--tune", "-1"], "tune"),
    "negative seed": (["good.csv", *FORMULA, "--seed", "-1"], "seed"),
    "an interval of 95": (["good.csv", *FORMULA, "--interval", "95"], "probability"),
    "no target": (["good.csv", *FORMULA, "--kl-target", "0"], "kl-target"),
    "unknown method": (["good.csv", *FORMULA, "--method", "mcmc"], "least-squares"),
    "no configuration": (["--config", "nothing.toml"], "nothing.toml"),
    "broken configuration": (["--config", "broken.toml"], "TOML"),
    "configuration that is not UTF-8": (["--config", "latin.toml"], "latin.toml"),
    "misspelt section": (["--config", "section.toml"], "Did you mean [model]?"),
    "misspelt key": (["--config", "key.toml"], "Did you mean formula?"),
    "text for a number in the configuration": (["--config", "type.toml"], "a whole number"),
    "a section that is text": (["--config", "table.toml"], "a table"),
    "true for a number": (["--config", "boolean.toml"], "a whole number"),
}


def no_fit(*arguments, **options):
    pytest.fail("work was begun")


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_have_a_message(name, bad_files, command, monkeypatch, tmp_path):
    arguments, message = MISTAKES[name]
    monkeypatch.chdir(bad_files)
    if name != "more rows than there are":
        monkeypatch.setattr("coreset_mcmc.commands.fitting.fit", no_fit)
    result = command("fit", *arguments, "--out", tmp_path / "run")
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert "expected" in result.stderr
    assert len(result.stderr) < 2_000
    assert not (bad_files / "hacked").exists()


def test_there_are_enough_of_them():
    assert len(MISTAKES) >= 40


def test_options_that_do_not_exist_are_refused(command):
    assert command("fit", "--formular", "y ~ x").exit_code == 2


def test_output_that_is_a_file(bad_files, command, tmp_path):
    (tmp_path / "run").write_text("mine")
    result = command("fit", bad_files / "good.csv", *FORMULA, "--out", tmp_path / "run")
    assert result.exit_code == 2
    assert "a file" in result.stderr
    assert (tmp_path / "run").read_text() == "mine"


def test_output_below_a_file(bad_files, command):
    result = command("fit", bad_files / "good.csv", *FORMULA, "--out", bad_files / "good.csv" / "run")
    assert result.exit_code in (2, 3)
    assert "Could not write" in result.stderr


@pytest.mark.parametrize("overwrite", [False, True])
def test_folders_of_others_are_not_touched(overwrite, bad_files, command, tmp_path):
    (tmp_path / "thesis.tex").write_text("mine")
    more = ["--overwrite"] if overwrite else []
    result = command("fit", bad_files / "good.csv", *FORMULA, "--out", tmp_path, *more)
    assert result.exit_code == 2
    assert "thesis.tex" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (errno.ENOSPC, "no space left"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "may not write"),
        (errno.EDQUOT, "quota"),
    ],
)
def test_disks_that_refuse(code, message, bad_files, command, tmp_path, monkeypatch):
    def refuse(*arguments):
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(files.os, "replace", refuse)
    result = command("fit", bad_files / "good.csv", *FORMULA, "--out", tmp_path / "run")
    assert result.exit_code == 3
    assert message in result.stderr
    assert "resume" in result.stderr
    assert not list((tmp_path / "run").glob(".*.part"))


@pytest.mark.full
def test_a_disk_that_fills_up_late_loses_nothing(bad_files, command, tmp_path, monkeypatch):
    """Draws cannot be written; with space again, the run goes on from its checkpoint."""
    replace = os.replace

    def refuse(source, target):
        if str(target).endswith("draws.nc"):
            raise OSError(errno.ENOSPC, "No space left on device")
        replace(source, target)

    run = tmp_path / "run"
    options = ["--method", "uniform", "--coreset-size", "40", "--draws", "50", "--tune", "0"]
    options += ["--no-trust", "--no-report"]
    with monkeypatch.context() as patched:
        patched.setattr(files.os, "replace", refuse)
        failed = command("fit", bad_files / "good.csv", *FORMULA, *options, "--out", run)
    assert failed.exit_code == 3
    assert "no space left" in failed.stderr
    assert (run / "checkpoint" / "sampling.npz").exists()
    assert command("resume", run).exit_code == 0
    assert (run / "draws.nc").exists()


def test_two_processes_in_one_folder(bad_files, command, tmp_path):
    run = folders.RunFolder(tmp_path)
    config = folders.Config().changed("data", path="table.csv").changed("model", formula="y ~ x")
    folders.write_config(config, run.config_file)
    with folders.locked(run):
        result = command("fit", bad_files / "good.csv", *FORMULA, "--out", tmp_path, "--overwrite")
    assert result.exit_code == 2
    assert "another process" in result.stderr


def test_data_that_changed_are_not_resumed(bad_files, command, tmp_path, monkeypatch):
    table = tmp_path / "table.csv"
    table.write_bytes((bad_files / "good.csv").read_bytes())

    def stopped(*arguments, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("coreset_mcmc.commands.fitting.fit", stopped)
        assert command("fit", table, *FORMULA, "--out", tmp_path / "run").exit_code == 130
    with table.open("a") as file:
        file.write("1,2,a\n")
    result = command("resume", tmp_path / "run")
    assert result.exit_code == 2
    assert "other bytes" in result.stderr


@pytest.mark.parametrize("verb", ["resume", "report", "compare"])
def test_folders_that_are_no_runs(verb, command, tmp_path):
    more = [tmp_path / "other"] if verb == "compare" else []
    result = command(verb, tmp_path, *more)
    assert result.exit_code == 2
    assert "the folder of a run" in result.stderr


def test_a_run_is_not_compared_with_itself(command, tmp_path):
    assert "two or more" in command("compare", tmp_path).stderr


def test_a_broken_summary(command, tmp_path):
    run = folders.RunFolder(tmp_path)
    config = folders.Config().changed("data", path="table.csv").changed("model", formula="y ~ x")
    folders.write_config(config, run.config_file)
    run.summary_file.write_text("{")
    result = command("report", tmp_path)
    assert result.exit_code == 2
    assert "summary.json" in result.stderr


@pytest.mark.full
def test_markup_and_html_stay_text(command, tmp_path):
    """Column names that are markup for the terminal or for a browser are shown as they are."""
    names = ["[red]y[/red]", "<script>alert(1)</script>"]
    table = little(np.random.default_rng(0), 200)
    pd.DataFrame({names[0]: table["y"], names[1]: table["x"]}).to_csv(tmp_path / "table.csv", index=False)
    options = ["--method", "uniform", "--coreset-size", "40", "--draws", "50", "--no-trust", "--out", tmp_path / "run"]
    result = command("fit", tmp_path / "table.csv", "-f", f"`{names[0]}` ~ `{names[1]}`", *options)
    assert result.exit_code == 0, result.output
    assert names[0] in result.output
    assert names[1] in result.output
    page = (tmp_path / "run" / "report.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page


@pytest.mark.full
def test_separable_outcomes_have_a_posterior(command, tmp_path):
    """Perfect separation has no maximum-likelihood estimate; with a proper prior it has a posterior, and a note."""
    x = np.linspace(-1, 1, 200)
    pd.DataFrame({"y": (x > 0).astype(int), "x": x}).to_csv(tmp_path / "table.csv", index=False)
    options = ["--coreset-size", "60", "--draws", "50", "--no-trust", "--no-report", "--out", tmp_path / "run"]
    result = command("fit", tmp_path / "table.csv", *FORMULA, "--family", "bernoulli", *options)
    assert result.exit_code == 0, result.output
    assert "parts the two outcomes" in result.output
