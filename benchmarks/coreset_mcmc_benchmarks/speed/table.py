"""The table of the comparison, one row for each run, appended as they end."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from coreset_mcmc.core.errors import require
from coreset_mcmc_benchmarks.paper.table import finished_keys
from coreset_mcmc_benchmarks.speed.contestants import Job

KEYS = ["problem", "contestant", "seed"]
FIELDS = [
    *KEYS, "rows", "dimension", "coreset_size", "failure", "training_seconds", "training_seconds_cold",
    "seconds_to_effective", "scaled", "kl", "kl_floor", "kl_kind", "js", "kl_estimate", "passes", "evaluations",
    "peak_megabytes", "compile_seconds", "import_seconds", "sampling_seconds", "seconds", "processor_seconds", "draws",
    "min_ess", "note", "warnings", "reference", "versions", "hardware",
]  # fmt: skip
TABLE = "speed.csv"


def missing(jobs: list[Job], folder: Path) -> list[Job]:
    """Jobs without a row."""
    finished = finished_keys(folder / TABLE, KEYS, FIELDS)
    return [job for job in jobs if job.key not in finished]


def read_table(folder: Path) -> pd.DataFrame:
    """The table as numbers; a failed run has a text in ``failure``."""
    path = folder / TABLE
    require(path.exists(), str(path), got="no such file", expected="a table of runs", fix="Run the comparison first.")
    texts = ("failure", "scaled", "kl_kind", "note", "warnings", "reference", "versions", "hardware")
    return pd.read_csv(path, dtype=dict.fromkeys(texts, "string"))
