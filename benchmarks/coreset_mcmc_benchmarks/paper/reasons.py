"""Why a number differs from the authors': the property of their code that was put back, and what that gave.

A reason counts only if it was measured. With the property put back a run must come within the factor of the authors'
number; if it goes at least half of the way, on a logarithmic scale, it explains a part. What neither does is open.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from coreset_mcmc_benchmarks.paper.cell import median_of, number, values_of

FACTOR = 3.0
"""A larger ratio asks for a reason."""
FEW_RUNS = 3
"""With fewer nothing is said of how runs spread."""
OPEN = "open"
OTHER_DATA = ("linear", "logistic")
"""Problems whose data are not the authors'."""


class PutBack(NamedTuple):
    """A property of the published code."""

    words: str
    method: str
    """The experiment that has it."""


LONG = PutBack("direction 1 000 times too long", "quasi-newton-long")
BACK = PutBack("chain sent back after each iteration", "quasi-newton-back")
BOTH = PutBack("direction too long and chain sent back", "quasi-newton-both")
FORCED = PutBack("decisions forced before all rows are seen", "confidence-mh-forced")
PUT_BACK: dict[str, tuple[PutBack, ...]] = {
    "quasi-newton": (LONG, BACK, BOTH),
    "confidence-mh": (FORCED,),
    "sgld-cv": (PutBack("chains begin at the model's start", "sgld-cv-start"),),
    "sghmc-cv": (PutBack("chains begin at the model's start", "sghmc-cv-start"),),
}
"""By contestant, each run by itself."""


class Difference(NamedTuple):
    """Whether a cell differs from the authors' number, and why."""

    is_far: bool
    reason: str
    """Empty if it does not differ or was not run."""
    is_spread: bool = False
    """Whether runs lie on both sides of the authors' number."""


def is_far(ours: float, theirs: float) -> bool:
    """Whether the ratio is beyond the factor."""
    return not 1.0 / FACTOR <= ours / theirs <= FACTOR


def difference(
    runs: pd.DataFrame, method: str, experiment: str, size: int | None, authors: float, *, is_mean: bool = False
) -> Difference:
    """What is to be said about a cell beside the authors' number, a median or a mean."""
    values = values_of(runs, method, experiment, size)
    if not len(values):
        return Difference(False, "")
    own = float(np.mean(values) if is_mean else np.median(values))
    if not is_far(own, authors):
        return Difference(False, "")
    told = _told_by_experiment(runs, method, experiment, size, own, authors)
    if told.startswith(("explained", "in part")):
        return Difference(True, told)
    if values.min() <= authors <= values.max():
        return Difference(
            True, f"our runs are on both sides of it: {number(values.min())} to {number(values.max())}", True
        )
    remarks = ["on other flights"] * (experiment in OTHER_DATA) + [f"{len(values)} run"] * (len(values) == 1)
    return Difference(True, "; ".join(filter(None, [", ".join([OPEN, *remarks]), told])))


def _told_by_experiment(
    runs: pd.DataFrame, method: str, experiment: str, size: int | None, own: float, authors: float
) -> str:
    """The property that comes nearest to the authors' number."""
    found = {one: median_of(runs, one.method, experiment, size) for one in PUT_BACK.get(method, ())}
    known = {one: value for one, value in found.items() if not np.isnan(value)}
    if not known:
        return "nothing has been put back yet" if found else ""
    nearest = min(known, key=lambda one: abs(np.log(known[one] / authors)))
    told = f"{nearest.words}, put back: {number(known[nearest])}"
    if not is_far(known[nearest], authors):
        return f"explained: {told}"
    way = np.log(known[nearest] / own) / np.log(authors / own) if np.isfinite([own, known[nearest]]).all() else 0.0
    return f"in part: {told}" if 0.5 <= way <= 1.5 else told
