"""How each format gives the names of its columns and its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.watching import tell
from coreset_mcmc.scans import text
from coreset_mcmc.tables.watched_file import WatchedFile


@dataclass(frozen=True)
class Format:
    """A way to store a table."""

    name: str
    names: Callable[[Path], list[str]]
    read: Callable[[Path, list[str]], pd.DataFrame]
    explain: Callable[[Path, Exception], InputError | None] = lambda path, error: None


def _to_pandas(table: Any) -> pd.DataFrame:
    """Column by column, each freed as soon as it is converted; decimals become floats."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        if pa.types.is_decimal(field.type):
            table = table.set_column(place, field.name, table.column(place).cast(pa.float64()))
    result: pd.DataFrame = table.to_pandas(
        split_blocks=True, self_destruct=True, ignore_metadata=True, date_as_object=False
    )
    return result


def _without_index(names: list[str]) -> list[str]:
    return [name for name in names if not text.is_index(name)]


def _text_names(path: Path) -> list[str]:
    return text.header(path)[0]


def _read_text(path: Path, columns: list[str]) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    with WatchedFile(path) as watched, pa.PythonFile(watched, mode="r") as raw:
        stream = pa.CompressedInputStream(raw, "gzip") if text.is_compressed(path) else raw
        table = arrow_csv.read_csv(stream, **text.options(path, include_columns=columns))
    if any(pa.types.is_binary(field.type) for field in table.schema):
        raise text.not_utf8(path)
    return _to_pandas(table)


def _parquet_names(path: Path) -> list[str]:
    from pyarrow import parquet

    schema = parquet.ParquetDataset(path).schema if path.is_dir() else parquet.read_schema(path)
    return _without_index(list(schema.names))


def _read_parquet(path: Path, columns: list[str]) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import parquet

    if path.is_dir():
        return _to_pandas(parquet.read_table(path, columns=columns))
    groups = []
    with parquet.ParquetFile(path) as file:
        num_groups, num_done = file.metadata.num_row_groups, 0
        for number in range(num_groups):
            groups.append(file.read_row_group(number, columns=columns))
            num_done += groups[-1].num_rows
            tell(f"reading {path.name}", num_done, file.metadata.num_rows)
        whole = pa.concat_tables(groups) if groups else file.schema_arrow.empty_table().select(columns)
    return _to_pandas(whole)


def _arrow_reader(source: Any) -> Any:
    """A file has an index at its end, a stream has none."""
    import pyarrow as pa

    try:
        return pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        return pa.ipc.open_stream(source)


def _arrow_names(path: Path) -> list[str]:
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        return _without_index(list(_arrow_reader(source).schema.names))


def _read_arrow(path: Path, columns: list[str]) -> pd.DataFrame:
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        return _to_pandas(_arrow_reader(source).read_all().select(columns))


def _npz_names(path: Path) -> list[str]:
    """1-D arrays are columns, the columns of a 2-D array x are x_0, x_1, ..."""
    with np.load(path, allow_pickle=False) as archive:
        shapes = {name: archive[name].shape for name in archive.files}
    lengths = {name: shape[0] if shape else 1 for name, shape in shapes.items()}
    for name, shape in shapes.items():
        require(
            len(shape) in (1, 2),
            f"array {name!r} of {path}",
            got=f"shape {shape}",
            expected="one column (N,) or several (N, p)",
            fix="Rows run along the first axis; split other arrays into columns.",
        )
    require(
        len(set(lengths.values())) <= 1,
        f"table {path}",
        got=f"arrays of lengths {lengths}",
        expected="the same number of rows in every array",
        fix="Save the arrays of one table together.",
    )
    return [name for key, shape in shapes.items() for name in _npz_columns(key, shape)]


def _npz_columns(name: str, shape: tuple[int, ...]) -> list[str]:
    return [name] if len(shape) == 1 else [f"{name}_{place}" for place in range(shape[1])]


def _read_npz(path: Path, columns: list[str]) -> pd.DataFrame:
    found = {}
    with np.load(path, allow_pickle=False) as archive:
        for key in archive.files:
            array = archive[key]
            names = _npz_columns(key, array.shape)
            for place, name in enumerate(names):
                if name in columns:
                    found[name] = array if array.ndim == 1 else array[:, place]
    return pd.DataFrame({name: found[name] for name in columns}, copy=False)


def _explain_npz(path: Path, error: Exception) -> InputError | None:
    if "allow_pickle" not in str(error):
        return None
    return InputError(
        f"table {path}",
        got="an array of Python objects",
        expected="arrays of numbers, booleans or text",
        fix="Reading objects can run any code, so it is refused. Save text with array.astype(str).",
    )


TEXT = Format("text with delimiters", _text_names, _read_text, text.explain)
PARQUET = Format("Parquet", _parquet_names, _read_parquet)
ARROW = Format("Arrow", _arrow_names, _read_arrow)
NUMPY = Format("NumPy archive", _npz_names, _read_npz, _explain_npz)
