"""Average effects of columns on a page: a picture and a table for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coreset_mcmc.report.figures import WIDTH, Drawing
from coreset_mcmc.report.plots import ACCENT, FAINT, INK
from coreset_mcmc.report.svg import new_figure, to_svg
from coreset_mcmc.report.tables import Cell, Table
from coreset_mcmc.report.wording import beside, clean, label, number
from coreset_mcmc.results.effects import Effect

LEVEL_HEIGHT, CURVE_HEIGHT, MARGIN = 20.0, 190.0, 46.0


@dataclass(frozen=True)
class ShownEffect:
    """One column."""

    title: str
    drawing: Drawing
    table: Table


def shown_effects(effects: Sequence[Effect]) -> list[ShownEffect]:
    """In the order in which they were found."""
    return [_shown(effect, place) for place, effect in enumerate(effects)]


def _shown(effect: Effect, place: int) -> ShownEffect:
    column, response = label(effect.column, 40), label(effect.response, 40)
    probability = f"{100 * effect.interval:g} %"
    is_curve = effect.kind == "number" and len(effect.averages) == len(effect.values)
    height = CURVE_HEIGHT if is_curve else MARGIN + LEVEL_HEIGHT * len(effect.averages)
    figure = new_figure(WIDTH, height)
    axes = figure.subplots()
    (_curve if is_curve else _levels)(effect, axes)
    (axes.set_xlabel if is_curve else axes.set_ylabel)(column)
    (axes.set_ylabel if is_curve else axes.set_xlabel)(f"average {response}")
    text = f"Average expected {clean(effect.response, 60)} by {clean(effect.column, 60)}; the table has the changes"
    caption = (
        f"Average expected {response} over {number(effect.num_rows)} rows with {column} at one value in all of them, "
        f"and its {probability} interval ({number(effect.num_draws)} draws)."
    )
    rows = [
        [
            Cell(label(item.label, 60)),
            *(Cell(beside(value, item.sd)) for value in (item.mean, item.sd, item.lower, item.upper)),
        ]
        for item in effect.changes
    ]
    headings = ["change", "mean", "sd", f"{probability} from", "to"]
    drawing = Drawing(to_svg(figure, name=f"effect-{place}", label=text), caption)
    return ShownEffect(column, drawing, Table(f"Change of {response} by {column}", headings, rows))


def _curve(effect: Effect, axes: Any) -> None:
    low, middle, high = (
        np.array([getattr(item, name) for item in effect.averages]) for name in ("lower", "mean", "upper")
    )
    axes.fill_between(effect.values, low, high, color=FAINT, linewidth=0)
    axes.plot(effect.values, middle, color=ACCENT)


def _levels(effect: Effect, axes: Any) -> None:
    places = np.arange(len(effect.averages))[::-1]
    axes.hlines(places, [item.lower for item in effect.averages], [item.upper for item in effect.averages], color=INK)
    axes.plot([item.mean for item in effect.averages], places, "o", color=ACCENT)
    axes.set_yticks(places, [label(item.label, 24) for item in effect.averages])
    axes.set_ylim(-0.7, len(places) - 0.3)
