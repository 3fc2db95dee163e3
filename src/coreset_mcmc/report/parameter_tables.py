"""The tables of parameters: one, or with many parameters one for each term, folded.

A browser's own search opens what is folded (``<details>``), so all are on the page and none of it needs a script.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coreset_mcmc.diagnostics.mixing import MAX_RHAT
from coreset_mcmc.report.parameters import HIGH, LOW, Parameters
from coreset_mcmc.report.tables import Cell, Table
from coreset_mcmc.report.wording import NOTHING, beside, label, number

MOST_UNFOLDED = 40
"""Parameters in one table."""
MOST_PARAMETERS = 5_000
"""On the page."""
HEADINGS = ("parameter", "mean", "sd", "89 % from", "to", "ESS", "R-hat")


@dataclass(frozen=True)
class Group:
    """The parameters of a term."""

    table: Table
    title: str = ""
    """Empty if there is nothing to fold."""
    hint: str = ""
    is_flagged: bool = False


def parameter_tables(parameters: Parameters) -> list[Group]:
    """All in one table if they are few; otherwise those of terms with several of them apart."""
    places = parameters.shown(MOST_PARAMETERS)
    if parameters.count <= MOST_UNFOLDED:
        return [Group(_table(parameters, places, "Parameters"))]
    by_term: dict[str, list[int]] = {}
    for place in places:
        by_term.setdefault(str(parameters.summary.index[place]).partition("[")[0], []).append(place)
    single = [place for own in by_term.values() if len(own) == 1 for place in own]
    groups = [Group(_table(parameters, single, "Parameters"))] if single else []
    return groups + [_folded(parameters, term, own) for term, own in by_term.items() if len(own) > 1]


def _folded(parameters: Parameters, term: str, places: Sequence[int]) -> Group:
    table = _table(parameters, places, label(term, 60))
    means = parameters.summary["mean"].to_numpy(dtype=float)[list(places)]
    hint = f"{number(len(places))} parameters, means from {number(float(means.min()))} to {number(float(means.max()))}"
    is_flagged = any(cell.is_flagged for row in table.rows for cell in row)
    return Group(table, label(term, 60), hint, is_flagged)


def _table(parameters: Parameters, places: Sequence[int], caption: str) -> Table:
    """ArviZ's summary; numbers of mixing beyond the limits are flagged."""
    return Table(caption, HEADINGS, [_row(parameters, place) for place in places])


def _row(parameters: Parameters, place: int) -> list[Cell]:
    row = parameters.summary.iloc[place]
    sd, ess, rhat = (float(row[name]) for name in ("sd", "ess_bulk", "r_hat"))
    return [
        Cell(parameters.name(place)),
        *(Cell(beside(float(row[name]), sd)) for name in ("mean", "sd", LOW, HIGH)),
        Cell(number(round(ess)) if np.isfinite(ess) else NOTHING, ess < parameters.least_ess),
        Cell(f"{rhat:.3f}" if np.isfinite(rhat) else NOTHING, rhat > MAX_RHAT),
    ]
