"""Families, groups, weights and filters from the command line to the folder of a run."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from coreset_mcmc.commands.cli import app

pytestmark = pytest.mark.full


def visits() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    size = 900
    store = rng.integers(0, 6, size)
    age = rng.normal(40.0, 9.0, size)
    mean = np.exp(1.0 + 0.02 * (age - 40.0) + 0.4 * np.sin(store))
    frame = pd.DataFrame({"age": age, "store": np.char.add("s", store.astype(str)), "times": 1 + np.arange(size) % 3})
    frame["spent"] = np.where(rng.random(size) < 0.1, 0.0, rng.gamma(3.0, mean / 3.0))
    frame["day"] = pd.date_range("2023-12-01", periods=size, freq="3h").astype(str)
    return frame


def test_a_run_with_everything(tmp_path):
    """A gamma regression with groups, weights, a filter, dates and lumped levels; what it says and what it leaves."""
    visits().to_csv(tmp_path / "visits.csv", index=False)
    arguments = ["fit", str(tmp_path / "visits.csv"), "-f", "spent ~ age + month(day) + (1|store)", "--family", "gamma"]
    arguments += ["--where", "spent > 0 and year(day) >= 2023", "--weights", "times", "--lump-rare", "20"]
    arguments += [
        "--no-trust",
        "--no-report",
        "--draws",
        "300",
        "--tune",
        "100",
        "--seed",
        "1",
        "--coreset-size",
        "200",
    ]
    result = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path / "run")])
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "rows left out by the filter" in said
    assert "times are frequency weights" in said
    assert "1|store_sigma ~ HalfNormal(" in said
    assert "A coreset of 200 of" in said
    assert "hardly pays: --method laplace and --method nuts take all rows." in said
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert {"1|store_sigma", "alpha", "age", "month(day)"} <= set(summary["settings"]["priors_used"])
    rows = pd.read_csv(tmp_path / "run" / "coreset.csv")
    assert {"spent", "age", "day", "store", "times"} <= set(rows.columns)
    assert (rows["spent"] > 0).all()
    again = CliRunner().invoke(
        app, ["fit", "--config", str(tmp_path / "run" / "config.toml"), "--out", str(tmp_path / "again")]
    )
    assert again.exit_code == 0, again.output
    other = json.loads((tmp_path / "again" / "summary.json").read_text())
    assert other["parameters"] == summary["parameters"]
