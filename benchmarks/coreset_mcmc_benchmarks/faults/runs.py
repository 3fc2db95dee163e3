"""Runs of the command in this process, and what must hold afterwards."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import xarray
from typer.testing import CliRunner

from coreset_mcmc.commands import cli
from coreset_mcmc.commands.terminal import EXIT_INTERRUPTED, EXIT_RUN_ERROR, EXIT_USER_ERROR

ROWS = 400
SETTINGS = [
    "-f", "y ~ x + group", "--family", "bernoulli", "--draws", "60", "--tune", "100", "--chains", "2",
    "--coreset-size", "60",
]  # fmt: skip
IN_WORDS = (EXIT_USER_ERROR, EXIT_RUN_ERROR, EXIT_INTERRUPTED)


def write_table(path: Path) -> Path:
    """A small table of outcomes."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=ROWS)
    y = rng.binomial(1, 1 / (1 + np.exp(-x)))
    pd.DataFrame({"y": y, "x": x, "group": np.resize(["a", "b", "c"], ROWS)}).to_parquet(path, index=False)
    return path


class Ended(NamedTuple):
    """How a command ended."""

    code: int
    text: str
    trouble: str
    """An exception that was not told in words; empty if there is none."""


def call(*arguments: Any) -> Ended:
    """``coreset-mcmc`` in this process."""
    result = CliRunner().invoke(cli.app, [str(argument) for argument in arguments])
    error = result.exception
    is_told = error is None or isinstance(error, SystemExit)
    return Ended(result.exit_code, re.sub(r"\s+", " ", result.output), "" if is_told else repr(error)[:200])


def draws_of(run: Path) -> xarray.Dataset:
    """Of a finished run."""
    with xarray.open_datatree(run / "draws.nc", engine="h5netcdf") as tree:
        return tree["posterior"].to_dataset().load()


def differs(run: Path, whole: Path) -> str:
    """What is not the same in two finished runs, bit by bit; empty if all is."""
    if not draws_of(run).equals(draws_of(whole)):
        return "other draws"
    if (run / "coreset.csv").read_bytes() != (whole / "coreset.csv").read_bytes():
        return "another coreset"
    mine, other = (json.loads((place / "summary.json").read_text()) for place in (run, whole))
    for name in ("kl_estimate", "status"):
        if mine[name] != other[name]:
            return f"another {name}"
    if mine["trust"]["verdict"] != other["trust"]["verdict"]:
        return "another verdict"
    parts = [path.name for path in run.rglob("*.part")]
    return f"{parts[0]} was left" if parts else ""


def half_written(run: Path) -> str:
    """The first file under its final name that cannot be read to its end; empty if there is none."""
    readers = {".json": lambda path: json.loads(path.read_text()), ".npz": read_archive, ".nc": xarray.load_datatree}
    for path in sorted(run.rglob("*")):
        reader: Any = readers.get(path.suffix)
        if reader is not None and not path.name.startswith("."):
            try:
                reader(path)
            except Exception as error:
                return f"{path.name}: {type(error).__name__}"
    return ""


def read_archive(path: Path) -> None:
    """Every array, with its checksum."""
    with np.load(path) as archive:
        for name in archive.files:
            archive[name]


def resumed(run: Path, whole: Path) -> str:
    """Trouble with going on and ending with the same bits; empty if there is none."""
    ended = call("resume", run)
    if ended.trouble:
        return ended.trouble
    return f"exit {ended.code}: {ended.text[-150:]}" if ended.code else differs(run, whole)


def recovered(run: Path, whole: Path, table: Path, seed: int) -> str:
    """The same; a run that has not even its configuration is begun anew."""
    if (run / "config.toml").exists():
        return resumed(run, whole)
    for part in run.glob(".*"):
        part.unlink()
    ended = call("fit", table, *SETTINGS, "--seed", seed, "--no-report", "--out", run)
    return ended.trouble or (f"exit {ended.code}" if ended.code else differs(run, whole))
