"""The tables of runs that the verdicts are judged by."""

from __future__ import annotations

from pathlib import Path

from coreset_mcmc_benchmarks.runs_table import RunsTable

KEYS = ("problem", "construction", "coreset_size", "seed")
FIELDS = (
    *KEYS, "rows", "dimension", "true_kl", "noise", "half_variance", "kl_estimate", "pareto_k", "effective_draws",
    "num_draws", "rhat_across_coresets", "largest_shift", "effective_rows", "size_sensitivity", "rhat", "ess",
    "num_diverging", "cpu_seconds", "num_evaluations", "failure", "kl_of_others",
)  # fmt: skip
ZOO_FIELDS = (
    *KEYS, "family", "verdict", "failure", "true_kl", "kl_estimate", "mean_error", "sd_error", "noise", "half_variance",
    "pareto_k", "rhat_across_coresets", "largest_shift", "effective_rows", "size_sensitivity", "kl_of_others", "rhat",
    "ess", "num_diverging", "rows", "dimension", "cpu_seconds", "levels", "reason",
)  # fmt: skip
DRAWS, CHAINS = 1_000, 4
"""Draws of each chain behind every recorded row."""


def verdicts_table(folder: Path) -> RunsTable:
    """One row for each problem, construction, size and seed."""
    return RunsTable(folder / "trust.csv", FIELDS, KEYS)


def zoo_table(folder: Path) -> RunsTable:
    """The same for the problems of the zoo, with the verdict as it was given."""
    return RunsTable(folder / "trust_zoo.csv", ZOO_FIELDS, KEYS)
