"""Calls of the command line one after the other, which keeps compiled programs from each for the next.

Each is a process of its own, from its start to its end, on a table of numbers with ten columns. The first finds an
empty folder of programs; the one that ``resume`` goes on with was killed when it had trained.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from coreset_mcmc.core.program_cache import FOLDER_VARIABLE, files_of
from coreset_mcmc_benchmarks.cold_start.child import NUM_FEATURES, simulated

SHORTER = 0.93
"""Rows of the table of another length, as a share."""
WORK, LATER = ("training", "sampling", "check"), ("checking", "report")
COMMAND = [sys.executable, "-m", "coreset_mcmc"]
PROGRAMS = "programs"
MOST_SECONDS, PAUSE = 120.0, 0.02
"""Of the run that is to be killed, and between looks at how far it is."""


class Call(NamedTuple):
    """One call of the command line."""

    words: str
    seconds: float
    work_seconds: float
    """Of them training, sampling and the final check."""
    later_seconds: float
    """Of them what comes when the draws are there: the data beside data that the model makes, and files."""
    num_compiled: int
    """Programs that were not there before."""

    @property
    def start_seconds(self) -> float:
        """What is left: until work begins, compilation included."""
        return self.seconds - self.work_seconds - self.later_seconds


def calls(num_rows: int, folder: Path) -> list[Call]:
    """Of one folder of programs, which is empty at first."""
    tables = {"table": (num_rows, 1), "same-shape": (num_rows, 2), "another-length": (round(SHORTER * num_rows), 3)}
    for name, (rows, seed) in tables.items():
        columns = simulated(rows, seed)
        frame = pd.DataFrame(columns["x"], columns=[f"x{place}" for place in range(NUM_FEATURES)])
        frame.assign(y=columns["y"].astype(int)).to_parquet(folder / f"{name}.parquet")
    fits = {
        "the first call": ("table", "1"),
        "the same table, another seed": ("table", "2"),
        "another table of the same shape": ("same-shape", "1"),
        "another table of another length": ("another-length", "1"),
    }
    made = [_call(words, folder, fit_arguments(folder, *asked)) for words, asked in fits.items()]
    _kill_after_training(folder, "killed")
    return [*made, _call("resume after training", folder, ["resume", str(folder / "killed")], "killed")]


def fit_arguments(folder: Path, table: str, seed: str, run: str = "run") -> list[str]:
    """Neither verdict nor report: they come after the fit."""
    formula = "y ~ " + " + ".join(f"x{place}" for place in range(NUM_FEATURES))
    asked = ["fit", str(folder / f"{table}.parquet"), "-f", formula, "--family", "bernoulli", "--seed", seed]
    return [*asked, "--no-trust", "--no-report", "--overwrite", "--out", str(folder / run)]


def _environment(folder: Path) -> dict[str, str]:
    left_out = "JAX_COMPILATION_CACHE_DIR"
    programs = {FOLDER_VARIABLE: str(folder / PROGRAMS)}
    return {name: value for name, value in os.environ.items() if name != left_out} | programs


def _call(words: str, folder: Path, arguments: list[str], run: str = "run") -> Call:
    known, began = len(files_of(folder / PROGRAMS)), time.perf_counter()
    subprocess.run([*COMMAND, *arguments], env=_environment(folder), check=True, capture_output=True)
    seconds = time.perf_counter() - began
    cost: dict[str, Any] = json.loads((folder / run / "summary.json").read_text())["cost"]
    work = sum(float(cost[stage]["seconds"]) for stage in WORK)
    later = sum(float(cost["seconds_by_part"][part]) for part in LATER)
    return Call(words, seconds, work, later, len(files_of(folder / PROGRAMS)) - known)


def _kill_after_training(folder: Path, run: str) -> None:
    """Leave a run whose training is on disk and whose summary is not."""
    command = [*COMMAND, *fit_arguments(folder, "table", "4", run)]
    running = subprocess.Popen(command, env=_environment(folder), stdout=subprocess.DEVNULL)
    began = time.perf_counter()
    while not (folder / run / "checkpoint" / "training.npz").exists() and running.poll() is None:
        if time.perf_counter() - began > MOST_SECONDS:
            break
        time.sleep(PAUSE)
    running.kill()
    running.wait()
