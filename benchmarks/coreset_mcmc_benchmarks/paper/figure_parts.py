"""What the figures of the regressions are made of: curves over the coreset size, and boxes of all methods.

As published is drawn full, at its best and with the mode found hollow and dashed. Failed runs and infinite values are
left out of a band and counted in its legend. All axes of metrics are logarithmic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from coreset_mcmc.report.plots import INK
from coreset_mcmc_benchmarks.paper.authors import MEDIAN_KL
from coreset_mcmc_benchmarks.paper.settings import CONTESTANTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {
    "coreset-mcmc": "#d1495b",
    "coreset-mcmc-s": "#edae49",
    "coreset-mcmc-s-published": "#a68a64",
    "coreset-mcmc-hot-dog": "#8d5b9a",
    "least-squares": "#1b2a41",
    "quasi-newton": "#30638e",
    "sparse-hamiltonian-flow": "#2a9d8f",
    "uniform": "#9aa5b1",
    "austerity-mh": "#7a9e5f",
    "confidence-mh": "#4f7942",
    "sgld-cv": "#c77dba",
    "sghmc-cv": "#8f3985",
}
COLOURS |= {name: COLOURS[one.best_of] for name, one in CONTESTANTS.items() if one.best_of}
COLOURS |= {"sgld-cv-mode": COLOURS["sgld-cv"], "sghmc-cv-mode": COLOURS["sghmc-cv"]}
METRICS = {
    "kl": "two-moment KL (nats)",
    "training_seconds": "training time (s)",
    "ess_per_second": "min ESS / s",
    "discrete_ess_per_second": "ESS / s, discrete",
    "js": "Jensen-Shannon (nats)",
    "mean_error": "relative error of the mean",
    "covariance_error": "relative error of the covariance",
}
REGRESSIONS = ("linear", "logistic", "poisson")
ALL_CASES = (*REGRESSIONS, "sparse")
SIZES = (10, 20, 50, 100, 200, 500)
BOX_SIZE = 500
"""The coreset size of the box plots, as in the paper; the largest that was run if there is no such run."""
LARGEST_SHOWN = 1e8
"""Beyond it a curve is cut off, with an arrow."""
FEWEST_FOR_A_BOX = 3
Panel = tuple[str, str]
"""An experiment and a metric."""


def of_experiments(runs: pd.DataFrame, experiments: Sequence[str]) -> pd.DataFrame:
    """The rows of these experiments."""
    return runs[runs["experiment"].isin(experiments)] if len(runs) else runs


def is_hollow(method: str) -> bool:
    """Whether the row is not the published one."""
    return CONTESTANTS[method].is_extra


def _finite(values: pd.Series) -> np.ndarray:
    numbers = values.to_numpy(dtype=float)
    return np.asarray(numbers[np.isfinite(numbers) & (numbers > 0)])


def published_curves(axes: Axes, runs: pd.DataFrame, metric: str) -> None:
    """One metric against the coreset size, for every coreset method but those at their best: eight lines at most."""
    methods = [name for name, one in CONTESTANTS.items() if one.has_coreset and not one.is_extra]
    curves(axes, runs, metric, [name for name in methods if name != "uniform" or metric != "training_seconds"])


def curves(axes: Axes, runs: pd.DataFrame, metric: str, methods: Sequence[str]) -> None:
    """Medians with the band from the first to the third quartile."""
    for method in methods:
        mine = runs[runs["method"] == method]
        run_at = [float(size) for size in mine["coreset_size"].dropna().unique()]
        groups = {size: _finite(mine[mine["coreset_size"] == size][metric]) for size in run_at}
        sizes = sorted(size for size, values in groups.items() if len(values))
        if sizes:
            quartiles = np.transpose([np.quantile(groups[size], [0.25, 0.5, 0.75]) for size in sizes])
            num_lost = len(mine) - sum(len(values) for values in groups.values())
            label = CONTESTANTS[method].title + (f" ({num_lost} failed)" if num_lost and metric == "kl" else "")
            _curve(axes, method, np.asarray(sizes), np.minimum(quartiles, LARGEST_SHOWN), label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(8.5, 590)
    axes.set_xticks(SIZES, [f"{size}" for size in SIZES])
    axes.minorticks_off()


def _curve(axes: Axes, method: str, sizes: np.ndarray, quartiles: np.ndarray, label: str) -> None:
    low, middle, high = quartiles
    axes.plot(
        sizes,
        middle,
        "o--" if is_hollow(method) else "o-",
        color=COLOURS[method],
        markersize=5.5 if is_hollow(method) else 4,
        markerfacecolor="white" if is_hollow(method) else COLOURS[method],
        linewidth=2.4 if method == "least-squares" else 1.6,
        label=label,
    )
    axes.fill_between(sizes, low, high, color=COLOURS[method], alpha=0.12, linewidth=0)
    is_beyond = middle >= LARGEST_SHOWN
    axes.plot(sizes[is_beyond], middle[is_beyond], "^", color=COLOURS[method], markersize=9)


def authors_marks(axes: Axes, method: str, experiment: str) -> None:
    """The authors' medians and ranges."""
    for (name, case, size), authors in MEDIAN_KL.items():
        if (name, case) == (method, experiment) and size is not None:
            low, high = authors.smallest or authors.median, authors.largest or authors.median
            beside = 0.9 * size
            axes.plot([beside, beside], [low, high], color=INK, linewidth=1.2, zorder=3)
            axes.plot(
                [beside],
                [authors.median],
                "D",
                color=INK,
                markerfacecolor="white",
                markersize=5,
                label="authors",
                zorder=4,
            )


def boxes(axes: Axes, runs: pd.DataFrame, metric: str, methods: Sequence[str]) -> None:
    """One metric for these methods, coreset methods at one size; a method keeps its place in all panels."""
    size = _box_size(runs)
    experiments = list(dict.fromkeys(runs["experiment"]))
    for place, method in enumerate(methods):
        contestant = CONTESTANTS[method]
        if _is_shaded(method, methods):
            axes.axhspan(place - 0.5, place + 0.5, color="#f3f6f9", linewidth=0)
        if metric == "kl" and len(experiments) == 1:
            authors = MEDIAN_KL.get((method, experiments[0], BOX_SIZE if contestant.has_coreset else None))
            if authors:
                axes.plot(
                    [authors.median], [place], "D", color=INK, markerfacecolor="none", zorder=4, label="authors' median"
                )
        mine = runs[runs["method"] == method]
        values = _finite(mine[mine["coreset_size"] == size][metric] if contestant.has_coreset else mine[metric])
        if len(values):
            _box(axes, place, method, values)
    axes.set_yticks(range(len(methods)), [CONTESTANTS[method].title for method in methods])
    axes.set_ylim(len(methods) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.grid(axis="x", color="#e6ebf0", linewidth=0.8)
    axes.set_axisbelow(True)


def _box(axes: Axes, place: int, method: str, values: np.ndarray) -> None:
    colour = COLOURS[method]
    face = "white" if is_hollow(method) else colour
    if len(values) >= FEWEST_FOR_A_BOX:
        drawn = axes.boxplot(
            [values], positions=[place], orientation="horizontal", widths=0.6, patch_artist=True, showfliers=False
        )
        drawn["boxes"][0].set(facecolor=face, alpha=0.9 if is_hollow(method) else 0.35, edgecolor=colour)
        drawn["medians"][0].set(color=colour, linewidth=2)
    axes.plot(values, np.full(len(values), place), "o", color=colour, markerfacecolor=face, markersize=4.5, zorder=3)


def _is_shaded(method: str, methods: Sequence[str]) -> bool:
    """Every second family of rows."""
    families = list(dict.fromkeys(_family(name) for name in methods))
    return families.index(_family(method)) % 2 == 1


def _family(method: str) -> str:
    return CONTESTANTS[method].best_of or method.removesuffix("-mode")


def _box_size(runs: pd.DataFrame) -> float:
    sizes = runs["coreset_size"].dropna()
    return BOX_SIZE if (sizes == BOX_SIZE).any() or sizes.empty else float(sizes.max())


def panels_grid(
    pyplot: Any,
    runs: pd.DataFrame,
    panels: Sequence[Panel],
    shape: tuple[int, int],
    draw: Callable[[Any, pd.DataFrame, str], None],
    *,
    has_curves: bool,
    size: tuple[float, float],
) -> Any:
    """A grid of panels."""
    figure, grid = pyplot.subplots(*shape, figsize=size, layout="constrained", squeeze=False)
    for axes, (experiment, metric) in zip(grid.flat, panels, strict=False):
        draw(axes, of_experiments(runs, [experiment]), metric)
        axes.set_title(f"{experiment}: {METRICS[metric]}")
        if has_curves:
            axes.set_xlabel("coreset size M")
        elif not axes.get_subplotspec().is_first_col():
            axes.tick_params(labelleft=False)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_axis_off()
    common_legend(figure, grid)
    return figure


def common_legend(figure: Any, grid: np.ndarray) -> None:
    """One legend for all panels, below them."""
    labelled: dict[str, Any] = {}
    for axes in grid.flat:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            labelled.setdefault(label.partition(" (")[0] if label.endswith("failed)") else label, handle)
    if labelled:
        figure.legend(labelled.values(), labelled.keys(), loc="outside lower center", ncols=4)
