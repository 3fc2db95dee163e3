"""Where a run can be hit: every file that it writes goes through one flush and one rename, and both are watched.

What SIGKILL leaves at a moment is what lies on the disk at that moment. So one run, whose folder is copied at each of
these moments, shows what any kill would have left: half a file under another name before the rename, the new file
after it.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from coreset_mcmc.driver.checkpoint import Checkpoint

FLUSH, RENAMED = "half-written", "written"


class Watch:
    """Counts the files of a run as they are written and calls back at each moment.

    Args:
        act: called with the number of the file from 0, the moment, the part that is written and its final path.
    """

    def __init__(self, act: Callable[[int, str, Path, Path], None]) -> None:
        self.act = act
        self.names: list[str] = []
        """Of the files so far."""
        self._replace, self._fsync = os.replace, os.fsync

    def flush(self, descriptor: int) -> None:
        """In place of ``os.fsync``."""
        part = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if part.name.endswith(".part"):
            name = part.name[1:].rsplit(".", 2)[0]
            self.act(len(self.names), FLUSH, part, part.with_name(name))
        self._fsync(descriptor)

    def replace(self, source: Any, target: Any) -> None:
        """In place of ``os.replace``."""
        self._replace(source, target)
        if Path(source).name.endswith(".part"):
            self.names.append(Path(target).name)
            self.act(len(self.names) - 1, RENAMED, Path(source), Path(target))


@contextmanager
def watched(act: Callable[[int, str, Path, Path], None]) -> Iterator[Watch]:
    """Everything that is written meanwhile; checkpoints are saved after every chunk of steps."""
    watch = Watch(act)
    with (
        mock.patch("os.fsync", watch.flush),
        mock.patch("os.replace", watch.replace),
        mock.patch.object(Checkpoint.__init__, "__defaults__", (0.0, False)),
    ):
        yield watch


def killed_copies(run: Path, place: Path) -> Callable[[int, str, Path, Path], None]:
    """Copies of the folder ``run`` into ``place``, one for each moment, as a kill would have left it."""

    def copy(number: int, moment: str, part: Path, path: Path) -> None:
        target = place / f"{number:02d}-{path.name}-{moment}"
        shutil.copytree(run, target)
        if moment == FLUSH:
            half = target / part.relative_to(run)
            os.truncate(half, half.stat().st_size // 2)

    return copy
