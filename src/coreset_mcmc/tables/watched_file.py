"""A file that tells how much of it is read; whoever reads it may do so in another thread."""

from __future__ import annotations

import contextvars
from io import FileIO
from pathlib import Path

from coreset_mcmc.core.watching import tell_bytes


class WatchedFile(FileIO):
    """Bytes of a file, for reading from its beginning to its end."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "rb")
        self._name, self._size = path.name, path.stat().st_size
        self._context = contextvars.copy_context()

    def read(self, size: int | None = -1) -> bytes:
        block: bytes = super().read(-1 if size is None else size)
        self._context.run(tell_bytes, f"reading {self._name}", self.tell(), self._size)
        return block
