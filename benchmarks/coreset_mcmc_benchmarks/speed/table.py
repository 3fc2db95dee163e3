"""The table of the comparison, one row for each run. An old table can be read, but not added to."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pandas as pd

from coreset_mcmc_benchmarks.runs_table import RunsTable

KEYS = ("problem", "contestant", "seed")
FIELDS = (
    *KEYS, "rows", "dimension", "coreset_size", "failure", "training_seconds", "training_seconds_cold",
    "seconds_to_effective", "scaled", "kl", "kl_floor", "kl_kind", "js", "kl_estimate", "passes", "evaluations",
    "peak_megabytes", "compile_seconds", "import_seconds", "sampling_seconds", "seconds", "processor_seconds", "draws",
    "min_ess", "load_before", "load_after", "other_load", "note", "warnings", "reference", "versions", "hardware",
)  # fmt: skip
TEXTS = ("failure", "scaled", "kl_kind", "note", "warnings", "reference", "versions", "hardware")
TABLE = "speed.csv"


def speed_table(folder: Path) -> RunsTable:
    """The file in a folder."""
    return RunsTable(folder / TABLE, FIELDS, KEYS)


def read_table(folder: Path) -> pd.DataFrame:
    """The table as numbers; a failed run has a text in ``failure``. Columns that an old table lacks are empty."""
    table = speed_table(folder)
    if table.path.exists():
        with table.path.open(newline="") as file:
            found = next(csv.reader(file), [])
        is_old = set(KEYS) <= set(found) < set(FIELDS)
        table = replace(table, fields=tuple(found)) if is_old else table
    return table.frame(TEXTS).reindex(columns=list(FIELDS))
