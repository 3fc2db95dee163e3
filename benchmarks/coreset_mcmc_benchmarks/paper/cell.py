"""What the table of runs says of one cell: a method, a problem and, if it has one, a coreset size."""

from __future__ import annotations

import numpy as np
import pandas as pd

from coreset_mcmc_benchmarks.paper.diagnostics import METHODS

NOT_RUN = "not run"


def values_of(
    runs: pd.DataFrame, method: str, experiment: str, size: int | None = None, metric: str = "kl"
) -> np.ndarray:
    """One number for each run; failed runs and infinite values count as the worst, infinity."""
    mine = runs[(runs["method"] == method) & (runs["experiment"] == experiment)]
    if size is not None and METHODS[method].has_coreset:
        mine = mine[mine["coreset_size"] == size]
    values = mine[metric].to_numpy(dtype=float)
    return np.where(np.isfinite(values), values, np.inf)


def median_of(runs: pd.DataFrame, method: str, experiment: str, size: int | None = None, metric: str = "kl") -> float:
    """The median of the cell; NaN if nothing was run."""
    values = values_of(runs, method, experiment, size, metric)
    return float(np.median(values)) if len(values) else float("nan")


def number(value: float) -> str:
    """Three digits, and words for what is no number."""
    if np.isnan(value):
        return NOT_RUN
    return f"{value:.3g}" if np.isfinite(value) else "failed"


def in_words(values: np.ndarray) -> str:
    """Median, range and number of runs."""
    if not len(values):
        return NOT_RUN
    spread = f" ({number(values.min())} to {number(values.max())})" if len(values) > 1 else ""
    return f"{number(float(np.median(values)))}{spread}, {len(values)} run{'s' if len(values) > 1 else ''}"
