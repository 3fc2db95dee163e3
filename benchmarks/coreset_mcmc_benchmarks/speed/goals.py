"""What the comparison is to show, and whether the table shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

IMPORT_SECONDS, COLD_SECONDS = 1.0, 4.5
TIMED_PROBLEMS = ("linear", "logistic")
RATIOS = {"linear": 20.0, "logistic": 30.0, "flights": 45.0, "simulated-1e6": 100.0}
"""Seconds of NumPyro NUTS to ten thousand effective draws, over ours, at least."""


class Goal(NamedTuple):
    """One line: a limit, and the medians that are held against it."""

    words: str
    limit: str
    found: str
    is_met: bool | None
    """None if a run is missing or failed."""


def goals(table: pd.DataFrame) -> list[Goal]:
    """Every goal, from the table of medians."""
    rows = {(row["problem"], row["contestant"]): row for _, row in table.iterrows()}

    def value(problem: str, contestant: str, name: str) -> float:
        row = rows.get((problem, contestant))
        return float("nan") if row is None else float(row[name])

    found = []
    for problem in TIMED_PROBLEMS:
        for words, name, limit in (
            ("seconds of `import coreset_mcmc`", "import_seconds", IMPORT_SECONDS),
            ("seconds of a cold start and all of `cm.fit`", "seconds", COLD_SECONDS),
        ):
            seconds = value(problem, "ours", name)
            found.append(_goal(f"{problem}: {words}", f"at most {limit:g}", f"{seconds:.2f}", limit - seconds))
    for problem, least in RATIOS.items():
        ratio = value(problem, "nuts", "seconds_to_effective") / value(problem, "ours", "seconds_to_effective")
        words = f"{problem}: *to 10 000* of NumPyro NUTS over ours"
        found.append(_goal(words, f"at least {least:g}", f"{ratio:.3g}", ratio - least))
    return [*found, *_memory(rows)]


def _memory(rows: dict[tuple[str, str], pd.Series]) -> Iterator[Goal]:
    """For every problem that both ran on."""
    for problem in dict.fromkeys(problem for problem, _ in rows):
        if (problem, "ours") in rows and (problem, "nuts") in rows:
            ours, nuts = (float(rows[problem, name]["peak_megabytes"]) for name in ("ours", "nuts"))
            words = f"{problem}: memory of ours at most that of NumPyro NUTS on the same rows, MB"
            yield _goal(words, f"at most {nuts:,.0f}", f"{ours:,.0f}", nuts - ours)


def _goal(words: str, limit: str, found: str, margin: float) -> Goal:
    is_known = bool(np.isfinite(margin))
    if not is_known:
        return Goal(words, "" if "nan" in limit else limit, "", None)
    return Goal(words, limit, found, margin >= 0)


def goals_section(table: pd.DataFrame) -> list[str]:
    """The goals as lines of the page."""
    lines = ["## Goals", "", "Medians over seeds.", "", "| goal | limit | measured | |", "|---|---|---|---|"]
    verdicts = {True: "met", False: "**missed**", None: "not measured"}
    cells = ((goal.words, goal.limit, goal.found, verdicts[goal.is_met]) for goal in goals(table))
    return [*lines, *(f"| {' | '.join(texts)} |" for texts in cells)]
