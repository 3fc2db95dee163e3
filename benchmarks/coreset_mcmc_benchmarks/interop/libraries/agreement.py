"""Whether two posteriors agree: means and standard deviations of every parameter, within Monte Carlo error.

A difference is measured in Monte Carlo errors of both runs together, and may besides be a tenth of a standard
deviation: a coreset whose KL is 0.05 nats, which is what ``cm.fit`` aims at, may be off by three times as much in one
parameter. Among the thousand comparisons of thirty models, four errors are exceeded by chance in one table of sixteen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

TOLERANCE = 0.1
"""In standard deviations of the posterior."""
ERRORS = 4.0
LARGEST_RHAT = 1.05
"""Above it chains disagree: ours are then wrong, and those of NUTS are no reference."""
Summary = Mapping[str, Mapping[str, float]]


def compared(ours: Summary, theirs: Summary) -> dict[str, Any]:
    """What the table says about two summaries of the same names."""
    names = sorted(set(ours) & set(theirs))
    if not names:
        return {"agrees": "no: no parameter in common", "compared": 0}
    mine, other = ({key: _column(side, names, key) for key in theirs[names[0]]} for side in (ours, theirs))
    sd = other["sd"]
    shift = np.abs(mine["mean"] - other["mean"])
    stretch = np.abs(mine["sd"] - sd)
    error = np.hypot(mine["mcse_mean"], other["mcse_mean"])
    error_sd = np.hypot(mine["mcse_sd"], other["mcse_sd"])
    within = (shift <= ERRORS * error + TOLERANCE * sd) & (stretch <= ERRORS * error_sd + TOLERANCE * sd)
    outside = names[int(np.argmax(np.where(within, -1.0, shift / error)))]
    return {
        "agrees": _in_words(bool(within.all()), outside, mine["r_hat"], other["r_hat"]),
        "compared": len(names),
        "largest_shift": float((shift / sd).max()),
        "largest_shift_in_errors": float((shift / error).max()),
        "smallest_deviation_ratio": float((mine["sd"] / sd).min()),
        "largest_deviation_ratio": float((mine["sd"] / sd).max()),
    }


def _in_words(is_within: bool, outside: str, ours: np.ndarray, theirs: np.ndarray) -> str:
    """Chains that disagree have such large errors that anything is within them."""
    if not bool(np.max(ours) <= LARGEST_RHAT):
        return "no: our chains disagree"
    if not bool(np.max(theirs) <= LARGEST_RHAT):
        return "unclear: chains of NUTS disagree"
    return "yes" if is_within else f"no: {outside}"


def _column(side: Summary, names: list[str], key: str) -> np.ndarray:
    return np.array([side[name][key] for name in names])


def mixing(summary: Summary) -> tuple[float, float]:
    """The smallest effective number of draws and the largest R-hat."""
    lines = list(summary.values())
    return min(line["ess_bulk"] for line in lines), max(line["r_hat"] for line in lines)
