"""A fit on a coreset beside another library's NUTS on all rows: the row of the table, and its page."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import arviz_base
import arviz_stats
import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

import coreset_mcmc as cm
from coreset_mcmc_benchmarks.draws import Draws
from coreset_mcmc_benchmarks.markdown import table_lines
from coreset_mcmc_benchmarks.runs_table import RunsTable

KEYS = ("model", "rows", "coreset_size", "draws")
FIELDS = (
    *KEYS, "parameters", "relative_difference", "kl_estimate", "largest_shift", "largest_shift_in_errors",
    "smallest_deviation_ratio", "largest_deviation_ratio", "min_ess", "nuts_min_ess", "conversion_seconds",
    "fit_seconds", "nuts_seconds",
)  # fmt: skip


JITTER = 0.3
"""Standard deviation of the random positions around the start."""


class Effort(NamedTuple):
    """Rows of the data and of the coreset, and draws of NUTS in each of its two chains."""

    rows: int = 5_000
    coreset_size: int = 500
    draws: int = 1_000


QUICK = Effort(200, 40, 40)


class Job(NamedTuple):
    """One run."""

    model: str
    effort: Effort

    @property
    def key(self) -> tuple[str, ...]:
        """How the job is found in a table of strings."""
        return (self.model, *map(str, self.effort))

    def row(self, measured: Mapping[str, Any]) -> dict[str, Any]:
        """What the table gets."""
        return {"model": self.model, **self.effort._asdict(), **measured}


def interop_table(path: Path) -> RunsTable:
    """One row for each model."""
    return RunsTable(path, FIELDS, KEYS, digits=3)


def fitted(model: cm.Model, data: Any, effort: Effort) -> cm.Fit:
    """Ours, with four chains of twice as many draws."""
    return cm.fit(
        model, data, coreset_size=effort.coreset_size, draws=2 * effort.draws, tune=effort.draws, random_seed=0,
        progressbar=False,
    )  # fmt: skip


def random_positions(start: Any, count: int = 5) -> Iterator[Any]:
    """Positions around a start, so that no parameter stays at a special value."""
    rng = np.random.default_rng(0)
    for _ in range(count):
        yield jax.tree.map(lambda leaf: jnp.asarray(leaf + JITTER * rng.normal(size=np.shape(leaf))), start)


def largest_difference(ours: Callable[[Any], Any], theirs: Callable[[Any], Any], positions: Iterator[Any]) -> float:
    """Relative, of two log densities; NaN stays NaN."""
    return float(np.max([abs(float(ours(at)) / float(theirs(at)) - 1.0) for at in positions]))


def _summary(draws: Mapping[str, np.ndarray]) -> pd.DataFrame:
    summary: pd.DataFrame = arviz_stats.summary(arviz_base.from_dict({"posterior": dict(draws)}), round_to="none")
    return summary.astype(float)


def compared(ours: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Means and standard deviations of the same variables, with leading axes (chain, draw)."""
    mine, reference = _summary(ours), _summary({name: theirs[name] for name in ours})
    shift = (mine["mean"] - reference["mean"]).abs()
    errors = np.hypot(mine["mcse_mean"], reference["mcse_mean"])
    ratios = mine["sd"] / reference["sd"]
    return {
        "parameters": len(mine),
        "largest_shift": float((shift / reference["sd"]).max()),
        "largest_shift_in_errors": float((shift / errors).max()),
        "smallest_deviation_ratio": float(ratios.min()),
        "largest_deviation_ratio": float(ratios.max()),
        "min_ess": float(mine["ess_bulk"].min()),
        "nuts_min_ess": float(reference["ess_bulk"].min()),
    }


def timed(work: Callable[[], Any]) -> tuple[Any, float]:
    """What it returns, and the seconds that it takes."""
    began = time.perf_counter()
    made = work()
    return made, time.perf_counter() - began


class Seconds(NamedTuple):
    """Of the stages of a comparison."""

    conversion: float
    fit: float
    nuts: float


def row_of(fit: cm.Fit, draws: tuple[Draws, Draws], difference: float, seconds: Seconds) -> dict[str, Any]:
    """One row of the table, from our draws and theirs."""
    return {
        **compared(*draws),
        "relative_difference": difference,
        "kl_estimate": fit.kl_estimate,
        **{f"{stage}_seconds": taken for stage, taken in seconds._asdict().items()},
    }


def page_lines(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The table of the page; columns that nobody measured are left out."""

    def number(row: Mapping[str, str], name: str, form: str) -> str:
        return f"{float(row[name]):{form}}" if row[name] else ""

    headings = (
        "model", "rows", "M", "parameters", "totals differ by (relative)", "estimated KL", "largest shift (sd)",
        "(MC errors)", "sd ratio", "smallest ESS", "NUTS", "seconds: conversion", "fit", "NUTS",
    )  # fmt: skip
    cells = [
        [
            *(row[name] for name in ("model", "rows", "coreset_size", "parameters")),
            number(row, "relative_difference", ".1e"),
            number(row, "kl_estimate", ".2g"),
            number(row, "largest_shift", ".3f"),
            number(row, "largest_shift_in_errors", ".1f"),
            f"{number(row, 'smallest_deviation_ratio', '.2f')} to {number(row, 'largest_deviation_ratio', '.2f')}",
            *(number(row, name, ".0f") for name in ("min_ess", "nuts_min_ess")),
            *(number(row, name, ".0f") for name in ("conversion_seconds", "fit_seconds", "nuts_seconds")),
        ]
        for row in rows
    ]
    columns = [(heading, *values) for heading, *values in zip(headings, *cells, strict=True) if any(values)]
    chosen, *lines = zip(*columns, strict=True)
    return table_lines(chosen, lines)
