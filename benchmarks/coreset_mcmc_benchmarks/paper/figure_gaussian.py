"""Figure 1: the Gaussian location model, and each of its curves in a panel of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from coreset_mcmc_benchmarks.paper.gaussian import BETA, CORESET_SIZE, NUM_CHAINS, VARIANT_OF, Variant, floor, heuristic

PANELS = {
    "a": ("K varied, all rows", "num_chains", "K"),
    "b": ("K varied, S = 30", "num_chains", "K"),
    "c": ("M varied, S = 30", "coreset_size", "M"),
    "d": ("β varied, S = 30", "beta", "β"),
}
IN_FIGURE_1 = {"c": (2, 10, 20, 30, 40, 400), "d": (0.0, 0.2, 0.4, 0.6, 0.8, 0.9, 0.99)}
"""Of panels with many curves; the rest stand in the small multiples."""
SMALLEST_SHOWN = 1e-12
"""Below it the exact KL is rounding."""
SETS = {"affine": "{Σw = N}", "simplex": "{w ≥ 0, Σw = N}, as stated"}
COST = "cost (M + S) log K · t"


def figure_1(pyplot: Any, curves: pd.DataFrame) -> Any:
    """Four panels, once for each feasible set."""
    if curves.empty:
        return None
    figure, grid = pyplot.subplots(2, 4, figsize=(16, 9), layout="constrained", sharey="col", sharex="col")
    for row, (feasible_set, set_title) in enumerate(SETS.items()):
        for column, (panel, (title, attribute, symbol)) in enumerate(PANELS.items()):
            shown = IN_FIGURE_1.get(panel)
            variants = [
                one
                for one in _variants(curves, panel, feasible_set)
                if shown is None or getattr(one, attribute) in shown
            ]
            axes = grid[row, column]
            _several(pyplot, axes, curves, variants, attribute, symbol)
            axes.set_title(f"({panel}) {title}\n{set_title}")
            if row:
                axes.set_xlabel(COST)
                axes.legend(fontsize=8, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    for axes in grid[:, 0]:
        axes.set_ylabel("exact KL (nats)")
    return figure


def figure_1_rest(pyplot: Any, curves: pd.DataFrame) -> Any:
    """Every coreset size and every mixing rate, with both feasible sets."""
    names = [(panel, one) for panel in ("c", "d") for one in _variants(curves, panel, "affine")] if len(curves) else []
    if not names:
        return None
    num_rows = -(-len(names) // 5)
    figure, grid = pyplot.subplots(
        num_rows, 5, figsize=(15, 2.7 * num_rows), layout="constrained", sharex=True, sharey=True, squeeze=False
    )
    for axes, (panel, variant) in zip(grid.flat, names, strict=False):
        _, attribute, symbol = PANELS[panel]
        value = getattr(variant, attribute)
        others = [one for one in _variants(curves, panel, "simplex") if getattr(one, attribute) == value]
        for own, colour in ((variant, "#30638e"), *((other, "#d1495b") for other in others)):
            mine = curves[curves["variant"] == own.name]
            axes.loglog(
                mine["cost"], np.maximum(mine["kl"], SMALLEST_SHOWN), color=colour, label=SETS[own.feasible_set]
            )
            _floor(axes, own, colour)
        _heuristic(axes, curves, variant, "black", "heuristic")
        axes.set_title(f"{symbol} = {value:g}")
        axes.set_ylim(0.3, 1e5)
    for axes in list(grid.flat)[len(names) :]:
        axes.set_axis_off()
    figure.supxlabel(COST, fontsize=9)
    figure.supylabel("exact KL (nats)", fontsize=9)
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def _variants(curves: pd.DataFrame, panel: str, feasible_set: str) -> list[Variant]:
    """Those of a panel that were run."""
    run = set(curves["variant"])
    return [
        variant
        for name, variant in VARIANT_OF.items()
        if variant.panel == panel and variant.feasible_set == feasible_set and name in run
    ]


def _several(
    pyplot: Any, axes: Any, curves: pd.DataFrame, variants: list[Variant], attribute: str, symbol: str
) -> None:
    colours = pyplot.get_cmap("viridis")(np.linspace(0.0, 0.9, max(len(variants), 1)))
    for variant, colour in zip(variants, colours, strict=True):
        mine = curves[curves["variant"] == variant.name]
        label = f"{symbol} = {getattr(variant, attribute):g}"
        axes.loglog(mine["cost"], np.maximum(mine["kl"], SMALLEST_SHOWN), color=colour, label=label)
        _floor(axes, variant, colour)
    for variant, colour in zip(variants, colours, strict=True):
        is_base = (variant.num_chains, variant.coreset_size, variant.beta) == (NUM_CHAINS, CORESET_SIZE, BETA)
        is_largest = variant.coreset_size == max(other.coreset_size for other in variants) > CORESET_SIZE
        if is_base or is_largest:
            _heuristic(axes, curves, variant, "black" if is_base else colour, f"heuristic, M = {variant.coreset_size}")
    axes.set_ylim(bottom=SMALLEST_SHOWN if variants and variants[0].is_full else 1e-1)


def _floor(axes: Any, variant: Variant, colour: Any) -> None:
    """The smallest KL that any weights in the set have."""
    lowest = floor(variant.coreset_size, variant.feasible_set)
    if lowest > 0:
        axes.axhline(lowest, color=colour, linewidth=0.8, linestyle=":")


def _heuristic(axes: Any, curves: pd.DataFrame, variant: Variant, colour: Any, label: str) -> None:
    mine = curves[curves["variant"] == variant.name]
    expected = heuristic(variant, mine["iteration"].to_numpy())
    axes.loglog(
        mine["cost"],
        np.where(expected > SMALLEST_SHOWN, expected, np.nan),
        "--",
        color=colour,
        linewidth=1.2,
        label=label,
    )
