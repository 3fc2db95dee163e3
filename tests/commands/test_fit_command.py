"""From a table to a folder, for each family, on real flights."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import arviz_base
import numpy as np
import pandas as pd
import pytest
import xarray

from coreset_mcmc.driver.progress import ProgressBar

SMALL = ["--draws", "200", "--tune", "100", "--seed", "1", "--coreset-size", "120"]
FEW = ["--draws", "20", "--tune", "10", "--seed", "1", "--coreset-size", "40", "--method", "uniform"]
ALONE = ["--no-trust", "--no-report"]


def read(run):
    return json.loads((run / "summary.json").read_text())


@pytest.fixture(scope="module")
def finished(tmp_path_factory, folder, command):
    """One run with everything, trust and report; a coreset of another size would take programs of its own."""
    run = tmp_path_factory.mktemp("runs") / "run"
    config = run.parent / "one_size.toml"
    config.write_text("[trust]\nsensitivity = false\n")
    arguments = [folder / "flights.parquet", "-f", "cancelled ~ hour + visib + origin", "--family", "bernoulli"]
    made = command("fit", *arguments, *SMALL, "--config", config, "--out", run)
    assert made.exit_code == 0, made.output
    return run, made.output


@pytest.mark.full
def test_everything_is_left_behind(finished, flights):
    run, shown = finished
    assert {path.name for path in run.iterdir()} >= {
        "config.toml", "draws.nc", "coreset.csv", "summary.json", "report.html", "checkpoint",
    }  # fmt: skip
    assert not list(run.glob(".*"))
    summary = read(run)
    assert summary["status"] == "complete"
    assert summary["verdict"] in ("good", "use with care", "do not use")
    assert list(summary["parameters"]) == ["Intercept", "hour", "visib", "origin[JFK]", "origin[LGA]"]
    for word in ("Posterior", "visib", "R-hat", "report.html", summary["verdict"].capitalize()):
        assert word in shown
    tree = xarray.open_datatree(run / "draws.nc", engine="h5netcdf")
    assert arviz_base.extract(tree)["hour"].size == 4 * 200
    rows = pd.read_csv(run / "coreset.csv")
    assert len(rows) == 120
    for name in ("cancelled", "hour", "visib", "origin"):
        assert list(rows[name]) == list(flights[name].iloc[rows["row"]])
    assert (rows["weight"] >= 0).all()
    assert (np.diff(rows["weight"]) <= 0).all()


@pytest.mark.full
def test_the_posterior_is_that_of_logistic_regression(finished, flights):
    """Cancellations fall with visibility; the means agree with Newton's method on all rows to half an sd.

    Priors are wide beside the likelihood of 3 311 rows, the Monte Carlo error of a mean is below 0.1 sd.
    """
    table = read(finished[0])["parameters"]
    dummies = pd.get_dummies(flights["origin"], drop_first=True).to_numpy(float)
    x = np.column_stack([np.ones(len(flights)), flights[["hour", "visib"]].to_numpy(float), dummies])
    y, beta = flights["cancelled"].to_numpy(float), np.zeros(x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-x @ beta))
        beta += np.linalg.solve((x * (p * (1 - p))[:, None]).T @ x, x.T @ (y - p))
    means = np.array([row["mean"] for row in table.values()])
    deviations = np.array([row["sd"] for row in table.values()])
    assert (np.abs(means - beta) < 0.5 * deviations).all()


@pytest.mark.full
def test_the_configuration_repeats_the_run(finished, command, tmp_path):
    run, _ = finished
    again = command("fit", "--config", run / "config.toml", "--no-trust", "--no-report", "--out", tmp_path / "again")
    assert again.exit_code == 0, again.output
    assert (tmp_path / "again" / "coreset.csv").read_bytes() == (run / "coreset.csv").read_bytes()
    assert read(tmp_path / "again")["parameters"] == read(run)["parameters"]


@pytest.mark.full
def test_report_is_drawn_again_without_the_data(finished, command, monkeypatch):
    run, _ = finished
    before = (run / "report.html").read_bytes()
    (run / "report.html").unlink()
    drawn = command("report", run)
    assert drawn.exit_code == 0, drawn.output
    assert (run / "report.html").read_bytes() == before


@pytest.mark.full
def test_a_finished_run_is_not_run_again(finished, command):
    resumed = command("resume", finished[0])
    assert resumed.exit_code == 0
    assert "finished" in resumed.output


@pytest.mark.full
def test_requirements_on_the_verdict(finished, command):
    """Exit code 4 tells a script that the verdict is worse than it accepts."""
    verdict = read(finished[0])["verdict"]
    assert command("resume", finished[0], "--require", "care").exit_code == (4 if verdict == "do not use" else 0)
    assert command("resume", finished[0], "--require", "good").exit_code == (0 if verdict == "good" else 4)


DELAYS = ["flights.parquet", "--formula", "dep_delay ~ scale(hour) + C(origin)", "--family", "t", "--drop-missing"]
"""Of flights that left; the others have none, and their rows are dropped."""
COUNTS = ["departures.csv", "--formula", "departures ~ origin + np.log(month)", "--family", "negativebinomial"]


def fit_in(run, command, folder, arguments, *options):
    """The summary of a run without more than it takes."""
    name, *others = arguments
    made = command("fit", folder / name, *others, *options, *ALONE, "--out", run)
    assert made.exit_code == 0, made.output
    summary = read(run)
    assert all(row["sd"] > 0 and np.isfinite(row["mean"]) for row in summary["parameters"].values())
    return summary


@pytest.fixture(scope="module")
def delays(tmp_path_factory, folder, command):
    run = tmp_path_factory.mktemp("delays") / "run"
    return run, fit_in(run, command, folder, DELAYS, *FEW)


@pytest.mark.full
def test_a_family_of_heavy_tails(delays):
    assert {"Intercept", "sigma", "nu"} <= set(delays[1]["parameters"])


@pytest.mark.full
@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "name"), [(DELAYS, "nu"), (COUNTS, "alpha")], ids=["heavy tails", "counts"])
def test_weights_are_found_for_every_family(arguments, name, command, folder, tmp_path):
    """Each takes programs of its own."""
    summary = fit_in(tmp_path / "run", command, folder, arguments, *SMALL)
    assert name in summary["parameters"]
    assert summary["kl_estimate"] < 1.0


@pytest.mark.full
def test_dropped_rows_keep_their_numbers(delays, flights):
    """Row numbers still count all rows."""
    rows = pd.read_csv(delays[0] / "coreset.csv")
    assert list(rows["dep_delay"]) == list(flights["dep_delay"].iloc[rows["row"]])


@pytest.mark.full
def test_columns_of_our_names_are_kept(command, tmp_path):
    generator = np.random.default_rng(0)
    table = pd.DataFrame({"x": generator.normal(size=300), "weight": generator.normal(size=300)})
    table.to_csv(tmp_path / "table.csv", index=False)
    made = command("fit", tmp_path / "table.csv", "-f", "weight ~ x", *FEW, *ALONE, "--out", tmp_path / "run")
    assert made.exit_code == 0, made.output
    rows = pd.read_csv(tmp_path / "run" / "coreset.csv")
    assert list(rows.columns) == ["row", "coreset_weight", "weight", "x"]
    np.testing.assert_allclose(rows["weight"], table["weight"].iloc[rows["row"]])


ARGUMENTS = ["-f", "cancelled ~ hour + visib", "--family", "bernoulli", "--coreset-size", "100", "--seed", "3"]
LONG = [*ARGUMENTS, "--draws", "400", "--tune", "0", "--no-trust", "--no-report"]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, folder, command):
    run = tmp_path_factory.mktemp("whole") / "run"
    made = command("fit", folder / "flights.parquet", *LONG, "--out", run)
    assert made.exit_code == 0, made.output
    return run


def same_bits(run, other):
    one, two = (xarray.open_datatree(path / "draws.nc", engine="h5netcdf") for path in (run, other))
    assert one["posterior"].to_dataset().equals(two["posterior"].to_dataset())
    assert (run / "coreset.csv").read_bytes() == (other / "coreset.csv").read_bytes()
    assert read(run)["kl_estimate"] == read(other)["kl_estimate"]


@pytest.mark.full
@pytest.mark.slow
def test_a_killed_run_ends_with_the_same_bits(uninterrupted, folder, command, tmp_path):
    """SIGKILL to a process of its own as soon as training has been saved; streamed runs are killed in every run."""
    run = tmp_path / "run"
    arguments = ["fit", str(folder / "flights.parquet"), *LONG, "--out", str(run)]
    process = subprocess.Popen([sys.executable, "-m", "coreset_mcmc", *arguments], stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 300
    while not (run / "checkpoint" / "training.npz").exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not (run / "summary.json").exists()
    resumed = command("resume", run)
    assert resumed.exit_code == 0, resumed.output
    same_bits(run, uninterrupted)


@pytest.mark.full
def test_ctrl_c_leaves_a_partial_result_that_can_be_resumed(uninterrupted, folder, command, tmp_path, monkeypatch):
    """The signal comes with the first news of sampling."""
    update = ProgressBar.update

    def interrupt(bar, completed, note):
        update(bar, completed, note)
        if bar.description == "sampling":
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(ProgressBar, "update", interrupt)
    run = tmp_path / "run"
    stopped = command("fit", folder / "flights.parquet", *LONG, "--out", run)
    assert stopped.exit_code == 130
    assert "resume" in stopped.output
    partial = read(run)
    assert partial["status"] == "interrupted"
    assert 0 < xarray.open_datatree(run / "draws.nc", engine="h5netcdf")["posterior"].sizes["draw"] < 400
    monkeypatch.undo()
    resumed = command("resume", run)
    assert resumed.exit_code == 0, resumed.output
    same_bits(run, uninterrupted)


@pytest.mark.full
def test_runs_are_compared(finished, uninterrupted, command):
    shown = command("compare", finished[0], uninterrupted)
    assert shown.exit_code == 0, shown.output
    for word in ("Settings that differ", "model.formula", "visib", "largest shift"):
        assert word in shown.output
    numbers = json.loads(command("compare", finished[0], uninterrupted, "--json").output)
    assert numbers["shifts"]["visib"] < 1.0
    assert numbers["shifts"]["origin[JFK]"] is None
    assert numbers["settings"]["sampling.seed"] == {str(finished[0]): 1, str(uninterrupted): 3}
