"""Rows of files as data frames, with the same types in every frame of a scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from coreset_mcmc.scans.columns import Column

if TYPE_CHECKING:
    import pandas as pd


def as_frame(pieces: Sequence[Any], columns: Mapping[str, Column]) -> pd.DataFrame:
    """Columns one by one; decimals become floats, dictionaries categories, dates dates."""
    import pandas as pd
    import pyarrow as pa

    arrays = {}
    for name, column in columns.items():
        kind = frame_type(column)
        parts = [_cast(piece.column(name), kind) for piece in pieces]
        values = pa.chunked_array(parts, kind).to_pandas(date_as_object=False)
        is_flag = pa.types.is_boolean(kind) and column.lacks
        arrays[name] = values.astype(object) if is_flag else values
    return pd.DataFrame(arrays, copy=False)


def frame_type(column: Column) -> Any:
    """As Arrow hands it to pandas: whole numbers are floats if some are missing anywhere."""
    import pyarrow as pa

    kind = column.kind
    is_whole = pa.types.is_integer(kind) and column.lacks
    return pa.float64() if is_whole or pa.types.is_decimal(kind) else kind


def _cast(array: Any, kind: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_dictionary(array.type) and not pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
    return array if array.type == kind else array.cast(kind, safe=False)
