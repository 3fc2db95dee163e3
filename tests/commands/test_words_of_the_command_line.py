"""What reaches a terminal speaks of flags, terms and the clock on the wall, and fits into 80 columns."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import coreset_mcmc as cm
from coreset_mcmc.commands import clock as clocks
from coreset_mcmc.commands.comparing import comparison
from coreset_mcmc.commands.flags import by_flags, verdict_by_flags
from coreset_mcmc.commands.summary import print_parameters
from coreset_mcmc.core import quiet_compiler
from coreset_mcmc.diagnostics import mixing
from coreset_mcmc.diagnostics.mixing import SamplingQuality
from coreset_mcmc.results import full_posterior
from coreset_mcmc.verdict import rules
from coreset_mcmc.verdict.verdict import conclude

PYTHON = re.compile(r"\bcm\.|\bfit\.|\bmethod=|\bdraws=|\btune=|coreset_size|kl_target|random_seed|drop_missing")


def bad_findings():
    quality = SamplingQuality(2, 100, 3.0, "x", 1.5, "x", 99)
    return [
        rules.distance(5.0, 400),
        rules.distance(float("inf"), 400),
        rules.tails(0.9, 3.0, 400),
        rules.tails(float("nan"), 3.0, 10),
        rules.agreement(2.0, 3.0, "x", 2, ""),
        rules.agreement(float("nan"), 3.0, "x", 2, "it failed"),
        rules.rows(1.0, 10, 100),
        rules.reserve(5.0, 250, ""),
        rules.sampling(quality),
    ]


def test_remedies_name_flags():
    judged = verdict_by_flags(conclude(bad_findings(), "", seconds=0.0))
    said = [judged.reason, judged.remedy, *(f"{item.text} {item.remedy}" for item in judged.findings)]
    assert not [text for text in said if PYTHON.search(text)]
    assert "--coreset-size" in judged.remedy


def test_warnings_name_flags():
    """Every text in the modules that warn."""
    for module in (mixing, full_posterior):
        for text in re.findall(r'(?<!")"([A-Z][^"]*)"(?!")', inspect.getsource(module)):
            assert not PYTHON.search(by_flags(text)) or "fit.tree" in text, text


def test_errors_name_flags(command, tmp_path):
    frame = pd.DataFrame({"y": [1.0, 2.0, np.nan, 4.0], "x": [1.0, 2.0, 3.0, 5.0]})
    frame.to_csv(tmp_path / "table.csv", index=False)
    base = ["fit", tmp_path / "table.csv", "-f", "y ~ x", "--out", tmp_path / "run"]
    for more, flag in [
        ([], "--drop-missing"),
        (["--draws", "1"], "--draws: got 1"),
        (["--tune", "-1"], "--tune: got -1"),
        (["--chains", "0"], "--chains: got 0"),
        (["--seed", "-3"], "--seed: got -3"),
        (["--kl-target", "0"], "--kl-target: got 0"),
        (["--interval", "1.5"], "--interval: got 1.5"),
        (["--coreset-size", "0"], "--coreset-size: got 0"),
        (["--method", "nuts2"], "--method nuts2"),
    ]:
        outcome = command(*base, *more)
        assert outcome.exit_code == 2
        assert flag in outcome.stderr, (flag, outcome.stderr)


def test_a_folder_of_text_files_is_a_table(command, tmp_path):
    folder = tmp_path / "days"
    folder.mkdir()
    generator = np.random.default_rng(0)
    for day in range(3):
        pd.DataFrame(generator.normal(size=(50, 2)), columns=["y", "x"]).to_csv(folder / f"{day}.csv", index=False)
    outcome = command("fit", folder, "-f", "y ~ z", "--out", tmp_path / "run")
    assert "'z'" in outcome.stderr
    assert "Parquet" not in outcome.stderr
    pd.DataFrame({"y": [1.0], "x": [1.0]}).to_parquet(folder / "3.parquet")
    outcome = command("fit", folder, "-f", "y ~ x", "--out", tmp_path / "run")
    assert outcome.exit_code == 2
    assert "3 files of text with delimiters (0.csv) and 1 files of Parquet (3.parquet)" in outcome.stderr
    assert "cut off" not in outcome.stderr


@pytest.mark.full
def test_rows_of_a_folder_of_text_files_are_all_read(command, tmp_path):
    folder = tmp_path / "days"
    folder.mkdir()
    generator = np.random.default_rng(0)
    for day in range(3):
        pd.DataFrame(generator.normal(size=(50, 2)), columns=["y", "x"]).to_csv(folder / f"{day}.csv", index=False)
    small = [
        "--method",
        "uniform",
        "--coreset-size",
        "20",
        "--draws",
        "40",
        "--tune",
        "20",
        "--no-trust",
        "--no-report",
    ]
    outcome = command("fit", folder, "-f", "y ~ x", *small, "--out", tmp_path / "run")
    assert outcome.exit_code == 0, outcome.output
    assert "150 rows of days" in outcome.output
    assert re.search(r"Work: .* s from start to finish", outcome.output)


def summary(formula: str, family: str = "gaussian") -> dict:
    model = {"formula": formula, "family": family}
    return {"settings": {"model": model}, "parameters": {"x": {"mean": 1.0, "sd": 0.1}}}


def test_runs_with_other_responses_are_not_comparable():
    alike = comparison({"a": summary("y ~ x"), "b": summary("y ~ x + z")})
    other = comparison({"a": summary("y ~ x"), "b": summary("np.log(y) ~ x", "t")})
    assert alike["notes"] == []
    assert [note[:29] for note in other["notes"]] == ["The runs have different respo", "The runs have different famil"]
    assert "y in a, np.log(y) in b" in other["notes"][0]


def test_long_names_do_not_break_a_table_at_80_columns():
    name = "a_column_with_a_very_long_name_that_goes_on_and_on:another_one[level_of_it]"
    row = {"mean": -0.000341, "sd": 0.000031, "lower": -0.00039, "upper": -0.000293, "ess_bulk": 4_000.0, "r_hat": 1.0}
    console = Console(width=80, record=True, file=open("/dev/null", "w"))  # noqa: SIM115 - a test
    print_parameters(console, {"interval": 0.89, "parameters": {name: row, "x": row}})
    text = console.export_text()
    assert all(len(line) <= 80 for line in text.splitlines())
    for number in ("-0.000341", "0.000031", "-0.000390", "-0.000293", "4,000", "1.000"):
        assert text.count(f" {number} ") == 2
    assert name in "".join(line.split("│")[1].strip() for line in text.splitlines() if line.startswith("│"))


def test_the_clock_counts_everything(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["pytest"])
    made = clocks.Clock()
    time.sleep(0.05)
    made.mark("reading")
    time.sleep(0.05)
    made.mark("fitting")
    assert made.seconds == pytest.approx(sum(made.parts.values()), abs=0.03)
    made.parts |= {"reading": 40.4, "fitting": 0.2, "checking": 60.0}
    assert "s from start to finish (reading 40, checking 60)" in made.in_words()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not tell when a process began")
def test_the_clock_starts_with_the_process():
    code = "import sys, time; sys.argv = ['coreset-mcmc']; time.sleep(0.5); "
    code += "from coreset_mcmc.commands.clock import Clock; print(Clock().seconds)"
    assert float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout) > 0.5


COMPILES_SLOWLY = """
import jax, jax.numpy as jnp, numpy as np
many = jnp.asarray(np.ones((250, 250)))
def windows(x):
    return x + jax.lax.reduce_window(many, 0.0, jax.lax.add, (20, 20), (1, 1), "SAME").sum()
jax.jit(windows).lower(1.0).compile()
"""


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize("is_quiet", [True, False])
def test_the_compiler_does_not_write_to_the_terminal(is_quiet):
    """Folding this constant takes longer than the second after which XLA complains.

    JAX, which runs these tests, has put a level of its own into the environment; a user has none.
    """
    code = ("import coreset_mcmc\n" if is_quiet else "") + COMPILES_SLOWLY
    users = {name: value for name, value in os.environ.items() if name != quiet_compiler.LEVEL}
    stderr = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=users).stderr
    assert ("slow_operation_alarm" not in stderr) if is_quiet else ("slow_operation_alarm" in stderr)


def test_the_environment_is_left_alone():
    code = "import os, coreset_mcmc; assert os.environ.get('TF_CPP_MIN_LOG_LEVEL') != '3'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_models_of_the_library_are_printed_in_a_line():
    assert "\n" not in repr(cm.models.linear_regression(2))
