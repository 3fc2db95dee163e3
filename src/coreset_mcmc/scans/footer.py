"""What a file says of itself without its rows being read, and the formats that have such a thing."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True, eq=False)
class Footer:
    """The end of a file."""

    group_rows: np.ndarray
    """Rows of each group that can be read by itself, 64-bit."""
    schema: Any
    """As Arrow has it."""
    lacks: dict[str, bool | None]
    """Of columns that cannot hold NaN: whether values are missing; None if the file does not say."""
    digest: str


class Opened(ABC):
    """A file that is open, for certain columns."""

    @abstractmethod
    def batches(self, groups: Sequence[int], rows: int) -> Iterator[Any]:
        """The rows of consecutive groups as record batches, of at most so many rows where the format can do that."""


class NotThatFormat(Exception):  # noqa: N818 - becomes an InputError that names the file
    """The words say what was got instead."""


class FileFormat(ABC):
    """A way to store a table in groups of rows with an index at its end."""

    name: str
    suffixes: tuple[str, ...]

    @abstractmethod
    def footer(self, file: Any, size: int) -> Footer:
        """Read the end of a file; raises :class:`NotThatFormat`."""

    @abstractmethod
    def open(self, file: Any, names: Sequence[str], *, is_remote: bool) -> Opened:
        """Make a file ready to read these columns."""


def tail(file: Any, size: int, count: int) -> bytes:
    """The last bytes of a file."""
    file.seek(max(size - count, 0))
    return bytes(file.read(min(count, size)))


def can_hold_nan(kind: Any) -> bool:
    """Floats and what becomes floats; the rest has to say whether values are missing."""
    import pyarrow as pa

    return bool(pa.types.is_floating(kind) or pa.types.is_decimal(kind))
