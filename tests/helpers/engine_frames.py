"""A Dask DataFrame in uneven partitions, for tests of engines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.engines.dask_frame import DaskFrame, source_from_dask
from tests.helpers.engine_programs import logistic_arrays

COLUMNS = {"x": ["x0", "x1", "x2"], "y": "y"}
LENGTHS = [100, 9_000, 0, 380, 7_000, 5_000]


def table() -> pd.DataFrame:
    arrays = logistic_arrays()
    return pd.DataFrame({**{f"x{column}": arrays["x"][:, column] for column in range(3)}, "y": arrays["y"]})


def in_partitions(frame: pd.DataFrame, counted_in: Path | None = None, meta: Any = None) -> Any:
    """Of uneven lengths, one of them empty; every time one is computed, a file grows."""
    import dask.dataframe

    stops = np.cumsum(LENGTHS).tolist()

    def load(number: int) -> pd.DataFrame:
        if counted_in is not None:
            with (counted_in / "computed").open("a") as file:
                file.write("x")
        return frame.iloc[stops[number] - LENGTHS[number] : stops[number]]

    return dask.dataframe.from_map(load, range(len(LENGTHS)), meta=frame.iloc[:0] if meta is None else meta)


def frame_with_another_type() -> DaskFrame:
    """Partitions of floats where booleans are announced."""
    frame = table()
    return source_from_dask(in_partitions(frame.astype({"y": float}), meta=frame.iloc[:0]), COLUMNS)
