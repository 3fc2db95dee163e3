"""The Gaussian term of a coreset as a table that any program can read, and tables to and from files.

A line for each coordinate: its name, the centre c, the slope b and a row of the precision P, whose columns have the
names of the coordinates. The factor is b'(theta - c) - (theta - c)' P (theta - c) / 2.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from coreset_mcmc.core.on_use import on_use
from coreset_mcmc.posterior.gaussian_term import GaussianTerm

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = on_use("pandas")

COORDINATE, CENTRE, SLOPE, PRECISION = "coordinate", "centre", "slope", "precision "
EVERY_BIT_BY_ITSELF = (3, 1)
"""The version of pandas from which on ``read_csv`` reads numbers to the last bit without being told."""


def term_path(path: Path) -> Path:
    """Where the term of a coreset is that is saved at a path."""
    return path.with_name(f"{path.stem}.gaussian{path.suffix}")


def term_table(term: GaussianTerm, coordinates: tuple[str, ...]) -> pd.DataFrame:
    """One line for each coordinate."""
    table = pd.DataFrame({COORDINATE: list(coordinates), CENTRE: term.centre, SLOPE: term.slope})
    precision = pd.DataFrame(np.asarray(term.precision), columns=[f"{PRECISION}{name}" for name in coordinates])
    return pd.concat([table, precision], axis=1)


def term_from(table: pd.DataFrame) -> tuple[GaussianTerm, tuple[str, ...]]:
    """The term back from its table."""
    columns = [name for name in table.columns if str(name).startswith(PRECISION)]
    if len(columns) != len(table):
        raise ValueError(f"a precision of {len(table)} lines and {len(columns)} columns")
    term = GaussianTerm(table[CENTRE].to_numpy(), table[SLOPE].to_numpy(), table[columns].to_numpy())
    return term, tuple(str(name) for name in table[COORDINATE])


def write_table(table: pd.DataFrame, path: Path) -> None:
    """As CSV, or as Parquet for a name that ends so."""
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, index=False)


def read_table(path: Path) -> pd.DataFrame:
    """What :func:`write_table` wrote."""
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    version = tuple(int(part) for part in pd.__version__.split(".")[:2])
    return pd.read_csv(path, float_precision=None if version >= EVERY_BIT_BY_ITSELF else "round_trip")
