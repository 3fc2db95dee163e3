"""A little table in three layouts of files."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

SIZE = 150_000
"""Three leaves, the last of them short."""
MAPPING = {"x": ["x1", "x2", "x3"], "y": "y", "n": "n"}


def little_columns(size: int = SIZE) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {
        "x1": rng.normal(size=size).astype(np.float32),
        "x2": rng.normal(size=size).astype(np.float32),
        "x3": rng.normal(size=size).astype(np.float32),
        "y": rng.random(size) < 0.3,
        "n": rng.integers(0, 100, size).astype(np.int32),
    }


def as_batch(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"x": np.stack([columns["x1"], columns["x2"], columns["x3"]], 1), "y": columns["y"], "n": columns["n"]}


def write(path: Path, table: Any, group: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=group)
    else:
        feather.write_feather(table, path, chunksize=group)


CUTS = [0, 1, 30_001, 65_536, 65_540, 100_000, 140_007, SIZE]
"""Seven files of odd sizes."""


def write_layouts(folder: Path, suffix: str) -> dict[str, Path]:
    """One file; seven files with odd row groups; one row group for each file."""
    table = pa.table(little_columns())
    write(folder / "one" / f"all{suffix}", table, 70_001)
    for number, (start, stop) in enumerate(pairwise(CUTS)):
        write(folder / "seven" / f"part-{number * 3}{suffix}", table.slice(start, stop - start), 7_001)
    for number, start in enumerate(range(0, SIZE, 50_000)):
        write(folder / "groups" / f"part-{number}{suffix}", table.slice(start, 50_000), SIZE)
    return {name: folder / name for name in ("one", "seven", "groups")}


@pytest.fixture(scope="session")
def parquet_layouts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_layouts(tmp_path_factory.mktemp("parquet"), ".parquet")


@pytest.fixture(scope="session")
def arrow_layouts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write_layouts(tmp_path_factory.mktemp("arrow"), ".arrow")


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """Twelve files of ten rows, named so that sorting as text would mix them up."""
    for number in range(12):
        values = np.arange(10.0) + 10 * number
        write(tmp_path / "few" / f"part-{number}.parquet", pa.table({"a": values, "b": values.astype(np.int64)}), 4)
    return tmp_path / "few"
