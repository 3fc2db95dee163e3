"""One fit in a fresh process: seconds and rows of each pass, raw scans before and after, peak memory."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from coreset_mcmc_benchmarks.scale.files import COLUMNS, FEATURES, NUM_FEATURES, files_in

BLOCK = 1024


def raw_scan(folder: Path) -> float:
    """Seconds in which plain pyarrow decodes all columns of all row groups, on all cores."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - in the child process

    began = time.perf_counter()
    for path in files_in(folder):
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                file.read_row_group(number)
    return time.perf_counter() - began


class PassLog:
    """Which passes over all rows were made, and how long each took."""

    def __init__(self, num_rows: int) -> None:
        self.num_rows = num_rows
        self.passes: list[tuple[str, float]] = []
        self._began = 0.0

    def __call__(self, description: str, num_done: int, num_rows: int) -> None:
        """What is told of a pass; those over samples do not count."""
        if num_rows != self.num_rows:
            return
        if num_done == 0:
            self._began = time.perf_counter()
        elif num_done == num_rows:
            self.passes.append((description, time.perf_counter() - self._began))


def read_arrays(folder: Path, dtype: str) -> dict[str, np.ndarray]:
    """All rows in memory."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - in the child process

    files = files_in(folder)
    counts = [pq.read_metadata(path).num_rows for path in files]
    x, y = np.empty((sum(counts), NUM_FEATURES), dtype), np.empty(sum(counts), dtype)
    start = 0
    for path in files:
        with pq.ParquetFile(path) as file:
            for number in range(file.num_row_groups):
                table = file.read_row_group(number)
                stop = start + table.num_rows
                for place, name in enumerate(FEATURES):
                    x[start:stop, place] = table[name].to_numpy()
                y[start:stop] = table["y"].to_numpy()
                start = stop
    return {"x": x, "y": y}


def fit_once(folder: Path, engine: str, seed: int) -> dict[str, Any]:
    """Fit twice, so that the second time nothing compiles, and tell about both."""
    import coreset_mcmc as cm  # noqa: PLC0415 - in the child process
    from coreset_mcmc.core.watching import always_watched_by  # noqa: PLC0415

    warnings.simplefilter("ignore", UserWarning)
    load = os.getloadavg()[0]
    raw = [raw_scan(folder)] if engine == "stream" else []
    model = cm.models.logistic_regression(NUM_FEATURES)
    data: Any
    if engine == "stream":
        data = cm.scan_parquet(folder / "*.parquet", columns=COLUMNS)
        size, num_bytes = data.size, 0
    else:
        data = read_arrays(folder, engine.removeprefix("memory-"))
        size, num_bytes = len(data["y"]), sum(array.nbytes for array in data.values())
    before = _peak_bytes()
    result: dict[str, Any] = {"load_before": load}
    for name in ("cold", "warm"):
        log = PassLog(size)
        began = time.perf_counter()
        with always_watched_by(log):
            fitted = cm.fit(model, data, random_seed=seed, progressbar=False)
        result[f"{name}_seconds"] = time.perf_counter() - began
        result[f"{name}_passes"] = log.passes
    raw += [raw_scan(folder)] if engine == "stream" else []
    draws = fitted.posterior["beta"].values.reshape(-1, NUM_FEATURES + 1)
    return result | {
        "raw_seconds": raw,
        "data_bytes": num_bytes,
        "bytes_before_fit": before,
        "peak_bytes": _peak_bytes(),
        "kl_estimate": fitted.kl_estimate,
        "compile_seconds": fitted.training.compile_seconds,
        "mean": draws.mean(axis=0).tolist(),
        "sd": draws.std(axis=0).tolist(),
        "load_after": os.getloadavg()[0],
    }


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * BLOCK


if __name__ == "__main__":
    folder, engine, seed = sys.argv[1:]
    print(json.dumps(fit_once(Path(folder), engine, int(seed))))
