"""Parquet files with a simulated logistic regression, as many rows as wanted, the same for everyone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NUM_FEATURES = 10
ROWS_PER_GROUP, ROWS_PER_FILE = 1_000_000, 10_000_000
INTERCEPT = -1.0
DONE = "complete"
FEATURES = [f"x{number}" for number in range(NUM_FEATURES)]
COLUMNS = {"x": FEATURES, "y": "y"}
"""How the model sees them."""


def data_folder(parent: Path, num_rows: int) -> Path:
    """The folder with so many rows; files that are missing are written."""
    folder = parent / f"logistic-{num_rows}"
    if not (folder / DONE).exists():
        folder.mkdir(parents=True, exist_ok=True)
        for number, start in enumerate(range(0, num_rows, ROWS_PER_FILE)):
            _write(folder / f"part-{number:04d}.parquet", number, min(ROWS_PER_FILE, num_rows - start))
        (folder / DONE).touch()
    return folder


def files_in(folder: Path) -> list[Path]:
    """In the order of their rows."""
    return sorted(folder.glob("*.parquet"))


def coefficients() -> np.ndarray:
    """Of the simulation."""
    return np.random.default_rng(0).normal(scale=0.3, size=NUM_FEATURES)


def _write(path: Path, seed: int, num_rows: int) -> None:
    """One file, written beside its place and moved there."""
    generator, partial = np.random.default_rng([1, seed]), path.with_suffix(".partial")
    schema = pa.schema([(name, pa.float32()) for name in (*FEATURES, "y")])
    with pq.ParquetWriter(partial, schema) as writer:
        for start in range(0, num_rows, ROWS_PER_GROUP):
            count = min(ROWS_PER_GROUP, num_rows - start)
            x = generator.standard_normal((count, NUM_FEATURES), dtype=np.float32)
            chance = 1.0 / (1.0 + np.exp(-(x @ coefficients() + INTERCEPT)))
            y = (generator.random(count) < chance).astype(np.float32)
            columns = {name: x[:, place] for place, name in enumerate(FEATURES)} | {"y": y}
            writer.write_table(pa.table(columns, schema=schema))
    partial.rename(path)
