"""The page that puts every baseline beside the authors' own runs, and says what is true of very small coresets."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from coreset_mcmc_benchmarks.paper.authors import MEDIAN_KL
from coreset_mcmc_benchmarks.paper.settings import CONTESTANTS
from coreset_mcmc_benchmarks.paper.table import read_runs

PAGE = "baselines.md"
SMALL_SIZES = (10, 20)
DEFAULT = "least-squares"
FACTOR = 3.0
"""A larger difference between medians is marked."""


def write_beside_authors(folder: Path) -> Path:
    """Write the page beside the table."""
    runs = read_runs(folder)
    runs = runs[runs["experiment"] != "gaussian"]
    lines = [
        "# Baselines beside the authors' own runs",
        "",
        "Two-moment KL in nats: median, range and number of runs. Made from [runs.csv](runs.csv) by",
        "`coreset-mcmc bench paper --figures-only`. The authors' numbers are those of their published result files,",
        "ten runs each; their flights are another table than ours. A dagger marks a row whose median, as published,",
        f"differs from the authors' by more than a factor of {FACTOR:g}.",
        "",
        "| method | problem | M | authors | as published | mode found | at its best | default of `fit` |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (method, experiment, size), authors in MEDIAN_KL.items():
        mine = runs[runs["experiment"] == experiment]
        own = _values(mine, method, size)
        mark = " †" if len(own) and _is_far(float(np.median(own)), authors.median) else ""
        best = next((name for name, one in CONTESTANTS.items() if one.best_of == method), "")
        cells = [
            f"{CONTESTANTS[method].title}{mark}", experiment, str(size or ""), authors.in_words,
            _cell(mine, method, size),
            _cell(mine, f"{method}-mode", size) if f"{method}-mode" in CONTESTANTS else "",
            _cell(mine, best, size) if best else "", _cell(mine, DEFAULT, size or 500),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", *_ends(runs), *_small(runs)]
    path = folder / PAGE
    path.write_text("\n".join(lines) + "\n")
    return path


def _is_far(ours: float, theirs: float) -> bool:
    return not 1.0 / FACTOR <= ours / theirs <= FACTOR


def _values(runs: pd.DataFrame, method: str, size: int | None) -> np.ndarray:
    mine = runs[runs["method"] == method]
    mine = mine if size is None or not CONTESTANTS[method].has_coreset else mine[mine["coreset_size"] == size]
    values = mine["kl"].to_numpy(dtype=float)
    return np.where(np.isfinite(values), values, np.inf)


def _cell(runs: pd.DataFrame, method: str, size: int | None) -> str:
    """Failed runs and infinite values count as the worst."""
    values = _values(runs, method, size)
    if not len(values):
        return "not run"
    middle = float(np.median(values))
    shown = f"{middle:.3g}" if np.isfinite(middle) else "failed"
    spread = f" ({values.min():.2g} to {values.max():.2g})" if len(values) > 1 else ""
    return f"{shown}{spread}, {len(values)} run{'s' if len(values) > 1 else ''}"


def _ends(runs: pd.DataFrame) -> list[str]:
    """Runs whose training was ended by a bound on steps instead of its own rule."""
    told = runs[runs["training_end"].fillna("").str.contains("max_iterations")]
    lines = ["## Ended by a bound on steps", ""]
    if told.empty:
        return [*lines, "No run of this table.", ""]
    counts = Counter(zip(told["experiment"], told["method"], strict=True))
    return [*lines, *(f"- {method}, {experiment}: {count}" for (experiment, method), count in counts.items()), ""]


def _small(runs: pd.DataFrame) -> list[str]:
    """What is true at very small sizes, and what is said there."""
    mine = runs[runs["coreset_size"].isin(SMALL_SIZES)]
    lines = [
        "## Ten and twenty rows",
        "",
        "So few rows alone cannot match a posterior of ten parameters. The default of `fit` adds a Gaussian term where",
        "it is given so few. Medians; an estimate that is far too small would be the dangerous kind.",
        "",
        "| problem | M | method | runs | true KL | estimated KL | verdict |",
        "|---|---|---|---|---|---|---|",
    ]
    for experiment in dict.fromkeys(mine["experiment"]):
        for size in SMALL_SIZES:
            for method, contestant in CONTESTANTS.items():
                cell = mine[
                    (mine["experiment"] == experiment) & (mine["coreset_size"] == size) & (mine["method"] == method)
                ]
                if len(cell):
                    said = ", ".join(sorted({str(one) for one in cell["verdict"].dropna() if str(one)}))
                    estimates = cell["kl_estimate"].to_numpy(dtype=float)
                    known = estimates[np.isfinite(estimates)]
                    estimate = f"{np.median(known):.3g}" if len(known) else "none"
                    kl = float(np.median(_values(cell, method, size)))
                    true = f"{kl:.3g}" if np.isfinite(kl) else "failed"
                    lines.append(
                        f"| {experiment} | {size} | {contestant.title} | {len(cell)} | {true} | {estimate} | {said} |"
                    )
    return lines
