"""The command line as a person uses it."""

from __future__ import annotations

import pytest
import xarray
from typer.testing import CliRunner

import coreset_mcmc
from coreset_mcmc import datasets
from coreset_mcmc.commands import cli
from coreset_mcmc.commands.terminal import EXIT_USER_ERROR
from coreset_mcmc.methods.registry import REGISTRY

runner = CliRunner()


def test_version_and_help():
    assert runner.invoke(cli.app, ["--version"]).output.strip() == coreset_mcmc.__version__
    shown = runner.invoke(cli.app, ["--help"]).output
    assert "demo" in shown
    assert "list" in shown
    assert "Example" in runner.invoke(cli.app, ["demo", "--help"]).output


def test_list_shows_the_whole_registry():
    shown = runner.invoke(cli.app, ["list"], env={"COLUMNS": "200"}).output
    assert all(name in shown for entries in REGISTRY.values() for name in entries)


@pytest.fixture
def few_flights(monkeypatch):
    """The real flights, thinned so that the demo takes seconds."""
    flights = datasets.flight_cancellations()
    thinned = flights._replace(x=flights.x[::60], y=flights.y[::60])
    monkeypatch.setattr("coreset_mcmc.commands.demo.flight_cancellations", lambda: thinned)
    return thinned


@pytest.mark.full
def test_demo_leaves_a_table_a_picture_and_draws(few_flights, tmp_path):
    arguments = ["demo", "--coreset-size", "60", "--draws", "100", "--chains", "2", "--out", str(tmp_path / "out")]
    result = runner.invoke(cli.app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    shown = " ".join(result.output.split())
    assert "Which flights are cancelled?" in shown
    assert "visib" in shown
    assert "Estimated distance (KL)" in shown
    assert "on the full data" in shown
    assert (tmp_path / "out" / "coreset-demo.png").stat().st_size > 20_000
    with xarray.open_datatree(tmp_path / "out" / "coreset-demo.nc", engine="h5netcdf") as tree:
        assert tree["posterior"].sizes["coefficient"] == 11


def test_user_mistakes_give_one_message_and_exit_code_2(few_flights, tmp_path):
    result = runner.invoke(cli.app, ["demo", "--coreset-size", "999999", "--out", str(tmp_path)])
    assert result.exit_code == EXIT_USER_ERROR
    assert "Traceback" not in result.output
    assert "expected at most" in result.output


def test_flights_are_the_documented_ones():
    flights = datasets.flight_cancellations()
    assert flights.x.shape == (297_924, 10)
    assert flights.y.mean() == pytest.approx(0.01942, abs=1e-5)
    assert abs(flights.x.mean(axis=0)).max() < 1e-9
    assert flights.x.std(axis=0) == pytest.approx(1.0)
