"""``coreset-mcmc`` in a process that ends itself by SIGKILL as soon as it has saved a certain checkpoint.

    python -m tests.helpers.killed_run training.npz 3 resume run

ends after the third time; 0 stands for the checkpoint of what is done. Without a name, and with several commands that
are separated by "then", it lives until all of them are over. Sampling is saved as often as training, and leaves are as
short as in the test that uses it.
"""

from __future__ import annotations

import os
import signal
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from coreset_mcmc.commands.cli import app
from coreset_mcmc.data import layout
from coreset_mcmc.driver import run as driver
from coreset_mcmc.driver.checkpoint import Checkpoint
from coreset_mcmc.fitting.precompile import Preparation

LEAF_ROWS, LEAVES_PER_PART = 256, 2
NOBODY = "-"


def main(name: str, count: int, arguments: list[str]) -> None:
    save, saved = driver.save, []

    def save_and_die(path: Path, snapshot: Any) -> None:
        save(path, snapshot)
        saved.append(Path(path).name)
        is_time = saved.count(name) == count if count else bool(snapshot.trees["state"][-1])
        if Path(path).name == name and is_time:
            os.kill(os.getpid(), signal.SIGKILL)

    driver.save = save_and_die
    layout.MOST_LEAF_ROWS, layout.LEAVES_PER_PART = LEAF_ROWS, LEAVES_PER_PART
    Preparation.before_phase = lambda preparation, phase: None  # whoever dies soon compiles only what is needed
    Checkpoint.__init__.__defaults__ = (0.0, False)
    for is_command, words in groupby(arguments, lambda word: word != "then"):
        if is_command:
            app(list(words), standalone_mode=False)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
