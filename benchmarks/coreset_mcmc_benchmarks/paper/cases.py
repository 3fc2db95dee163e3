"""The paper's regression experiments (section 4, appendix C): model, data, start, kernel and selection of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coreset_mcmc import models
from coreset_mcmc.data.selection import Selection, Stratified, Uniform
from coreset_mcmc.datasets import RegressionData, bike_share_counts, paper_cancellations, paper_delays
from coreset_mcmc.kernels import HitAndRunSlice, SpikeAndSlabGibbs, UnivariateSlice
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.models.model import Model, SpikeAndSlab

NUM_SPARSE_ROWS = 50_000
SPARSE_SEED = 0


@dataclass(frozen=True)
class Case:
    """One experiment, ready to fit."""

    name: str
    model: Model
    data: dict[str, np.ndarray]
    start: Any
    """Where the published chains begin."""
    kernel: Kernel
    selection: Selection
    """Which rows enter a trained coreset; the Unif baseline always selects uniformly."""

    @property
    def size(self) -> int:
        return len(self.data["y"])

    @property
    def is_discrete(self) -> bool:
        return isinstance(self.model.structure, SpikeAndSlab)


def _columns(table: RegressionData, max_rows: int | None) -> dict[str, np.ndarray]:
    """Features and response; with ``max_rows`` evenly spread rows and, of a rare outcome, all of them."""
    x, y = table.x, table.y
    if max_rows is None or len(y) <= max_rows:
        return {"x": x, "y": y}
    rows = np.linspace(0, len(y) - 1, max_rows).astype(int)
    is_rare = set(np.unique(y)) == {0.0, 1.0}
    rows = np.union1d(rows, np.flatnonzero(y == 1.0)) if is_rare else rows
    return {"x": x[rows], "y": y[rows]}


def linear(data: dict[str, np.ndarray]) -> Case:
    """Departure delays: coefficients and log sigma^2 with standard normal priors."""
    num_features = data["x"].shape[1]
    start = {"beta": np.zeros(num_features + 1), "log_variance": np.asarray(10.0)}
    return Case("linear", models.linear_regression(num_features), data, start, HitAndRunSlice(), Uniform())


def logistic(data: dict[str, np.ndarray]) -> Case:
    """Cancellations: Cauchy priors; half of the coreset is cancelled flights as far as there are so many."""
    num_features = data["x"].shape[1]
    start = {"beta": np.zeros(num_features + 1)}
    selection = Stratified(by="y", weights="uniform")
    return Case("logistic", models.logistic_regression(num_features), data, start, HitAndRunSlice(), selection)


def poisson(data: dict[str, np.ndarray]) -> Case:
    """Bike-share counts: softplus rate, standard normal priors, a start far from the posterior."""
    num_features = data["x"].shape[1]
    start = {"beta": np.zeros(num_features + 1)}
    return Case("poisson", models.poisson_regression(num_features), data, start, UnivariateSlice(), Uniform())


def sparse(data: dict[str, np.ndarray]) -> Case:
    """Synthetic spike-and-slab regression; chains start at the least-squares solution of all rows."""
    start = models.least_squares_start(data)
    return Case("sparse", models.sparse_regression(10), data, start, SpikeAndSlabGibbs(), Uniform())


CASE_OF: dict[str, Callable[[dict[str, np.ndarray]], Case]] = {
    "linear": linear,
    "logistic": logistic,
    "poisson": poisson,
    "sparse": sparse,
}
"""From data to the experiment."""


def _sparse_data(max_rows: int | None) -> dict[str, np.ndarray]:
    return models.sparse_regression_data(np.random.default_rng(SPARSE_SEED), max_rows or NUM_SPARSE_ROWS)


CASES: dict[str, Callable[[Path | None, int | None], Case]] = {
    "linear": lambda folder, max_rows: linear(_columns(paper_delays(folder), max_rows)),
    "logistic": lambda folder, max_rows: logistic(_columns(paper_cancellations(folder), max_rows)),
    "poisson": lambda folder, max_rows: poisson(_columns(bike_share_counts(folder), max_rows)),
    "sparse": lambda folder, max_rows: sparse(_sparse_data(max_rows)),
}
"""From the data folder and at most so many rows to the experiment."""
