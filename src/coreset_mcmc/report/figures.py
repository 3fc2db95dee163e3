"""The figures of a report, small enough for a phone: each is at most 360 pixels wide and grows with the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coreset_mcmc.report import plots
from coreset_mcmc.report.parameters import HIGH, LOW, PROBABILITY, Parameters
from coreset_mcmc.report.plots import ACCENT, FAINT, INK
from coreset_mcmc.report.predictive_check import PredictiveCheck
from coreset_mcmc.report.svg import new_figure, to_svg
from coreset_mcmc.report.wording import clean, label, number
from coreset_mcmc.results.fit import Fit

WIDTH, HEIGHT = 360.0, 220.0
SMALL_WIDTH, SMALL_HEIGHT = 270.0, 130.0
ROW_HEIGHT, PANEL_HEIGHT = 17.0, 34.0
MOST_INTERVALS, MOST_PANELS = 60, 24
WIDEST_RATIO = 40.0
"""Intervals share an axis as long as the narrowest is at least this part of its length."""


@dataclass(frozen=True)
class Drawing:
    """A figure inside the page."""

    svg: str
    caption: str
    is_small: bool = False


def forest(parameters: Parameters) -> Drawing:
    """Median and intervals of parameters; those of very different scales have an axis of their own."""
    places = parameters.shown(MOST_INTERVALS)
    panels = _panels_of_like_scale(parameters, places)
    sizes = [len(panel) for panel in panels]
    figure = new_figure(WIDTH, ROW_HEIGHT * sum(sizes) + PANEL_HEIGHT * len(panels))
    ratios = [ROW_HEIGHT * size + PANEL_HEIGHT for size in sizes]
    grid = figure.subplots(len(panels), 1, squeeze=False, gridspec_kw={"height_ratios": ratios})[:, 0]
    for axes, panel in zip(grid, panels, strict=True):
        draws = np.stack([parameters.draws(place).ravel() for place in panel], axis=1)
        plots.intervals(draws, [parameters.name(place, 28) for place in panel], axes, probability=PROBABILITY)
        axes.set_ylim(-0.7, len(panel) - 0.3)
        axes.spines["left"].set_visible(False)
    return Drawing(
        to_svg(figure, name="forest", label=f"Intervals of {_names(parameters, places)}"),
        "Median (circle), 50 % interval (thick) and 89 % interval (thin) of each parameter."
        + (" Parameters of very different scale have axes of their own." if len(panels) > 1 else ""),
    )


def _panels_of_like_scale(parameters: Parameters, places: Sequence[int]) -> list[list[int]]:
    """Each parameter joins the first panel in which every interval stays wide enough to be seen."""
    panels: list[list[int]] = []
    lows, highs = (parameters.summary[name].to_numpy(dtype=float) for name in (LOW, HIGH))

    def is_readable(panel: list[int]) -> bool:
        widths = highs[panel] - lows[panel]
        narrowest = np.min(widths, where=widths > 0, initial=np.inf)
        return bool(np.max(highs[panel]) - np.min(lows[panel]) <= WIDEST_RATIO * narrowest)

    for place in places:
        joined = next((panel for panel in panels if is_readable([*panel, place])), None)
        if joined is None:
            panels.append([place])
        else:
            joined.append(place)
    return panels


def marginals(parameters: Parameters, places: Sequence[int]) -> list[Drawing]:
    """The posterior of each parameter by itself."""
    drawings = []
    for place in places:
        figure, axes = _small()
        plots.marginal(parameters.draws(place), axes, probability=PROBABILITY)
        axes.set_title(parameters.name(place, 34))
        svg = to_svg(figure, name=f"marginal-{place}", label=f"Posterior of {parameters.name(place)}")
        drawings.append(Drawing(svg, "", is_small=True))
    return drawings


def traces(parameters: Parameters, places: Sequence[int]) -> tuple[list[Drawing], int]:
    """Draws of each parameter in their order, and n if only each n-th is drawn."""
    drawings, stride = [], 1
    for place in places:
        figure, axes = _small()
        stride = plots.trace(parameters.draws(place), axes)
        axes.set_title(parameters.name(place, 34))
        svg = to_svg(figure, name=f"trace-{place}", label=f"Draws of {parameters.name(place)} of each chain")
        drawings.append(Drawing(svg, "", is_small=True))
    return drawings, stride


TRAINING_CAPTIONS = {
    "newton_decrement": "Distance to the most likely parameters during the search for them.",
    "kl_estimate": "Estimated distance (KL) between the posterior of the chosen rows and that of all rows while their "
    "weights were trained.",
    "weight_change": "How far each round of training moved the weights, as a share of their size.",
}


def training(fit: Fit) -> Drawing | None:
    """What training reported from step to step, if it is anything to be drawn."""
    series = plots.training_series(fit)
    if not series:
        return None
    figure, axes = _large()
    plots.training(fit, axes)
    caption = " ".join([*(TRAINING_CAPTIONS[name] for name in series), "Lower is better."])
    names = ", ".join(plots.TRAINING[name][0] for name in series)
    return Drawing(to_svg(figure, name="training", label=f"{names} against seconds of training"), caption)


def weights(fit: Fit) -> Drawing:
    """The weights from the largest to the smallest."""
    figure, axes = _large()
    plots.weights(fit, axes)
    axes.set_ylim(bottom=0.0)
    axes.set_xlim(left=0.0)
    text = f"Sorted weights of {fit.coreset.size} rows"
    return Drawing(to_svg(figure, name="weights", label=text), "Weights of the chosen rows, largest first.")


def predictive(check: PredictiveCheck) -> Drawing:
    """Observed and replicated data."""
    figure, axes = _large()
    (_calibration if check.kind == "binary" else _shares)(check, axes)
    axes.legend(frameon=False, fontsize=8)
    words = {
        "binary": "Observed share of ones (dots) in groups of rows with similar predicted probability, and what the "
        "model expects there (bars: 89 % of replicated data). Dots should lie within their bars.",
        "count": "Observed share of rows with each count, on a square-root scale, and what the model expects (bars: 89 "
        "% of replicated data). The last bar holds all larger counts.",
        "continuous": "Observed share of rows in bins of the response, and what the model expects (band: 89 % of "
        "replicated data). The outermost bins hold all values beyond.",
    }
    text = f"Observed and replicated values of {clean(check.name, 60)}"
    return Drawing(to_svg(figure, name="predictive", label=text), words[check.kind])


def _calibration(check: PredictiveCheck, axes: Any) -> None:
    low, middle, high = check.predicted
    top = 1.05 * max(float(high.max()), float(check.observed.max()), 1e-12)
    axes.plot([0.0, top], [0.0, top], color=FAINT, linewidth=1)
    axes.vlines(middle, low, high, color=INK, linewidth=3, label="expected")
    axes.plot(middle, check.observed, "o", color=ACCENT, label="observed")
    axes.set_xlabel("predicted share of ones")
    axes.set_ylabel("observed share of ones")


def _shares(check: PredictiveCheck, axes: Any) -> None:
    low, middle, high = check.predicted
    if check.kind == "count":
        centres = (check.edges[1:] + check.edges[:-1]) / 2.0
        axes.bar(centres, check.observed, width=0.8 * np.diff(check.edges), color=FAINT, label="observed")
        axes.vlines(centres, low, high, color=ACCENT, linewidth=2, label="expected")
        axes.plot(centres, middle, "o", color=ACCENT, markersize=3)
        axes.set_yscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0.0)), np.square))
    else:
        axes.stairs(high, check.edges, baseline=low, fill=True, color=FAINT, label="expected")
        axes.stairs(check.observed, check.edges, color=ACCENT, linewidth=1.5, label="observed")
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel(label(check.name, 40))
    axes.set_ylabel("share of rows")


def _small() -> tuple[Any, Any]:
    figure = new_figure(SMALL_WIDTH, SMALL_HEIGHT)
    return figure, figure.subplots()


def _large() -> tuple[Any, Any]:
    figure = new_figure(WIDTH, HEIGHT)
    return figure, figure.subplots()


def _names(parameters: Parameters, places: Sequence[int]) -> str:
    """A few of them by name, for who cannot see the figure."""
    few = ", ".join(parameters.name(place) for place in places[:8])
    rest = f" and {number(len(places) - 8)} more" if len(places) > 8 else ""
    return f"{few}{rest}; the table has the numbers"
