"""The two tables of the paper's experiments: runs, and the points of the Gaussian curves."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from coreset_mcmc_benchmarks.runs_table import RunsTable

KEYS = ("experiment", "method", "coreset_size", "seed", "variant")
FIELDS = (
    *KEYS, "label", "failure", "kl", "mean_error", "covariance_error", "js", "min_ess", "ess_per_second",
    "discrete_ess_per_second", "kl_estimate", "verdict", "training_end", "training_seconds", "sampling_seconds",
    "compile_seconds", "evaluations", "rows", "reference", "settings", "versions", "hardware",
)  # fmt: skip
CURVE_FIELDS = ("variant", "iteration", "cost", "kl")


def runs_table(folder: Path) -> RunsTable:
    """One row for each run."""
    return RunsTable(folder / "runs.csv", FIELDS, KEYS)


def curves_table(folder: Path) -> RunsTable:
    """One row for each point of a curve."""
    return RunsTable(folder / "curves.csv", CURVE_FIELDS, CURVE_FIELDS[:2])


def read_runs(folder: Path) -> pd.DataFrame:
    """The table as numbers; a failed run has a text in ``failure`` and missing metrics."""
    return runs_table(folder).frame(texts=("failure", "variant", "verdict", "training_end"))


def read_curves(folder: Path) -> pd.DataFrame:
    """The Gaussian curves; empty if none has been run."""
    table = curves_table(folder)
    return table.frame() if table.path.exists() else pd.DataFrame(columns=list(CURVE_FIELDS))
