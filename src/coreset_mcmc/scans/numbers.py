"""From columns of Arrow to arrays of numbers, in the types that they are stored in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def number_type(kind: Any, lacks: bool | None) -> np.dtype | None:
    """The type of an array for such a column, None if it holds no numbers.

    What is missing becomes NaN, so whole numbers and booleans of which some are missing are floats.
    """
    import pyarrow as pa

    types = pa.types
    kind = kind.value_type if types.is_dictionary(kind) else kind
    becomes_float = types.is_decimal(kind) or types.is_null(kind)
    is_whole = types.is_integer(kind) or types.is_boolean(kind)
    if becomes_float or (is_whole and lacks):
        return np.dtype(np.float64)
    if is_whole or types.is_floating(kind):
        stored: np.dtype = np.dtype(kind.to_pandas_dtype())
        return stored
    return None


class MissingValue(Exception):  # noqa: N818 - becomes an InputError that names the place
    """A value is missing where the file did not say so; ``place`` counts the rows of the batch."""

    def __init__(self, name: str, place: int) -> None:
        super().__init__(name, place)
        self.name = name
        self.place = place


def fill(array: np.ndarray, batch: Any, names: Sequence[str]) -> None:
    """Write columns of a record batch into an array of as many rows: one for (B,), k for (B, k)."""
    if array.ndim == 1:
        array[:] = _values(batch, names[0], array.dtype)
    else:
        for place, name in enumerate(names):
            array[:, place] = _values(batch, name, array.dtype)


def _values(batch: Any, name: str, target: np.dtype) -> np.ndarray:
    import pyarrow as pa

    column = batch.column(name)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if column.null_count and not np.issubdtype(target, np.floating):
        raise MissingValue(name, int(np.argmax(column.is_null().to_numpy(zero_copy_only=False))))
    if not pa.types.is_floating(column.type) and (column.null_count or not _is_plain(column.type)):
        column = column.cast(pa.float64(), safe=False)
    values: np.ndarray = column.to_numpy(zero_copy_only=False)
    return values


def _is_plain(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_boolean(kind))
