"""Families, groups, weights and filters from the command line to the folder of a run."""

from __future__ import annotations

import io
import json

import numpy as np
import pandas as pd
import pytest
from rich.console import Console
from typer.testing import CliRunner

import coreset_mcmc as cm
from coreset_mcmc.commands.cli import app
from coreset_mcmc.commands.config import Config, read_config, write_config
from coreset_mcmc.commands.reading import opened
from coreset_mcmc.commands.telling import print_plan


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


@pytest.mark.slow
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


def test_options_reach_the_regression_and_the_configuration(tmp_path):
    visits().to_csv(tmp_path / "visits.csv", index=False)
    config = Config().changed(
        "data", path=str(tmp_path / "visits.csv"), where="spent > 0", weights="times", lump_rare=20
    )
    config = config.changed("model", formula="spent ~ age + month(day) + (1|store)", family="gamma", link="inverse")
    write_config(config, tmp_path / "config.toml")
    again = read_config(tmp_path / "config.toml")
    assert again == config
    table = opened(Console(quiet=True), again)
    assert set(table.columns) == {"spent", "age", "day", "store", "times"}
    built = table.regression(Console(quiet=True), tmp_path / "table.parquet", None)
    assert built.distribution.link == "inverse"
    assert any("rows left out by the filter" in note for note in built.notes)
    assert any("times are frequency weights" in note for note in built.notes)
    assert list(built.model.coords["store__factor_dim"]) == [f"s{number}" for number in range(6)]


def test_a_coreset_that_hardly_pays_is_said_to_be_one(tmp_path):
    table = visits()
    built = cm.regression("spent ~ age", table)
    for size, count in ((None, 500), (200, 200), (180, 0)):
        output = io.StringIO()
        config = Config().changed("data", path="visits.csv").changed("coreset", size=size)
        print_plan(Console(file=output, width=200), config, built)
        expected = (
            f"A coreset of {count} of 900 rows, more than a fifth, hardly pays: --method laplace and --method nuts"
        )
        assert (expected in output.getvalue()) == bool(count)
    method = Config().changed("data", path="visits.csv").changed("coreset", method="laplace")
    output = io.StringIO()
    print_plan(Console(file=output, width=200), method, built)
    assert "hardly pays" not in output.getvalue()
    assert "  age ~ Normal(0, " in output.getvalue()
