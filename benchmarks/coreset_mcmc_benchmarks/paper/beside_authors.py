"""The page that puts every number beside the authors' own runs, with the reason of each large difference."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

from coreset_mcmc_benchmarks.paper.authors import MEAN_KL, MEDIAN_KL
from coreset_mcmc_benchmarks.paper.cell import in_words, number, values_of
from coreset_mcmc_benchmarks.paper.diagnostics import METHODS
from coreset_mcmc_benchmarks.paper.reasons import FACTOR, PUT_BACK, difference
from coreset_mcmc_benchmarks.paper.settings import CONTESTANTS
from coreset_mcmc_benchmarks.paper.small_sizes import DEFAULT, small_sizes_section
from coreset_mcmc_benchmarks.paper.table import read_runs

PAGE = "baselines.md"
BESIDE = {"coreset-mcmc": "coreset-mcmc-hot-dog", "coreset-mcmc-s-published": "coreset-mcmc-s"}
"""What stands beside the tuned runs: the rate nobody chose, and minibatches that are not biased."""


def write_beside_authors(folder: Path) -> Path:
    """Write the page beside the table."""
    runs = read_runs(folder)
    runs = runs[runs["experiment"] != "gaussian"]
    lines = [
        "# Every number beside the authors' own",
        "",
        "Two-moment KL in nats: median, range and number of runs. Made from [runs.csv](runs.csv) by",
        "`coreset-mcmc bench paper --figures-only`. The authors' numbers are those of their published result files,",
        "ten runs each; their flights are another table than ours. A dagger marks a row whose number, as published,",
        f"differs from the authors' by more than a factor of {FACTOR:g}. The last column says why: *explained* if one",
        "property of their code, put back, brings our number within that factor; *in part* if it goes at least half of",
        "the way on a logarithmic scale; *open* if nothing that was tried does.",
        "",
        *_baselines(runs),
        "",
        *_coreset_mcmc(runs),
        "",
        *_put_back(runs),
        "",
        *_ends(runs),
        *small_sizes_section(runs),
    ]
    path = folder / PAGE
    path.write_text("\n".join(lines) + "\n")
    return path


def _baselines(runs: pd.DataFrame) -> list[str]:
    lines = [
        "## Baselines",
        "",
        "| method | problem | M | authors | as published | mode found | at its best | default of `fit` | difference |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for (method, experiment, size), authors in MEDIAN_KL.items():
        told = difference(runs, method, experiment, size, authors.median)
        best = next((name for name, one in CONTESTANTS.items() if one.best_of == method), "")
        found = f"{method}-mode" if f"{method}-mode" in CONTESTANTS else ""
        cells = [
            CONTESTANTS[method].title + (" †" if told.is_far else ""), experiment, str(size or ""), authors.in_words,
            _cell(runs, method, experiment, size), _cell(runs, found, experiment, size),
            _cell(runs, best, experiment, size), _cell(runs, DEFAULT, experiment, size or 500), told.reason,
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _coreset_mcmc(runs: pd.DataFrame) -> list[str]:
    """The authors have means here, which a single bad run decides; ours stand before the medians."""
    lines = [
        "## Coreset MCMC",
        "",
        "At the authors' step sizes, which were chosen by this very number. They give means over ten runs (of the",
        "sparse regression with all rows the median), so ours are compared as means, too. *Beside it*: Hot DoG, which",
        "takes no step size, for gradients of all rows, and minibatches without the bias for those of the published",
        "scheme.",
        "",
        "| gradients | problem | M | authors | as published: mean | as published | beside it | default of `fit` "
        "| difference |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for experiment, methods in MEAN_KL.items():
        for method, numbers in methods.items():
            for size, authors in numbers.items():
                is_mean = (experiment, method) != ("sparse", "coreset-mcmc")
                told = difference(runs, method, experiment, size, authors, is_mean=is_mean)
                values = values_of(runs, method, experiment, size)
                cells = [
                    ("all rows" if method == "coreset-mcmc" else "minibatches") + (" †" if told.is_far else ""),
                    experiment, str(size), number(authors), number(float(np.mean(values))) if len(values) else "",
                    in_words(values), _cell(runs, BESIDE[method], experiment, size),
                    _cell(runs, DEFAULT, experiment, size), told.reason,
                ]  # fmt: skip
                lines.append("| " + " | ".join(cells) + " |")
    return lines


def _put_back(runs: pd.DataFrame) -> list[str]:
    lines = [
        "## Properties of the published code, put back one at a time",
        "",
        "| method | property | problem | M | authors | ours | with it put back |",
        "|---|---|---|---|---|---|---|",
    ]
    for (method, experiment, size), authors in MEDIAN_KL.items():
        for words, name in PUT_BACK.get(method, ()):
            changed = values_of(runs, name, experiment, size)
            if len(changed):
                lines.append(
                    f"| {METHODS[method].title} | {words} | {experiment} | {size or ''} | {authors.in_words} "
                    f"| {in_words(values_of(runs, method, experiment, size))} | {in_words(changed)} |"
                )
    return lines


def _cell(runs: pd.DataFrame, method: str, experiment: str, size: int | None) -> str:
    return in_words(values_of(runs, method, experiment, size)) if method else ""


def _ends(runs: pd.DataFrame) -> list[str]:
    """Runs whose training was ended by a bound on steps instead of its own rule."""
    told = runs[runs["training_end"].fillna("").str.contains("max_iterations")]
    lines = ["## Ended by a bound on steps", ""]
    if told.empty:
        return [*lines, "No run of this table.", ""]
    counts = Counter(zip(told["experiment"], told["method"], strict=True))
    return [*lines, *(f"- {method}, {experiment}: {count}" for (experiment, method), count in counts.items()), ""]
