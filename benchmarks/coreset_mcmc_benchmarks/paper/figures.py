"""The paper's seven figures from the tables alone (extra ``bench``), and small multiples of what they leave out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from coreset_mcmc.report.plots import INK, import_pyplot
from coreset_mcmc_benchmarks.paper.figure_gaussian import figure_1, figure_1_rest
from coreset_mcmc_benchmarks.paper.figure_parts import (
    ALL_CASES,
    METRICS,
    REGRESSIONS,
    authors_marks,
    boxes,
    common_legend,
    curves,
    of_experiments,
    panels_grid,
    published_curves,
)
from coreset_mcmc_benchmarks.paper.settings import CONTESTANTS
from coreset_mcmc_benchmarks.paper.table import read_curves, read_runs, runs_table

ERRORS = [(name, metric) for metric in ("mean_error", "covariance_error") for name in ALL_CASES]
PAIRED = ("quasi-newton", "sparse-hamiltonian-flow")
"""Coreset methods with a row at their best."""


def draw_figures(folder: Path) -> list[Path]:
    """Every figure that has data, as PNG files beside the tables."""
    pyplot = import_pyplot()
    style = {
        "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK,
        "axes.spines.top": False, "axes.spines.right": False, "axes.titlelocation": "left", "axes.titlesize": 10,
        "axes.titleweight": "bold", "font.size": 9, "legend.frameon": False, "lines.linewidth": 1.6,
    }  # fmt: skip
    runs = read_runs(folder) if runs_table(folder).path.exists() else pd.DataFrame()
    paths: list[Path] = []
    with pyplot.rc_context(style):
        for name, draw in FIGURES.items():
            figure = draw(pyplot, folder, runs)
            if figure is not None:
                path = folder / f"{name}.png"
                figure.savefig(path, dpi=130)
                pyplot.close(figure)
                paths.append(path)
    return paths


def _figure_1(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
    del runs
    return figure_1(pyplot, read_curves(folder))


def _figure_1_rest(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
    del runs
    return figure_1_rest(pyplot, read_curves(folder))


def _figure_2(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
    del folder
    mine = of_experiments(runs, REGRESSIONS)
    panels = [(name, metric) for metric in ("kl", "training_seconds", "ess_per_second") for name in REGRESSIONS]
    return _curves(pyplot, mine, panels, (3, 3), (12, 10))


def _figure_3(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
    del folder
    metrics = ("kl", "ess_per_second", "training_seconds", "js", "discrete_ess_per_second")
    return _curves(
        pyplot, of_experiments(runs, ["sparse"]), [("sparse", metric) for metric in metrics], (2, 3), (12, 7)
    )


def _figure_4(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
    del folder
    panels = [(name, metric) for metric in ("kl", "ess_per_second") for name in REGRESSIONS]
    return _boxes(pyplot, of_experiments(runs, REGRESSIONS), panels, (2, 3), (15, 12))


def _figure_5(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
    del folder
    panels = [("sparse", metric) for metric in ("kl", "ess_per_second", "js", "discrete_ess_per_second")]
    return _boxes(pyplot, of_experiments(runs, ["sparse"]), panels, (2, 2), (11, 7))


def _figure_6(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
    del folder
    return _curves(pyplot, of_experiments(runs, ALL_CASES), ERRORS, (2, 4), (15, 7))


def _figure_7(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
    del folder
    return _boxes(pyplot, of_experiments(runs, ALL_CASES), ERRORS, (2, 4), (19, 12))


def _curves(
    pyplot: Any,
    runs: pd.DataFrame,
    panels: Sequence[tuple[str, str]],
    shape: tuple[int, int],
    size: tuple[float, float],
) -> Any:
    if runs.empty:
        return None
    return panels_grid(pyplot, runs, panels, shape, published_curves, has_curves=True, size=size)


def _boxes(
    pyplot: Any,
    runs: pd.DataFrame,
    panels: Sequence[tuple[str, str]],
    shape: tuple[int, int],
    size: tuple[float, float],
) -> Any:
    if runs.empty:
        return None
    is_continuous = set(runs["experiment"]) != {"sparse"}
    methods = [name for name, one in CONTESTANTS.items() if is_continuous or not one.needs_gradient]
    draw = partial(boxes, methods=methods)
    return panels_grid(pyplot, runs, panels, shape, draw, has_curves=False, size=size)


def _at_their_best(*metrics: str) -> Callable[[Any, Path, pd.DataFrame], Any]:
    """Small multiples: each coreset method as published and at its best, with the default of ``fit`` below them."""

    def draw(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
        del folder
        mine = of_experiments(runs, ALL_CASES)
        if mine.empty:
            return None
        rows = [(method, metric) for method in PAIRED for metric in metrics]
        figure, grid = pyplot.subplots(
            len(rows), len(ALL_CASES), figsize=(14, 3.2 * len(rows)), layout="constrained", squeeze=False
        )
        for row, (method, metric) in zip(grid, rows, strict=True):
            for column, experiment in enumerate(ALL_CASES):
                axes = row[column]
                if CONTESTANTS[method].needs_gradient and experiment == "sparse":
                    axes.set_axis_off()
                    continue
                if method != PAIRED[0]:
                    axes.sharey(grid[metrics.index(metric), column])
                names = [method, f"{method}-best", "least-squares"]
                curves(axes, of_experiments(mine, [experiment]), metric, names)
                if metric == "kl":
                    authors_marks(axes, method, experiment)
                axes.set_title(f"{experiment}: {CONTESTANTS[method].title}")
                axes.set_xlabel("coreset size M")
            row[0].set_ylabel(METRICS[metric])
        common_legend(figure, grid)
        return figure

    return draw


FIGURES: dict[str, Callable[[Any, Path, pd.DataFrame], Any]] = {
    "figure-1": _figure_1,
    "figure-1-rest": _figure_1_rest,
    "figure-2": _figure_2,
    "figure-2-best": _at_their_best("kl"),
    "figure-3": _figure_3,
    "figure-4": _figure_4,
    "figure-5": _figure_5,
    "figure-6": _figure_6,
    "figure-6-best": _at_their_best("mean_error", "covariance_error"),
    "figure-7": _figure_7,
}
