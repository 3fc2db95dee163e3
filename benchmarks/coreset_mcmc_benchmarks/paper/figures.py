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


Draw = Callable[[Any, Path, pd.DataFrame], Any]
"""A figure from pyplot, the folder of the tables and the runs; None without data."""


def _gaussian(draw: Callable[[Any, pd.DataFrame], Any]) -> Draw:
    return lambda pyplot, folder, runs: draw(pyplot, read_curves(folder))


def _panels(
    experiments: Sequence[str],
    metrics: Sequence[str],
    shape: tuple[int, int],
    size: tuple[float, float],
    *,
    has_curves: bool,
) -> Draw:
    """A panel for each metric and experiment: curves over the coreset size, or boxes of methods beside each other."""
    panels = [(name, metric) for metric in metrics for name in experiments]
    is_continuous = list(experiments) != ["sparse"]
    methods = [name for name, one in CONTESTANTS.items() if is_continuous or not one.needs_gradient]
    fill = published_curves if has_curves else partial(boxes, methods=methods)

    def draw(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
        del folder
        mine = of_experiments(runs, experiments)
        if mine.empty:
            return None
        return panels_grid(pyplot, mine, panels, shape, fill, has_curves=has_curves, size=size)

    return draw


def _at_their_best(*metrics: str) -> Draw:
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


SPARSE_METRICS = ("kl", "ess_per_second", "training_seconds", "js", "discrete_ess_per_second")
ERRORS = ("mean_error", "covariance_error")

FIGURES: dict[str, Draw] = {
    "figure-1": _gaussian(figure_1),
    "figure-1-rest": _gaussian(figure_1_rest),
    "figure-2": _panels(REGRESSIONS, ("kl", "training_seconds", "ess_per_second"), (3, 3), (12, 10), has_curves=True),
    "figure-2-best": _at_their_best("kl"),
    "figure-3": _panels(["sparse"], SPARSE_METRICS, (2, 3), (12, 7), has_curves=True),
    "figure-4": _panels(REGRESSIONS, ("kl", "ess_per_second"), (2, 3), (15, 12), has_curves=False),
    "figure-5": _panels(
        ["sparse"], [one for one in SPARSE_METRICS if one != "training_seconds"], (2, 2), (11, 7), has_curves=False
    ),
    "figure-6": _panels(ALL_CASES, ERRORS, (2, 4), (15, 7), has_curves=True),
    "figure-6-best": _at_their_best(*ERRORS),
    "figure-7": _panels(ALL_CASES, ERRORS, (2, 4), (19, 12), has_curves=False),
}
