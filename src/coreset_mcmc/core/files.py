"""Files that are either whole or not there."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path


def write_whole(path: Path, write: Callable[[Path], object]) -> Path:
    """Let ``write`` make a file beside ``path``, flush it to disk, then rename it: nobody sees a part of it.

    Whatever fails in between leaves the file that was there before, and nothing else.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        write(beside)
        with beside.open("rb+") as file:
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return path
