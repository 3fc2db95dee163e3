"""The paper's seven figures, drawn from the tables alone (extra ``bench``).

Curves show medians over repeats with the band from the first to the third quartile; box plots show all runs. Failed
runs and infinite values are left out of a band and counted in its legend. All vertical axes are logarithmic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from coreset_mcmc.report.plots import INK, import_pyplot
from coreset_mcmc_benchmarks.paper.authors import MEDIAN_KL
from coreset_mcmc_benchmarks.paper.gaussian import VARIANT_OF, Variant, floor, heuristic
from coreset_mcmc_benchmarks.paper.settings import CONTESTANTS
from coreset_mcmc_benchmarks.paper.table import read_curves, read_runs, runs_table

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
BOX_SIZE = 500
"""The coreset size of the box plots, as in the paper; the largest that was run if there is no such run."""


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


def _of(runs: pd.DataFrame, experiments: Sequence[str]) -> pd.DataFrame:
    return runs[runs["experiment"].isin(experiments)] if len(runs) else runs


def _finite(values: pd.Series) -> np.ndarray:
    numbers = values.to_numpy(dtype=float)
    return np.asarray(numbers[np.isfinite(numbers) & (numbers > 0)])


def _curve(axes: Axes, runs: pd.DataFrame, metric: str) -> None:
    """One metric against the coreset size, for every coreset method but those at their best: eight lines at most."""
    methods = [name for name, one in CONTESTANTS.items() if one.has_coreset and not one.best_of]
    _lines(axes, runs, metric, [name for name in methods if name != "uniform" or metric != "training_seconds"])


def _lines(axes: Axes, runs: pd.DataFrame, metric: str, methods: Sequence[str]) -> None:
    for method in methods:
        contestant, mine = CONTESTANTS[method], runs[runs["method"] == method]
        if mine.empty:
            continue
        groups = {
            float(size): _finite(mine[mine["coreset_size"] == size][metric]) for size in mine["coreset_size"].unique()
        }
        num_lost = len(mine) - sum(len(values) for values in groups.values())
        sizes = sorted(size for size, values in groups.items() if len(values))
        if not sizes:
            continue
        low, middle, high = np.transpose([np.quantile(groups[size], [0.25, 0.5, 0.75]) for size in sizes])
        label = contestant.title + (f" ({num_lost} failed)" if num_lost and metric == "kl" else "")
        width = 2.4 if method == "least-squares" else 1.6
        line = "o--" if contestant.best_of else "o-"
        axes.plot(sizes, middle, line, color=COLOURS[method], markersize=3.5, linewidth=width, label=label)
        axes.fill_between(sizes, low, high, color=COLOURS[method], alpha=0.15, linewidth=0)
    axes.set_xscale("log")
    axes.set_yscale("log")
    sizes_run = sorted(runs["coreset_size"].dropna().unique())
    axes.set_xticks(sizes_run, [f"{int(size)}" for size in sizes_run])
    axes.minorticks_off()


def _boxes(axes: Axes, runs: pd.DataFrame, metric: str) -> None:
    """One metric for every method, coreset methods at one size; a method keeps its place in all panels."""
    size = _box_size(runs)
    for place, (method, contestant) in enumerate(CONTESTANTS.items()):
        mine = runs[runs["method"] == method]
        values = _finite(mine[mine["coreset_size"] == size][metric] if contestant.has_coreset else mine[metric])
        if not len(values):
            continue
        colour = COLOURS[method]
        boxes = axes.boxplot(
            [values], positions=[place], orientation="horizontal", widths=0.6, patch_artist=True, showfliers=False
        )
        boxes["boxes"][0].set(facecolor=colour, alpha=0.35, edgecolor=colour)
        boxes["medians"][0].set(color=colour, linewidth=2)
        axes.plot(values, np.full(len(values), place), ".", color=colour, markersize=5)
    axes.set_yticks(range(len(CONTESTANTS)), [contestant.title for contestant in CONTESTANTS.values()])
    axes.set_ylim(len(CONTESTANTS) - 0.5, -0.5)
    axes.set_xscale("log")
    axes.grid(axis="x", color="#e6ebf0", linewidth=0.8)
    axes.set_axisbelow(True)


def _box_size(runs: pd.DataFrame) -> float:
    sizes = runs["coreset_size"].dropna()
    return BOX_SIZE if (sizes == BOX_SIZE).any() or sizes.empty else float(sizes.max())


def _grid(
    pyplot: Any,
    runs: pd.DataFrame,
    panels: Sequence[tuple[str, str]],
    shape: tuple[int, int],
    draw: Callable[[Any, pd.DataFrame, str], None],
    *,
    has_legend: bool,
    size: tuple[float, float],
) -> Any:
    """A grid of panels, each an experiment and a metric."""
    figure, grid = pyplot.subplots(*shape, figsize=size, layout="constrained", squeeze=False)
    for axes, (experiment, metric) in zip(grid.flat, panels, strict=False):
        draw(axes, _of(runs, [experiment]), metric)
        axes.set_title(f"{experiment}: {METRICS[metric]}")
        if has_legend:
            axes.set_xlabel("coreset size M")
        elif not axes.get_subplotspec().is_first_col():
            axes.tick_params(labelleft=False)
    for axes in list(grid.flat)[len(panels) :]:
        axes.set_axis_off()
    if has_legend:
        labelled: dict[str, Any] = {}
        for axes in grid.flat:
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                labelled.setdefault(label.partition(" (")[0] if label.endswith("failed)") else label, handle)
        figure.legend(labelled.values(), labelled.keys(), loc="outside lower center", ncols=4)
    return figure


def _figure_2(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
    del folder
    mine = _of(runs, REGRESSIONS)
    if mine.empty:
        return None
    panels = [(name, metric) for metric in ("kl", "training_seconds", "ess_per_second") for name in REGRESSIONS]
    return _grid(pyplot, mine, panels, (3, 3), _curve, has_legend=True, size=(12, 10))


PAIRED = ("quasi-newton", "sparse-hamiltonian-flow")


def _figure_2_best(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
    """Small multiples: each baseline as published and at its best, with the default of ``fit`` below them."""
    del folder
    mine = _of(runs, ALL_CASES)
    if mine.empty:
        return None
    figure, grid = pyplot.subplots(
        len(PAIRED), len(ALL_CASES), figsize=(14, 6.5), layout="constrained", sharex=True, squeeze=False
    )
    for row, method in zip(grid, PAIRED, strict=True):
        for axes, experiment in zip(row, ALL_CASES, strict=True):
            own = _of(mine, [experiment])
            if CONTESTANTS[method].needs_gradient and experiment == "sparse":
                axes.set_axis_off()
                continue
            _lines(axes, own, "kl", [method, f"{method}-best", "least-squares"])
            for (name, case, size), authors in MEDIAN_KL.items():
                if (name, case) == (method, experiment):
                    low, high = authors.smallest or authors.median, authors.largest or authors.median
                    error = [[authors.median - low], [high - authors.median]]
                    axes.errorbar([size], [authors.median], error, fmt="D", color=INK, markersize=5, label="authors")
            axes.set_title(f"{experiment}: {CONTESTANTS[method].title}")
        row[0].set_ylabel(METRICS["kl"])
    labelled: dict[str, Any] = {}
    for axes in grid.flat:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            labelled.setdefault(label.partition(" (")[0], handle)
    figure.legend(labelled.values(), labelled.keys(), loc="outside lower center", ncols=6)
    return figure


def _figure_3(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
    del folder
    mine = _of(runs, ["sparse"])
    if mine.empty:
        return None
    metrics = ("kl", "ess_per_second", "training_seconds", "js", "discrete_ess_per_second")
    return _grid(
        pyplot, mine, [("sparse", metric) for metric in metrics], (2, 3), _curve, has_legend=True, size=(12, 7)
    )


def _figure_4(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
    del folder
    mine = _of(runs, REGRESSIONS)
    if mine.empty:
        return None
    panels = [(name, metric) for metric in ("kl", "ess_per_second") for name in REGRESSIONS]
    return _grid(pyplot, mine, panels, (2, 3), _boxes, has_legend=False, size=(15, 11))


def _figure_5(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
    del folder
    mine = _of(runs, ["sparse"])
    if mine.empty:
        return None
    panels = [("sparse", metric) for metric in ("kl", "ess_per_second", "js", "discrete_ess_per_second")]
    return _grid(pyplot, mine, panels, (2, 2), _boxes, has_legend=False, size=(11, 10))


ERRORS = [(name, metric) for metric in ("mean_error", "covariance_error") for name in ALL_CASES]


def _figure_6(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
    del folder
    mine = _of(runs, ALL_CASES)
    return None if mine.empty else _grid(pyplot, mine, ERRORS, (2, 4), _curve, has_legend=True, size=(15, 7))


def _figure_7(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
    del folder
    mine = _of(runs, ALL_CASES)
    return None if mine.empty else _grid(pyplot, mine, ERRORS, (2, 4), _boxes, has_legend=False, size=(19, 11))


PANELS = {
    "a": ("K varied, all rows", "num_chains", "K"),
    "b": ("K varied, S = 30", "num_chains", "K"),
    "c": ("M varied, S = 30", "coreset_size", "M"),
    "d": ("β varied, S = 30", "beta", "β"),
}
SMALLEST_SHOWN = 1e-12
"""Below it the exact KL is rounding."""
SETS = {"affine": "{Σw = N}", "simplex": "{w ≥ 0, Σw = N}, as stated"}


def _figure_1(pyplot: Any, folder: Path, runs: pd.DataFrame) -> Any:
    del runs
    curves = read_curves(folder)
    if curves.empty:
        return None
    figure, grid = pyplot.subplots(2, 4, figsize=(16, 7.5), layout="constrained", sharey="col")
    for row, (feasible_set, set_title) in enumerate(SETS.items()):
        for column, (panel, (title, attribute, symbol)) in enumerate(PANELS.items()):
            variants = [
                variant
                for name, variant in VARIANT_OF.items()
                if variant.panel == panel and variant.feasible_set == feasible_set and (curves["variant"] == name).any()
            ]
            axes = grid[row, column]
            _gaussian_panel(pyplot, axes, curves, variants, attribute, symbol)
            axes.set_title(f"({panel}) {title}\n{set_title}")
            axes.set_xlabel("cost (M + S) log K · t")
    for axes in grid[:, 0]:
        axes.set_ylabel("exact KL (nats)")
    return figure


def _gaussian_panel(
    pyplot: Any, axes: Any, curves: pd.DataFrame, variants: list[Variant], attribute: str, symbol: str
) -> None:
    colours = pyplot.get_cmap("viridis")(np.linspace(0.0, 0.9, max(len(variants), 1)))
    for variant, colour in zip(variants, colours, strict=True):
        mine = curves[curves["variant"] == variant.name]
        label = f"{symbol} = {getattr(variant, attribute):g}"
        axes.loglog(mine["cost"], np.maximum(mine["kl"], SMALLEST_SHOWN), color=colour, label=label)
        lowest = floor(variant.coreset_size, variant.feasible_set)
        if lowest > 0:
            axes.axhline(lowest, color=colour, linewidth=0.8, linestyle=":")
    for variant, colour in zip(variants, colours, strict=True):
        is_base = variant.num_chains == 20 and variant.coreset_size == 30 and variant.beta == 0.8
        if is_base or variant.coreset_size == max(other.coreset_size for other in variants) > 30:
            mine = curves[curves["variant"] == variant.name]
            expected = np.maximum(heuristic(variant, mine["iteration"].to_numpy()), SMALLEST_SHOWN)
            label = f"heuristic, M = {variant.coreset_size}"
            axes.loglog(mine["cost"], expected, "--", color="black" if is_base else colour, linewidth=1.2, label=label)
    axes.set_ylim(bottom=SMALLEST_SHOWN if attribute == "num_chains" and variants[0].is_full else 1e-2)
    axes.legend(fontsize=7, loc="lower left")


FIGURES: dict[str, Callable[[Any, Path, pd.DataFrame], Any]] = {
    "figure-1": _figure_1,
    "figure-2": _figure_2,
    "figure-2-best": _figure_2_best,
    "figure-3": _figure_3,
    "figure-4": _figure_4,
    "figure-5": _figure_5,
    "figure-6": _figure_6,
    "figure-7": _figure_7,
}
