"""Which rows enter the coreset, and the weights they start with.

Rows are chosen once, before training (section 2 of the paper). Uniform selection draws without replacement and
starts from w = N/M. Stratified selection serves rare outcomes (appendix C.2): equal shares for each stratum, and all
of a stratum that has fewer rows than its share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from coreset_mcmc.core.errors import InputError, require, require_count
from coreset_mcmc.core.on_use import on_use
from coreset_mcmc.core.types import Batch

if TYPE_CHECKING:
    import pandas as pd
else:
    pd = on_use("pandas")


class SelectedRows(NamedTuple):
    """Row numbers (M,) and their weights (M,)."""

    indices: np.ndarray
    weights: np.ndarray
    term: Any = None
    """A :class:`~coreset_mcmc.posterior.gaussian_term.GaussianTerm` that goes with these weights, if there is one."""


class Selection(ABC):
    """A rule that picks ``coreset_size`` of ``size`` rows."""

    looks_at_rows: ClassVar[bool] = True
    """Whether it looks at the rows, which must be in memory then."""

    names_rows: ClassVar[bool] = False
    """Whether it names the rows, so that no number is needed and no others can be drawn."""

    @abstractmethod
    def select(self, generator: np.random.Generator, batch: Batch, size: int, coreset_size: int | None) -> SelectedRows:
        """Row numbers and initial weights."""


def _check_size(coreset_size: int | None, size: int) -> int:
    require_count("coreset_size", coreset_size, at_least=1, fix="Pass how many rows the coreset should have, e.g. 500.")
    assert coreset_size is not None
    require(
        coreset_size <= size,
        "coreset_size",
        got=coreset_size,
        expected=f"at most the {size} rows of the data",
        fix="Use a smaller coreset; with this few rows, sampling the full posterior is cheap anyway.",
    )
    return coreset_size


@dataclass(frozen=True)
class Uniform(Selection):
    """Uniformly without replacement, w = N/M."""

    looks_at_rows = False

    def select(self, generator: np.random.Generator, batch: Batch, size: int, coreset_size: int | None) -> SelectedRows:
        del batch
        count = _check_size(coreset_size, size)
        return SelectedRows(generator.choice(size, count, replace=False), np.full(count, size / count))


@dataclass(frozen=True, eq=False)
class Stratified(Selection):
    """Equal numbers from each stratum, or all of a stratum with fewer rows.

    Args:
        by: a key of the data, a function ``data -> labels``, or the labels (N,) themselves.
        weights: ``"stratum"`` starts each row at N_g / M_g, which makes the initial log-likelihood unbiased;
            ``"uniform"`` starts all at N/M, as the paper does.
    """

    by: str | Callable[[Batch], Any] | Sequence[Any] | np.ndarray
    weights: str = "stratum"

    def __post_init__(self) -> None:
        require(
            self.weights in ("stratum", "uniform"),
            "Stratified weights",
            got=repr(self.weights),
            expected='"stratum" or "uniform"',
            fix='Leave it out for "stratum".',
        )

    def select(self, generator: np.random.Generator, batch: Batch, size: int, coreset_size: int | None) -> SelectedRows:
        count = _check_size(coreset_size, size)
        labels = self._labels(batch, size)
        strata, membership = np.unique(labels, return_inverse=True)
        require(
            len(strata) <= count,
            "Stratified",
            got=f"{len(strata)} strata for {count} coreset rows",
            expected="at least one row for each stratum",
            fix="Use a larger coreset, or group rare strata together.",
        )
        sizes = np.bincount(membership)
        shares = equal_shares(sizes, count)
        chosen = [
            generator.choice(np.flatnonzero(membership == stratum), share, replace=False)
            for stratum, share in enumerate(shares)
        ]
        weights = np.full(count, size / count) if self.weights == "uniform" else np.repeat(sizes / shares, shares)
        return SelectedRows(np.concatenate(chosen), weights)

    def _labels(self, batch: Batch, size: int) -> np.ndarray:
        if isinstance(self.by, str):
            if not (isinstance(batch, dict) and self.by in batch):
                known = sorted(map(str, batch)) if isinstance(batch, dict) else type(batch).__name__
                raise InputError(
                    "Stratified by",
                    got=repr(self.by),
                    expected=f"a key of the data ({known})",
                    fix="Name a column, or pass the labels as an array.",
                )
            labels = batch[self.by]
        else:
            labels = self.by(batch) if callable(self.by) else self.by
        categories = getattr(getattr(labels, "cat", labels), "categories", None)
        values = np.asarray(labels)
        if categories is not None:
            empty = [str(name) for name in categories if name not in set(values.tolist())]
            require(
                not empty,
                "Stratified",
                got=f"empty strata {empty}",
                expected="at least one row in each stratum",
                fix="Drop unused categories, e.g. labels.cat.remove_unused_categories().",
            )
        require(
            values.shape == (size,),
            "Stratified labels",
            got=f"shape {values.shape}",
            expected=f"one label for each of the {size} rows",
            fix="Stratify by a column with one value per row.",
        )
        missing = np.asarray(pd.isna(values))
        require(
            not missing.any(),
            "Stratified labels",
            got=f"{missing.sum()} missing labels (first at row {int(np.argmax(missing))})",
            expected="a label for each row",
            fix="Drop those rows, or give them a label of their own.",
        )
        require(
            values.dtype != object or len(set(map(type, values))) == 1,
            "Stratified labels",
            got="labels of several types",
            expected="numbers only, or text only",
            fix="Turn all of them into text, e.g. labels.astype(str).",
        )
        return values


def equal_shares(sizes: np.ndarray, count: int) -> np.ndarray:
    """Split ``count`` over strata as equally as their sizes allow; the last (highest) labels get the odd rows."""
    shares = np.zeros(len(sizes), dtype=int)
    while (missing := count - shares.sum()) > 0:
        is_open = shares < sizes
        portion = missing // is_open.sum()
        if portion == 0:
            shares[np.flatnonzero(is_open)[-missing:]] += 1
        shares = np.minimum(shares + np.where(is_open, portion, 0), sizes)
    return shares


@dataclass(frozen=True, eq=False)
class Given(Selection):
    """Rows that the user names, with optional initial weights (default N/M)."""

    indices: Sequence[int] | np.ndarray
    weights: Sequence[float] | np.ndarray | None = None

    names_rows = True
    looks_at_rows = False

    def select(self, generator: np.random.Generator, batch: Batch, size: int, coreset_size: int | None) -> SelectedRows:
        del generator, batch
        indices = np.asarray(self.indices)
        require(
            indices.ndim == 1 and indices.size > 0 and np.issubdtype(indices.dtype, np.integer),
            "Given indices",
            got=f"shape {indices.shape}, dtype {indices.dtype}",
            expected="a list of whole numbers",
            fix="Pass row numbers; for a mask use numpy.flatnonzero(mask).",
        )
        require(
            coreset_size is None or coreset_size == indices.size,
            "coreset_size",
            got=coreset_size,
            expected=f"{indices.size}, the number of given rows",
            fix="Leave coreset_size out when the rows are given.",
        )
        require(
            indices.min() >= 0 and indices.max() < size,
            "Given indices",
            got=f"values from {indices.min()} to {indices.max()}",
            expected=f"row numbers from 0 to {size - 1}",
            fix="Indices count rows of the data passed to fit.",
        )
        require(
            len(np.unique(indices)) == indices.size,
            "Given indices",
            got=f"{indices.size - len(np.unique(indices))} repeated rows",
            expected="each row at most once",
            fix="Give a repeated row a larger weight instead.",
        )
        if self.weights is None:
            return SelectedRows(indices, np.full(indices.size, size / indices.size))
        given = np.asarray(self.weights)
        require(
            given.dtype == bool or np.issubdtype(given.dtype, np.number),
            "Given weights",
            got=f"dtype {given.dtype}",
            expected=f"{indices.size} finite numbers",
            fix="Pass one weight for each given row.",
        )
        weights = given.astype(float)
        require(
            weights.shape == indices.shape and bool(np.isfinite(weights).all()),
            "Given weights",
            got=f"shape {weights.shape}, finite: {bool(np.isfinite(weights).all())}",
            expected=f"{indices.size} finite numbers",
            fix="Pass one weight for each given row.",
        )
        return SelectedRows(indices, weights)
