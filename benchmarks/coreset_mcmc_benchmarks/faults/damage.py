"""Ways in which a file can be spoilt."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path, Path], None]
"""Of a file, with the folder of another run at hand."""


def cut(path: Path, other: Path) -> None:
    """The second half is gone."""
    del other
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path, other: Path) -> None:
    """Nothing is left."""
    del other
    os.truncate(path, 0)


def zeros(path: Path, other: Path) -> None:
    """A block in the middle was never written."""
    del other
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + max(len(content) // 10, 1)] = bytes(max(len(content) // 10, 1))
    path.write_bytes(bytes(content[: path.stat().st_size]))


def nonsense(path: Path, other: Path) -> None:
    """Readable, and something else: JSON of another shape."""
    del other
    path.write_text('{"status": 7}')


def swapped(path: Path, other: Path) -> None:
    """The file of the same name of another run."""
    twin = other / path.parent.name / path.name if path.parent.name == "checkpoint" else other / path.name
    shutil.copyfile(twin, path)


DAMAGES: dict[str, Damage] = {
    "cut": cut, "empty": empty, "zeros": zeros, "nonsense": nonsense, "swapped": swapped,
}  # fmt: skip
