"""The tables of ``bench many``: goals with what was reached, and medians of every contestant."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc_benchmarks.many.contestants import CONTESTANTS, EFFECTIVE_DRAWS
from coreset_mcmc_benchmarks.many.problems import Goal, Problem
from coreset_mcmc_benchmarks.markdown import table_lines
from coreset_mcmc_benchmarks.runs_table import RunsTable

TITLE = "# Many parameters, measured"
EXPLANATION = f"""
Made by `coreset-mcmc bench many`; [many.csv](many.csv) has every run with the load of the machine. Seconds are cold,
compilation included, from data in memory to draws; those of NUTS are a bound from below: it is given a draw of the
posterior and all standard deviations for nothing, only drawing counts, and each of its draws as an effective one,
scaled to {EFFECTIVE_DRAWS:,}. "KL" is the larger of the fit's own estimate and one from all rows at 400 draws; for
the paper's problems the two-moment KL to NUTS on all rows, whose own noise is 0.006 to 0.016. Errors are the largest
over all parameters, against references with as many effective draws as its column says: with n of them the
largest error of d right means is itself about sqrt(2 log d / n). Medians over seeds, with the range of KL in
brackets.
"""


def page(table: RunsTable, problems: Mapping[str, Problem]) -> list[str]:
    """Everything, as lines of Markdown."""
    frame = table.frame(texts=("problem", "contestant", "note"))
    frame["kl"] = frame[["kl_estimate", "kl_all_rows"]].max(axis=1, skipna=False)
    frame["kl"] = frame["two_moment_kl"].where(frame["two_moment_kl"].notna(), frame["kl"])
    lines = [TITLE, EXPLANATION, "## Goals", "", *_goals(frame, problems), "", "## All contestants", ""]
    return [*lines, *_contestants(frame, problems)]


def _goals(frame: pd.DataFrame, problems: Mapping[str, Problem]) -> list[str]:
    rows = []
    for (name, size), runs in frame[frame["contestant"] == "ours"].groupby(["problem", "rows"], sort=False):
        goal = problems[str(name)].goal if str(name) in problems else Goal()
        nuts = frame[(frame["problem"] == name) & (frame["contestant"] == "nuts")]["seconds"].median()
        reached = {
            "kl": runs["kl"].max(skipna=False),
            "seconds": runs["seconds"].max(skipna=False),
            "mean_error": runs["largest_mean_error"].max(skipna=False),
            "sd_error": runs["largest_sd_error"].max(skipna=False),
            "times_nuts": nuts / runs["seconds"].median(),
        }
        asked = {part: value for part, value in goal._asdict().items() if value}
        words = [f"{_WORDS[part]} {_asked(part, value)}: {_short(reached[part])}" for part, value in asked.items()]
        is_met = [_is_met(part, reached[part], value) for part, value in asked.items()]
        rows.append([str(name), str(size), str(len(runs)), "; ".join(words), "met" if all(is_met) else "**missed**"])
    return table_lines(["problem", "coreset rows", "seeds", "worst of all seeds", "goal"], rows)


_WORDS = {
    "kl": "KL",
    "seconds": "seconds",
    "mean_error": "mean error, sd",
    "sd_error": "sd error",
    "times_nuts": "times faster than NUTS",
}


def _asked(part: str, value: float) -> str:
    return f"{'at least' if part == 'times_nuts' else 'up to'} {value:g}"


def _is_met(part: str, reached: float, asked: float) -> bool:
    return reached >= asked if part == "times_nuts" else reached <= asked


def _contestants(frame: pd.DataFrame, problems: Mapping[str, Problem]) -> list[str]:
    head = ["problem", "coreset rows", "contestant", "seeds", "seconds", "peak GB", "KL", "k-hat", "mean error"]
    head += ["sd error", "smallest ESS", "reference draws", "note"]
    places = {name: place for place, name in enumerate([*problems, *CONTESTANTS])}
    order = frame["problem"].map(places), frame["rows"], frame["contestant"].map(places), frame["seed"]
    frame = frame.iloc[np.lexsort([np.asarray(part, float) for part in order[::-1]])]
    rows = []
    for (name, size, contestant), runs in frame.groupby(["problem", "rows", "contestant"], sort=False):
        middle = runs.median(numeric_only=True)
        parts = ["seconds", "peak_gigabytes", "kl", "pareto_k", "largest_mean_error", "largest_sd_error"]
        shown = [_short(middle.get(part, math.nan)) for part in [*parts, "smallest_ess", "reference_draws"]]
        if runs["kl"].notna().sum() > 1:
            shown[2] += f" ({_short(runs['kl'].min())} to {_short(runs['kl'].max())})"
        note = str(runs["note"].iloc[0]) if contestant == "nuts" or runs["seconds"].isna().any() else ""
        rows.append([str(name), str(size), str(contestant), str(len(runs)), *shown, note if note != "nan" else ""])
    return table_lines(head, rows)


def _short(value: Any) -> str:
    return "" if pd.isna(value) else f"{float(value):.2g}" if abs(float(value)) < 100 else f"{float(value):,.0f}"
