"""Small tables of real flights, and the command line as a function."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from coreset_mcmc.commands import cli, terminal
from coreset_mcmc.datasets.flights import flights_with_weather, tables_folder

Command = Callable[..., Any]


@pytest.fixture(scope="session")
def flights() -> pd.DataFrame:
    """3 311 flights with their weather; every 90th."""
    table = flights_with_weather().iloc[::90].reset_index(drop=True)
    table["cancelled"] = table["dep_time"].isna().astype(int)
    table["carrier"] = table["carrier"].where(table["carrier"].isin(["UA", "B6", "EV"]), "other")
    return table[["cancelled", "dep_delay", "hour", "distance", "temp", "visib", "origin", "carrier"]]


@pytest.fixture(scope="session")
def departures() -> pd.DataFrame:
    """Departures in an hour from one of the three airports."""
    flown = pd.read_csv(tables_folder() / "flights.csv.zip").dropna(subset=["dep_time"])
    counts = flown.groupby(["origin", "month", "day", "hour"], as_index=False).size()
    return counts.rename(columns={"size": "departures"}).iloc[::9].reset_index(drop=True)


@pytest.fixture(scope="session")
def folder(tmp_path_factory, flights, departures) -> Path:
    """Where the tables are."""
    place = tmp_path_factory.mktemp("tables")
    flights.to_parquet(place / "flights.parquet")
    departures.to_csv(place / "departures.csv", index=False)
    return place


@pytest.fixture(scope="module")
def command() -> Iterator[Command]:
    """Call ``coreset-mcmc`` with arguments; unexpected exceptions come through."""

    def call(*arguments: object) -> Any:
        return CliRunner().invoke(cli.app, [str(argument) for argument in arguments], catch_exceptions=False)

    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", "200")
        patched.setattr(cli, "console", terminal.Console(width=200))
        patched.setattr(terminal, "errors", terminal.Console(stderr=True, width=4_000))
        yield call
