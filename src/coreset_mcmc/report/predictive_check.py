"""The data beside data that the fitted model makes: what it gets wrong shows as a difference.

For draws theta_s of the posterior and rows n, y_ns ~ p(y | x_n, theta_s) are S replicated data sets. Each is summarised
in the same few bins as the data, and the central 89 % of the S values of a bin is what the model expects there.

- A continuous response or a count: the share of rows whose response falls into each bin.
- A response of 0 and 1: rows are put into bins of about equal size by their predicted probability, and each bin shows
  the share of ones. The predicted probability is the mean of other replicated data sets than those that are shown:
  with the same ones for both, their noise would look like wrong calibration.

Only a sample of rows and draws is used, so that memory does not grow with the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from coreset_mcmc.core.errors import require, require_count
from coreset_mcmc.core.types import Batch
from coreset_mcmc.data import to_batch, to_rows
from coreset_mcmc.data.rows import Rows, TakeRows
from coreset_mcmc.data.source import Source
from coreset_mcmc.data.task import Task
from coreset_mcmc.models.with_data import observed_of
from coreset_mcmc.results.fit import Fit

Kind = Literal["continuous", "count", "binary"]
BAND = (0.055, 0.5, 0.945)
"""The median and an interval of 89 % of the replicated data."""
MOST_BINS, CALIBRATION_BINS = 30, 10
CALIBRATION_DRAWS = 400
"""Replicated data sets whose mean is the predicted probability of a row."""
TAIL = 0.005
"""Share of values at each end that the outermost bins collect."""


@dataclass(frozen=True)
class PredictiveCheck:
    """Observed and replicated data in bins."""

    kind: Kind
    name: str
    """Of the response."""
    edges: np.ndarray
    """(B + 1,) of the response; of the predicted probability if it is binary. Outermost bins hold what lies beyond."""
    observed: np.ndarray
    """(B,) shares of rows; of ones within each bin if the response is binary."""
    predicted: np.ndarray
    """(3, B): the same of the replicated data, lower end, median and upper end of the 89 % interval."""
    num_rows: int
    """Rows that were used."""
    num_data_rows: int
    num_draws: int
    """Replicated data sets."""

    @property
    def num_bins(self) -> int:
        return self.observed.size

    @property
    def num_outside(self) -> int:
        """Bins in which the data lie outside the interval."""
        return int(np.sum((self.observed < self.predicted[0]) | (self.observed > self.predicted[2])))


def predictive_check(
    fit: Fit,
    observed: Any = None,
    *,
    rows: int = 20_000,
    draws: int = 100,
    name: str | None = None,
    data: Any = None,
    seed: int = 0,
) -> PredictiveCheck:
    """Compare the response with replicated responses of a sample of rows.

    Args:
        fit: of a model that can make new responses.
        observed: the response (N,) of all rows, as numbers; by default what the model observes.
        rows: how many rows are used at most, chosen at random.
        draws: how many replicated data sets the intervals rest on.
        name: of the response in the model, if it has several.
        data: the rows that were fitted, if the fit does not hold them.
        seed: for the choice of rows and the new responses.
    """
    require_count("rows", rows, at_least=1, fix="20 000 rows show as much as a picture can.")
    require_count("draws", draws, at_least=10, fix="An interval of replicated data needs at least ten of them.")
    given = None if observed is None else _checked(observed)
    places, batch, num_data_rows = _sample(fit.own_rows if data is None else data, given, rows, seed)
    responses = {} if fit.model is None else observed_of(fit.model, batch)
    name = name or _only_name(fit, batch, list(responses))
    require(
        given is not None or name in responses,
        "observed response",
        got=f"none, and the model does not say which data {name!r} are",
        expected="the response of each row",
        fix="Pass it: predictive_check(fit, table['y']).",
    )
    chosen = given[places] if given is not None else _checked(responses[name])
    made = fit.predict(batch, draws=draws, quantiles=None, var_names=name, random_seed=seed)
    replicated = made["posterior_predictive"][name].to_numpy()[0].astype(float)
    require(
        replicated.ndim == 2,
        f"response {name!r}",
        got=f"{replicated.shape[2:]} values for each row",
        expected="one number for each row",
        fix="Check such responses with fit.predict.",
    )
    kind = _kind(chosen, replicated)
    if kind == "binary":
        means = fit.predict(batch, draws=CALIBRATION_DRAWS, quantiles=(), var_names=name, random_seed=seed + 1)
        edges, groups = _calibration_bins(means["posterior_predictive"][name].sel(statistic="mean").to_numpy())
        shares, predicted = _shares_of_ones(chosen[None], groups)[0], _shares_of_ones(replicated, groups)
    else:
        edges = (_whole_edges if kind == "count" else _even_edges)(chosen, replicated)
        shares = _shares_of_rows(chosen, edges)
        predicted = np.stack([_shares_of_rows(row, edges) for row in replicated])
    return PredictiveCheck(
        kind=kind,
        name=name,
        edges=edges,
        observed=shares,
        predicted=np.quantile(predicted, BAND, axis=0),
        num_rows=places.size,
        num_data_rows=num_data_rows,
        num_draws=len(predicted),
    )


def _checked(observed: Any) -> np.ndarray:
    values = np.asarray(observed)
    is_number = values.ndim == 1 and (values.dtype == bool or np.issubdtype(values.dtype, np.number))
    require(
        bool(is_number and np.all(np.isfinite(values))),
        "observed response",
        got=f"{values.dtype} of shape {values.shape}" + (", some not finite" if is_number else ""),
        expected="one finite number for each row",
        fix="Pass the response as the model sees it.",
    )
    return values.astype(float)


def _sample(data: Any, observed: np.ndarray | None, most: int, seed: int) -> tuple[np.ndarray, Any, int]:
    """Row numbers in order, those rows, and how many rows there are; other rows are not touched."""
    require(
        data is not None,
        "predictive check",
        got="no data",
        expected="the rows that were fitted",
        fix="Pass data=..., or read the fit with cm.load(path, model=..., data=...).",
    )
    is_elsewhere = isinstance(data, Rows | Source)
    rows = to_rows(data) if is_elsewhere else Rows.of_arrays(to_batch(data))
    size = rows.size
    require(
        observed is None or len(observed) == size,
        "observed response",
        got=f"{0 if observed is None else len(observed)} values",
        expected=f"one for each of the {size} rows",
        fix="Pass the response of the rows that were fitted, in their order.",
    )
    places = np.sort(np.random.default_rng(seed).choice(size, min(size, most), replace=False))
    return places, _rows_at(rows, places), size


def _rows_at(rows: Rows, places: np.ndarray) -> Batch:
    """Rows that lie all over the data, in one pass if they are not in memory."""
    if rows.source.whole() is not None:
        return rows.source.take(places)
    return rows.scan([Task(TakeRows(), (places,))], "rows to check")[0]


def _only_name(fit: Fit, batch: Any, responses: list[str]) -> str:
    """Of the response that the model observes, or else of all that it can make."""
    known = responses or [str(name) for name in fit.predict(batch, draws=1)["posterior_predictive"].data_vars]
    require(
        len(known) == 1,
        "response",
        got=f"the names {known}",
        expected="one response",
        fix="Say which one: predictive_check(..., name=...).",
    )
    return known[0]


def _kind(observed: np.ndarray, replicated: np.ndarray) -> Kind:
    """A model may make broken numbers of whole ones, so that both decide."""
    if not (np.all(observed == np.round(observed)) and np.all(replicated == np.round(replicated))):
        return "continuous"
    return "binary" if {*np.unique(observed), *np.unique(replicated)} <= {0.0, 1.0} else "count"


def _shares_of_rows(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    inner = edges[1:-1]
    return np.bincount(np.searchsorted(inner, values, side="right"), minlength=inner.size + 1) / values.size


def _calibration_bins(probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges, and the bin (rows,) of each row; about as many rows in each, as far as ties allow."""
    cuts = np.quantile(probabilities, np.linspace(0.0, 1.0, CALIBRATION_BINS + 1)[1:-1])
    inner = np.unique(cuts[cuts > probabilities.min()])
    return np.concatenate([[0.0], inner, [1.0]]), np.searchsorted(inner, probabilities, side="right")


def _shares_of_ones(values: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(S, B) from responses (S, rows); no bin is empty."""
    counts = np.bincount(places)
    return np.stack([np.bincount(places, weights=row, minlength=counts.size) / counts for row in values])


def _even_edges(observed: np.ndarray, replicated: np.ndarray) -> np.ndarray:
    ends = [np.quantile(values, [TAIL, 1.0 - TAIL]) for values in (observed, replicated)]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    return np.linspace(low, high, MOST_BINS + 1) if high > low else np.array([low - 0.5, low + 0.5])


def _whole_edges(observed: np.ndarray, replicated: np.ndarray) -> np.ndarray:
    """Halfway between whole numbers, several to a bin if there are many."""
    low = min(observed.min(), replicated.min())
    high = max(np.quantile(values, 1.0 - TAIL) for values in (observed, replicated))
    width = max(1.0, np.ceil((np.ceil(high) - low + 1.0) / MOST_BINS))
    count = int(np.ceil((np.ceil(high) - low + 1.0) / width))
    result: np.ndarray = low - 0.5 + width * np.arange(count + 1)
    return result
