"""The tables of a report: cells as text, ready for the template."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import metadata

import pandas as pd

from coreset_mcmc import __version__
from coreset_mcmc.driver.cost import Cost
from coreset_mcmc.report.content import Content
from coreset_mcmc.report.wording import NOTHING, clean, flattened, number, shown
from coreset_mcmc.results.coreset import ROW, WEIGHT
from coreset_mcmc.results.fit import Fit

MOST_ROWS, MOST_COLUMNS = 20, 12
STAGE_NAMES = {"pilot": "pilot run", "training": "training", "sampling": "sampling", "check": "final check"}
PACKAGES = ("jax", "numpy", "arviz-stats", "blackjax")


@dataclass(frozen=True)
class Cell:
    """One value; flagged if it is outside the usual limits."""

    text: str
    is_flagged: bool = False


@dataclass(frozen=True)
class Table:
    """Headings and rows; the first cell of each row names it. ``is_text`` says which columns are words."""

    caption: str
    headings: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    is_text: frozenset[int] = field(default=frozenset({0}))


def top_rows(content: Content) -> tuple[Table, int]:
    """The rows of largest weight with their values, and how many columns were left out."""
    frame = content.rows if content.rows is not None else content.fit.coreset.to_frame()
    frame = frame.sort_values(WEIGHT, ascending=False, kind="stable").iloc[:MOST_ROWS]
    others = [place for place, name in enumerate(frame.columns) if name not in (ROW, WEIGHT)]
    kept = others[:MOST_COLUMNS]
    total = float(content.fit.coreset.weights.sum())
    rows = [
        [
            Cell(str(int(frame[ROW].iloc[i]))),
            Cell(number(float(frame[WEIGHT].iloc[i]))),
            Cell(f"{100 * float(frame[WEIGHT].iloc[i]) / total:.1f} %" if total > 0 else NOTHING),
            *(Cell(_value(frame.iloc[i, place])) for place in kept),
        ]
        for i in range(len(frame))
    ]
    headings = ["row", "weight", "of all weight", *(clean(frame.columns[place], 60) for place in kept)]
    is_text = frozenset(
        3 + j for j, place in enumerate(kept) if not pd.api.types.is_numeric_dtype(frame.dtypes.iloc[place])
    )
    return Table("Rows of largest weight", headings, rows, is_text), len(others) - len(kept)


def _value(value: object) -> str:
    """A missing value, of whatever kind pandas has for it, is a dash."""
    return NOTHING if value is None or value is pd.NA or value is pd.NaT else shown(value)


def cost(fit: Fit) -> Table:
    """What each stage took, and all of them."""
    spent = {STAGE_NAMES[stage]: part for stage, part in fit.costs.items() if part.num_steps or part.num_evaluations}
    total = Cost(
        seconds=sum(part.seconds for part in spent.values()),
        compile_seconds=sum(part.compile_seconds for part in spent.values()),
        num_steps=sum(part.num_steps for part in spent.values()),
        num_evaluations=sum(part.num_evaluations for part in spent.values()),
        reason="",
    )
    num_rows = fit.coreset.num_rows if fit.has_coreset else None
    rows = [
        [
            Cell(name),
            Cell(f"{part.seconds:,.1f}"),
            Cell(f"{part.compile_seconds:,.1f}"),
            Cell(number(part.num_steps)),
            Cell(number(part.num_evaluations)),
            Cell(number(part.num_evaluations / num_rows if num_rows else None)),
            Cell(clean(part.reason)),
        ]
        for name, part in {**spent, "in all": total}.items()
    ]
    headings = ["stage", "seconds", "compiling", "steps", "log-likelihoods", "passes over all rows", "ended because"]
    return Table("Cost by stage", headings, rows, frozenset({0, 6}))


def settings(content: Content) -> Table:
    """The user's settings after those that the fit remembers."""
    both = {**content.fit.settings, "draws of": content.fit.law.value, **content.settings}
    rows = [[Cell(name), Cell(value)] for name, value in flattened(both)]
    return Table("Settings", ["setting", "value"], rows, frozenset({0, 1}))


def versions() -> Table:
    """Of what the numbers depend on."""
    found = {"coreset-mcmc": __version__, "Python": platform.python_version()}
    found |= {name: metadata.version(name) for name in PACKAGES}
    return Table("Versions", ["package", "version"], [[Cell(n), Cell(v)] for n, v in found.items()], frozenset({0, 1}))
