"""Seconds to ten thousand effective draws against the number of rows (extra ``bench``)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from coreset_mcmc.report.plots import INK, import_pyplot
from coreset_mcmc_benchmarks.speed.contestants import CONTESTANTS
from coreset_mcmc_benchmarks.speed.effort import EFFECTIVE_DRAWS
from coreset_mcmc_benchmarks.speed.page import GOOD_KL, GROWING, PICTURE, excess, summarised
from coreset_mcmc_benchmarks.speed.problems import PROBLEMS

COLOURS = {
    "ours": "#d1495b",
    "published": "#8d5b9a",
    "nuts": "#1b2a41",
    "blackjax": "#52796f",
    "nutpie": "#b5651d",
    "nutpie-jax": "#e09f5a",
    "pymc": "#6a4c2b",
    "hmcecs": "#30638e",
    "laplace": "#2a9d8f",
    "pathfinder": "#9aa5b1",
    "advi": "#edae49",
    "statsmodels": "#c5b4d6",
}
SIDEWAYS = 1.05
"""Problems of nearly as many rows are set apart by this factor."""


def _sideways(problem: str) -> float:
    """A little to the left of those that are joined, one problem after the other; alone, where it is."""

    def is_near(name: str) -> bool:
        return abs(PROBLEMS[name].rows / PROBLEMS[problem].rows - 1.0) < 0.1

    near = [name for name in PROBLEMS if name not in GROWING and is_near(name)]
    is_crowded = len(near) > 1 or any(is_near(name) for name in GROWING)
    return SIDEWAYS ** (near.index(problem) - len(near)) if problem in near and is_crowded else 1.0


def draw_picture(folder: Path) -> Path:
    """A point for each run; hollow where draws are further than a tenth of a nat from the posterior, or unjudged."""
    pyplot = import_pyplot()
    table = summarised(folder)
    table = table[np.isfinite(table["seconds_to_effective"].astype(float))]
    figure, axes = pyplot.subplots(figsize=(9.0, 5.0), layout="constrained")
    for name, contestant in CONTESTANTS.items():
        mine = table[table["contestant"] == name]
        if mine.empty:
            continue
        colour = COLOURS[name]
        is_good = mine.apply(excess, axis=1) <= GOOD_KL
        for rows, fill in ((mine[is_good], colour), (mine[~is_good], "white")):
            places = [count * _sideways(name) for count, name in zip(rows["rows"], rows["problem"], strict=True)]
            axes.scatter(places, rows["seconds_to_effective"], s=26, facecolors=fill, edgecolors=colour, zorder=3)
        joined = mine[mine["problem"].isin(GROWING)].sort_values("rows")
        axes.plot(joined["rows"], joined["seconds_to_effective"], color=colour, label=contestant.title, linewidth=1.6)
    axes.set(
        xscale="log", yscale="log", xlabel="rows", ylabel=f"seconds to {EFFECTIVE_DRAWS:,} effective draws, cold start"
    )
    axes.set_title(
        "Lines join the simulated logistic regressions; hollow: more than 0.1 nats off, or unknown",
        fontsize=9,
        loc="left",
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(colors=INK)
    figure.legend(frameon=False, fontsize=8, loc="outside right upper")
    path = folder / PICTURE
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return path
