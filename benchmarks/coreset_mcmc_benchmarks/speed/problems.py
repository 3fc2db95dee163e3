"""The posteriors of the comparison: the paper's four, flights, simulated rows, and four that Laplace gets wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from coreset_mcmc import models
from coreset_mcmc.datasets import flight_cancellations
from coreset_mcmc.models.model import Model
from coreset_mcmc_benchmarks.draws import Draws
from coreset_mcmc_benchmarks.paper.cases import CASES
from coreset_mcmc_benchmarks.speed.ours import model_of
from coreset_mcmc_benchmarks.speed.peers import PEERS
from coreset_mcmc_benchmarks.speed.sizes import NUM_GROUPS, NUM_PLAYERS, Data
from coreset_mcmc_benchmarks.symmetries import first_factor_positive, sorted_by_mean, unchanged

DATA_SEED = 2_024
NUM_HARD_ROWS = 100_000
"""Rows of the problems that a Gaussian at the mode does not describe."""
QUICK_ROWS = 2_000


@dataclass(frozen=True)
class Problem:
    """A posterior and how its contestants are judged.

    Args:
        title: for tables.
        rows: N, for the estimate of the time.
        load: from the data folder and at most so many rows to the data.
        kind: the name of the model, ours and that of its peers.
        reference: where moments of the full posterior come from, see :mod:`coreset_mcmc_benchmarks.speed.moments`.
        fold: onto one of the symmetric copies of the posterior.
        case: the name of the paper's experiment, which has published settings.
        is_large: with dozens of parameters.
        most_repeats: seeds at most, where all runs are long.
    """

    title: str
    rows: int
    load: Callable[[Path | None, int | None], Data]
    kind: str
    reference: Literal["paper", "importance", "nuts", "factor", "estimate"]
    fold: Callable[[Draws], Draws] = unchanged
    case: str | None = None
    is_large: bool = False
    most_repeats: int | None = None

    def model(self, data: Data) -> Model:
        """Our model of the data."""
        model: Model = model_of(self.kind, data)
        return model

    @property
    def has_peer(self) -> bool:
        """Whether samplers of continuous parameters can run."""
        return self.kind in PEERS


def _paper(name: str) -> Callable[[Path | None, int | None], Data]:
    return lambda folder, max_rows: CASES[name](folder, max_rows).data


def _flights(folder: Path | None, max_rows: int | None) -> Data:
    """Every flight; all cancelled ones and evenly spread others if there shall be fewer."""
    del folder
    table = flight_cancellations()
    if max_rows is None:
        return {"x": table.x, "y": table.y}
    rows = np.linspace(0, len(table.y) - 1, max_rows).astype(int)
    return {"x": table.x[rows], "y": table.y[rows]}


def _simulated(num_rows: int, num_features: int = 10) -> Callable[[Path | None, int | None], Data]:
    """Standard normal features; coefficients whose squares add up to that of ten halves, however many there are."""

    def load(folder: Path | None, max_rows: int | None) -> Data:
        del folder
        rng = np.random.default_rng(DATA_SEED)
        beta = 0.5 * np.sqrt(10 / num_features) * rng.normal(size=num_features)
        count = min(num_rows, max_rows or num_rows)
        x = rng.normal(size=(count, num_features))
        return {"x": x, "y": (rng.random(count) < 1.0 / (1.0 + np.exp(1.0 - x @ beta))).astype(float)}

    return load


def _hard(make: Callable[..., Data], **options: Any) -> Callable[[Path | None, int | None], Data]:
    return lambda folder, max_rows: make(np.random.default_rng(DATA_SEED), max_rows or NUM_HARD_ROWS, **options)


PROBLEMS: dict[str, Problem] = {
    "poisson": Problem(
        "Bike-share counts, Poisson", 15_641, _paper("poisson"), "poisson", "paper", case="poisson"
    ),
    "linear": Problem("Departure delays, linear", 98_673, _paper("linear"), "linear", "paper", case="linear"),
    "logistic": Problem(
        "Cancellations, 0.06 % of flights, logistic", 98_673, _paper("logistic"), "logistic", "paper",
        case="logistic",
    ),
    "sparse": Problem(
        "Spike-and-slab regression", 50_000, _paper("sparse"), "sparse", "paper", case="sparse",
    ),
    "flights": Problem(
        "Cancellations of all flights, logistic", 297_924, _flights, "logistic", "importance",
    ),
    "mixture": Problem(
        "Two overlapping Gaussians", NUM_HARD_ROWS, _hard(models.gaussian_mixture_data), "mixture", "nuts",
        sorted_by_mean,
    ),
    "unidentified": Problem(
        "Product of two factors", NUM_HARD_ROWS, _hard(models.unidentified_regression_data), "unidentified",
        "factor", first_factor_positive,
    ),
    "hierarchical": Problem(
        "Logistic with effects of 50 groups", NUM_HARD_ROWS,
        _hard(models.hierarchical_logistic_regression_data, num_groups=NUM_GROUPS), "hierarchical", "nuts",
        is_large=True,
    ),
    "bradley-terry": Problem(
        "Bradley-Terry, 40 players", NUM_HARD_ROWS, _hard(models.bradley_terry_data, num_players=NUM_PLAYERS),
        "bradley-terry", "importance", is_large=True,
    ),
    "simulated-1e5": Problem(
        "Simulated logistic", 10**5, _simulated(10**5), "logistic", "importance"
    ),
    "simulated-1e6": Problem(
        "Simulated logistic", 10**6, _simulated(10**6), "logistic", "importance"
    ),
    "simulated-50": Problem(
        "Simulated logistic, 50 parameters", 10**6, _simulated(10**6, 49), "logistic", "importance",
        is_large=True,
    ),
    "simulated-1e7": Problem(
        "Simulated logistic", 10**7, _simulated(10**7), "logistic", "estimate", most_repeats=1
    ),
}  # fmt: skip
QUICK_PROBLEMS = ("simulated-1e5", "sparse")
"""What ``--quick`` runs, on few rows."""
