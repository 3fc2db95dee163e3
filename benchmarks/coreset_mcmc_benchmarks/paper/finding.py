"""What a finding of the paper is: a claim, the rule by which it is judged, and what explains a difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from coreset_mcmc_benchmarks.paper.authors import MEDIAN_KL
from coreset_mcmc_benchmarks.paper.cell import median_of, number, values_of
from coreset_mcmc_benchmarks.paper.reasons import PUT_BACK

CONTINUOUS = ("linear", "logistic", "poisson")
PROBLEMS = (*CONTINUOUS, "sparse")
SIZES = (10, 20, 50, 100, 200, 500)
LARGE, SMALL = 500, 50
ALL_ROWS, PUBLISHED_MINIBATCHES, MINIBATCHES = "coreset-mcmc", "coreset-mcmc-s-published", "coreset-mcmc-s"
SUBSAMPLING = ("austerity-mh", "confidence-mh", "sgld-cv", "sghmc-cv")
MOST = 0.75
"""What "nearly everywhere" and "generally" ask for."""


class Tables(NamedTuple):
    """What was measured."""

    runs: pd.DataFrame
    curves: pd.DataFrame

    def median(self, method: str, experiment: str, size: int | None = LARGE, metric: str = "kl") -> float:
        return median_of(self.runs, method, experiment, size, metric)

    def cells(self, *methods: str) -> list[tuple[str, int]]:
        """Problems and sizes at which all of these were run."""
        return [
            (name, size)
            for name in PROBLEMS
            for size in SIZES
            if all(len(values_of(self.runs, method, name, size)) for method in methods)
        ]

    def beside(self, names: Iterable[str], methods: Sequence[str], metric: str = "kl") -> str:
        """Medians at M = 500, problem by problem."""
        return ", ".join(
            f"{name} " + " and ".join(number(self.median(method, name, LARGE, metric)) for method in methods)
            for name in names
        )

    def ratios(self, names: Iterable[str], one: str, other: str, metric: str = "kl") -> list[float]:
        """Of medians at M = 500, where both were run."""
        found = [self.median(one, name, LARGE, metric) / self.median(other, name, LARGE, metric) for name in names]
        return [ratio for ratio in found if not np.isnan(ratio)]


class Judged(NamedTuple):
    """The numbers, and whether they bear the finding out; None if not enough was run."""

    numbers: str
    agrees: bool | None


class Finding(NamedTuple):
    """A sentence of the paper."""

    claim: str
    rule: str
    judge: Callable[[Tables], Judged]
    reason: Callable[[Tables], str] = lambda tables: ""
    """What was measured about a difference; it may tell more where there is none."""


def put_back(tables: Tables, method: str, names: Sequence[str], size: int | None) -> str:
    """What published properties give, beside the authors' number; empty if none was run."""
    told = []
    for words, other in PUT_BACK[method]:
        found = {name: tables.median(other, name, size) for name in names}
        listed = [
            f"{name} {number(value)} (the authors: {MEDIAN_KL[method, name, size].median:.3g})"
            for name, value in found.items()
            if not np.isnan(value)
        ]
        told += [f"{words}: {', '.join(listed)}"] * bool(listed)
    return f"put back, {'; '.join(told)}" if told else ""
