"""The tidy table of runs, one row for each, appended as they end."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from coreset_mcmc.core.errors import require
from coreset_mcmc_benchmarks.paper.jobs import Job

KEYS = ["experiment", "method", "coreset_size", "seed", "variant"]
FIELDS = [
    *KEYS, "label", "failure", "kl", "mean_error", "covariance_error", "js", "min_ess", "ess_per_second",
    "discrete_ess_per_second", "kl_estimate", "training_seconds", "sampling_seconds", "compile_seconds", "evaluations",
    "rows", "reference", "settings", "versions", "hardware",
]  # fmt: skip
CURVE_FIELDS = ["variant", "iteration", "cost", "kl"]

RUNS, CURVES = "runs.csv", "curves.csv"


def append(path: Path, fields: list[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Add rows at once, so that an interruption loses nothing that has ended."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, fields)
        if is_new:
            writer.writeheader()
        for row in rows:
            short = {key: f"{value:.5g}" if isinstance(value, float) else value for key, value in row.items()}
            writer.writerow({field: short.get(field, "") for field in fields})


def finished_keys(path: Path, keys: list[str], fields: list[str]) -> set[tuple[str, ...]]:
    """Keys of the rows of a table; it may not exist yet."""
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        require(
            reader.fieldnames == fields,
            str(path),
            got=f"columns {reader.fieldnames}",
            expected="the columns of this version",
            fix="Use another --out folder, or move the old table away.",
        )
        return {tuple(row[key] for key in keys) for row in reader}


def missing(jobs: list[Job], folder: Path) -> list[Job]:
    """Jobs without a row."""
    finished = finished_keys(folder / RUNS, KEYS, FIELDS)
    return [job for job in jobs if job.key not in finished]


def read_runs(folder: Path) -> pd.DataFrame:
    """The table as numbers; a failed run has a text in ``failure`` and missing metrics."""
    path = folder / RUNS
    require(path.exists(), str(path), got="no such file", expected="a table of runs", fix="Run the experiments first.")
    return pd.read_csv(path, keep_default_na=True, dtype={"failure": "string", "variant": "string"})


def read_curves(folder: Path) -> pd.DataFrame:
    """The Gaussian curves; empty if none has been run."""
    path = folder / CURVES
    return pd.read_csv(path) if path.exists() else pd.DataFrame(columns=CURVE_FIELDS)
