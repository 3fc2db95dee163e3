"""A table of outcomes in files of several kinds, runs of ``coreset-mcmc`` on it, and what these leave."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray

SIZE = 1_300
MODEL = ["-f", "y ~ x + group", "--family", "bernoulli"]
SMALL = ["--draws", "60", "--tune", "40", "--chains", "2", "--seed", "1", "--coreset-size", "60"]
QUICK = [*MODEL, *SMALL, "--no-trust", "--no-report"]


def outcomes() -> pd.DataFrame:
    generator = np.random.default_rng(0)
    x = generator.normal(size=SIZE)
    y = generator.binomial(1, 1 / (1 + np.exp(-x)))
    return pd.DataFrame({"y": y, "x": x, "group": np.resize(["a", "b", "c"], SIZE), "other": np.arange(SIZE)})


def written(folder: Path, table: pd.DataFrame) -> Path:
    """Three files in groups of 90 rows; a pattern for them would sort the last one before the second."""
    folder.mkdir()
    for name, (start, stop) in {"part-1": (0, 300), "part-2": (300, 811), "part-10": (811, SIZE)}.items():
        table.iloc[start:stop].to_parquet(folder / f"{name}.parquet", index=False, row_group_size=90)
    return folder


def in_every_form(place: Path) -> Path:
    """The same table in one file, in three, and as text in two, of which one is compressed."""
    table = outcomes()
    table.to_parquet(place / "table.parquet", index=False)
    written(place / "parts", table)
    with gzip.open(place / "first.csv.gz", "wt") as file:
        table.iloc[:500].to_csv(file, index=False)
    table.iloc[500:].to_csv(place / "second.csv", index=False)
    return place


def read(run: Path) -> Any:
    """Its summary."""
    return json.loads((run / "summary.json").read_text())


def draws(run: Path) -> xarray.Dataset:
    with xarray.open_datatree(run / "draws.nc", engine="h5netcdf") as tree:
        return tree["posterior"].to_dataset().load()


def same_bits(run: Path, other: Path) -> None:
    assert draws(run).equals(draws(other))
    assert (run / "coreset.csv").read_bytes() == (other / "coreset.csv").read_bytes()
    assert read(run)["kl_estimate"] == read(other)["kl_estimate"]
