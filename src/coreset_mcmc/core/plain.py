"""Values as JSON can hold them, and back.

JSON knows no NaN and no infinity, and readers other than Python's refuse them. NaN, a number that could not be
computed, becomes null; infinities become the words "inf" and "-inf". Whoever reads knows which fields are numbers, so
the way back is exact.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

Record = TypeVar("Record")


def plain(value: Any) -> Any:
    """The same with nothing in it but what strict JSON has; keys become text, arrays and dataclasses are opened."""
    if is_dataclass(value) and not isinstance(value, type):
        return {item.name: plain(getattr(value, item.name)) for item in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else f"{value:g}"
    return value


def number(value: float | str | None) -> float:
    """Back to a number from what :func:`plain` made of one."""
    return math.nan if value is None else float(value)


def record(kind: type[Record], values: Mapping[str, Any]) -> Record:
    """A dataclass back from what :func:`plain` made of it, as long as its fields are numbers and text."""
    assert is_dataclass(kind)
    are_numbers = {item.name for item in fields(kind) if item.type in (float, "float")}
    return kind(**{name: number(value) if name in are_numbers else value for name, value in values.items()})


def strict_json(value: Any, **options: Any) -> str:
    """Text that any reader of JSON takes."""
    return json.dumps(plain(value), allow_nan=False, **options)
