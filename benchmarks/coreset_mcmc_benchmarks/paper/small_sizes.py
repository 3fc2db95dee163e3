"""What is true of coresets of ten and twenty rows, and what is said there."""

from __future__ import annotations

import numpy as np
import pandas as pd

from coreset_mcmc_benchmarks.paper.cell import number
from coreset_mcmc_benchmarks.paper.settings import CONTESTANTS

SMALL_SIZES = (10, 20)
DEFAULT = "least-squares"
USABLE, BAD = 1.0, 3.0
"""Nats. A run misleads if its own estimate is below the first and the truth above the second."""


def small_sizes_section(runs: pd.DataFrame) -> list[str]:
    """True and estimated KL of every method at these sizes, and the verdict of the default."""
    mine = runs[runs["coreset_size"].isin(SMALL_SIZES)]
    lines = [
        "## Ten and twenty rows",
        "",
        "Weights on so few rows cannot match a posterior of ten or more parameters. The default of `fit` adds a "
        "Gaussian term where it is given so few rows and positions are continuous; the sparse regression has discrete "
        "ones and no such term. Medians; the last column counts the dangerous kind, an estimate below "
        f"{USABLE:g} nat where the truth is above {BAD:g}.",
        "",
    ]
    if mine.empty:
        return [*lines, "Nothing has been run."]
    lines += [*_said_by_the_default(mine), ""]
    lines += [
        "| problem | M | method | runs | true KL | estimated KL | verdict | misled |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for experiment in dict.fromkeys(mine["experiment"]):
        for size in SMALL_SIZES:
            for method, contestant in CONTESTANTS.items():
                is_mine = (
                    (mine["experiment"] == experiment) & (mine["coreset_size"] == size) & (mine["method"] == method)
                )
                if is_mine.any():
                    lines.append(f"| {experiment} | {size} | {contestant.title} | {_cells(mine[is_mine])} |")
    return lines


def _cells(cell: pd.DataFrame) -> str:
    said = cell["verdict"].dropna()
    words = ", ".join(f"{verdict} ({count})" for verdict, count in said[said != ""].value_counts().items())
    true = _or_infinity(cell["kl"])
    estimates = cell["kl_estimate"].to_numpy(dtype=float)
    known = estimates[~np.isnan(estimates)]
    if len(known):
        estimate, wrong = number(float(np.median(known))), f"{int(is_misled(cell).sum())} of {len(cell)}"
    else:
        estimate, wrong = "none", ""
    return f"{len(cell)} | {number(float(np.median(true)))} | {estimate} | {words} | {wrong}"


def is_misled(cell: pd.DataFrame) -> np.ndarray:
    """For each run whether its own estimate hides a bad truth."""
    return np.asarray((cell["kl_estimate"].to_numpy(dtype=float) < USABLE) & (_or_infinity(cell["kl"]) > BAD))


def _or_infinity(values: pd.Series) -> np.ndarray:
    numbers = values.to_numpy(dtype=float)
    return np.where(np.isfinite(numbers), numbers, np.inf)


def _said_by_the_default(mine: pd.DataFrame) -> list[str]:
    """By verdict the true KL behind it, in a sentence each."""
    runs = mine[(mine["method"] == DEFAULT) & mine["verdict"].notna() & (mine["verdict"] != "")]
    sentences = []
    for verdict, own in runs.groupby("verdict"):
        true = _or_infinity(own["kl"])
        spread = f"from {number(true.min())} to {number(true.max())}" if len(own) > 1 else number(true[0])
        sentences.append(
            f'- The default said "{verdict}" in {len(own)} of {len(runs)} runs; the true KL was {spread} nats.'
        )
    return sentences
