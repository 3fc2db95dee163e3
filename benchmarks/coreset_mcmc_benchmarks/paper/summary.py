"""The table of runs as a page: medians by method and coreset size, with the authors' means beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from coreset_mcmc_benchmarks.paper.authors import MEAN_KL
from coreset_mcmc_benchmarks.paper.figure_parts import METRICS
from coreset_mcmc_benchmarks.paper.left import left_section
from coreset_mcmc_benchmarks.paper.settings import CONTESTANTS
from coreset_mcmc_benchmarks.paper.table import read_runs

SUMMARY = "summary.md"


def write_summary(folder: Path) -> Path:
    """Write the page beside the table."""
    runs = read_runs(folder)
    runs = runs[runs["experiment"] != "gaussian"]
    lines = [
        "# What was run",
        "",
        "Made from [runs.csv](runs.csv) by `coreset-mcmc bench paper --figures-only`. Medians over seeds; in brackets",
        "the number of runs, and of failed ones if there were any.",
        "",
    ]
    for experiment in dict.fromkeys(runs["experiment"]):
        mine = runs[runs["experiment"] == experiment]
        lines += [f"## {experiment}", ""]
        for metric in ("kl", "js", "training_seconds", "ess_per_second", "discrete_ess_per_second", "evaluations"):
            if mine[metric].notna().any():
                lines += _metric_table(mine, str(experiment), metric)
    lines += left_section(runs)
    path = folder / SUMMARY
    path.write_text("\n".join(lines))
    return path


def _metric_table(runs: pd.DataFrame, experiment: str, metric: str) -> list[str]:
    sizes = sorted(int(size) for size in runs["coreset_size"].dropna().unique())
    title = METRICS.get(metric, "log-likelihoods of single rows")
    lines = [f"**{title}**", "", "| method | settings | " + " | ".join(f"M = {size}" for size in sizes) + " |"]
    lines.append("|---" * (len(sizes) + 2) + "|")
    for method, contestant in CONTESTANTS.items():
        mine = runs[runs["method"] == method]
        if mine.empty:
            continue
        label = str(mine["label"].iloc[0])
        if contestant.has_coreset:
            cells = [_cell(mine[mine["coreset_size"] == size], metric) for size in sizes]
        else:
            cells = [_cell(mine, metric), *[""] * (len(sizes) - 1)]
            label += ", no coreset"
        lines.append(f"| {contestant.title} | {label} | " + " | ".join(cells) + " |")
        authors = MEAN_KL.get(experiment, {}).get(method)
        if metric == "kl" and authors:
            cells = [f"{authors[size]:.3g}" if size in authors else "" for size in sizes]
            lines.append("| *authors' mean* | *oracle-tuned* | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _cell(runs: pd.DataFrame, metric: str) -> str:
    if runs.empty:
        return "not run"
    values = runs[metric].to_numpy(dtype=float)
    finite = values[np.isfinite(values)]
    num_failed = len(values) - len(finite)
    count = f"({len(values)}" + (f", {num_failed} failed)" if num_failed else ")")
    return f"{np.median(finite):.3g} {count}" if len(finite) else f"failed {count}"
