"""Sums over the values that leave-one-out gives each row, part after part, and the values themselves if asked for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from coreset_mcmc.core.on_use import on_use

if TYPE_CHECKING:
    import xarray
else:
    xarray = on_use("xarray")


class Totals:
    """What has been added up so far.

    Args:
        size: how many rows there will be.
        good_k: k-hat above which the value of a row is unreliable.
        keeps_rows: whether the values of all rows are kept.
    """

    def __init__(self, size: int, good_k: float, *, keeps_rows: bool) -> None:
        self.size, self.good_k = size, good_k
        self.elpd = self.lppd = self.squares = 0.0
        """``squares`` is the sum of squared distances of each row's elpd from their mean."""
        self.num_rows = self.num_bad = 0
        self._rows = {name: np.empty(size) for name in ("elpd", "pareto_k")} if keeps_rows else {}

    def add(self, elpd: np.ndarray, lppd: np.ndarray, pareto_k: np.ndarray) -> dict[str, np.ndarray]:
        """The rows that come next; returns their columns."""
        before, count = self.num_rows, len(elpd)
        with np.errstate(invalid="ignore"):
            gap = elpd.mean() - self.elpd / max(before, 1)
            self.squares += float(np.sum((elpd - elpd.mean()) ** 2) + gap**2 * before * count / (before + count))
        self.elpd += float(elpd.sum())
        self.lppd += float(lppd.sum())
        self.num_bad += int(np.sum(~(pareto_k <= self.good_k)))
        self.num_rows += count
        for name, values in (("elpd", elpd), ("pareto_k", pareto_k)):
            if self._rows:
                self._rows[name][before : self.num_rows] = values
        return {"elpd_i": elpd, "pareto_k": pareto_k}

    @property
    def standard_error(self) -> float:
        """Of the sum: N times the variance over rows is the sum of their squared distances from the mean."""
        return math.sqrt(self.squares)

    def of_rows(self, name: Literal["elpd", "pareto_k"]) -> xarray.DataArray | None:
        """The values of all rows, if they were kept."""
        return xarray.DataArray(self._rows[name], dims="row") if self._rows else None
