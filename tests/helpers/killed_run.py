"""``coreset-mcmc`` in a process that ends itself by SIGKILL as soon as it has saved a checkpoint for the n-th time.

    python -m tests.helpers.killed_run NAME_OF_THE_CHECKPOINT N ARGUMENTS...

It lives on if n is zero. Sampling is saved as often as training, and leaves are as short as in the test that uses it.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

from coreset_mcmc.commands.cli import app
from coreset_mcmc.data import layout
from coreset_mcmc.driver import run as driver
from coreset_mcmc.driver.checkpoint import Checkpoint

LEAF_ROWS, LEAVES_PER_PART = 256, 2


def main(name: str, count: int, arguments: list[str]) -> None:
    save, saved = driver.save, []

    def save_and_die(path: Path, snapshot: Any) -> None:
        save(path, snapshot)
        saved.append(Path(path).name)
        if count and saved.count(name) == count:
            os.kill(os.getpid(), signal.SIGKILL)

    driver.save = save_and_die
    layout.MOST_LEAF_ROWS, layout.LEAVES_PER_PART = LEAF_ROWS, LEAVES_PER_PART
    Checkpoint.__init__.__defaults__ = (0.0, False)
    app(arguments)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
