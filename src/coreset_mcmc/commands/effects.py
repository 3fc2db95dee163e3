"""``coreset-mcmc effects``: what columns do to the expected response on average, in the terminal and in the report."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coreset_mcmc.commands.folder import RunFolder, locked, writing
from coreset_mcmc.commands.reporting import draw_report, load_effects
from coreset_mcmc.commands.runs import opened_run
from coreset_mcmc.commands.terminal import announced
from coreset_mcmc.core.digits import beside
from coreset_mcmc.core.plain import strict_json
from coreset_mcmc.results.effects import Effect, num_passes
from coreset_mcmc.results.fit import Fit

REPORT_DRAWS, REPORT_POINTS = 50, 5
REPORT_EVALUATIONS = 200_000_000
"""Expected responses of single rows that the effects in the report of a fit may take."""


def effects_of_run(
    console: Console, path: Path, columns: Sequence[str], *, step: float, draws: int, interval: float | None
) -> list[Effect]:
    """Of these columns, all predictors by default; kept in the folder of the run, whose report shows them."""
    with opened_run(console, path) as run:
        probability = run.config.output.interval if interval is None else interval
        for column in columns:
            run.model.model.table.column(column)
        found = [
            run.fitted.effect(column, step=step, draws=draws, interval=probability, progressbar=True)
            for column in columns or run.model.parsed.predictors
        ]
        with locked(run.folder), writing(run.folder):
            save_effects(run.folder, [*load_effects(run.folder), *found])
            if run.folder.report.exists():
                with announced(console, "Drawing the report ..."):
                    draw_report(run.folder, run.summary)
    for effect in found:
        print_effect(console, effect)
    return found


def save_effects(folder: RunFolder, effects: Sequence[Effect]) -> None:
    """The last one of each column."""
    latest = {effect.column: effect.to_dict() for effect in effects}
    folder.write_text(folder.effects, strict_json(latest))


def effects_for_report(fitted: Fit, predictors: Sequence[str], interval: float) -> list[Effect]:
    """Of the first columns, as many as can be had in a few seconds."""
    found: list[Effect] = []
    left = REPORT_EVALUATIONS
    for column in predictors:
        what_if = fitted.model.table if fitted.model is not None else None
        if what_if is None:
            break
        levels = what_if.levels(column)
        passes = num_passes(what_if, column, REPORT_POINTS)
        left -= passes * REPORT_DRAWS * what_if.source.size
        if left >= 0 and (levels is None or 2 <= len(levels) <= 20):
            found.append(fitted.effect(column, draws=REPORT_DRAWS, interval=interval, points=REPORT_POINTS))
    return found


def print_effect(console: Console, effect: Effect) -> None:
    """Changes, and what the averages are."""
    probability = f"{100 * effect.interval:g}%"
    table = Table(
        title=f"{escape(effect.column)}: average change of {escape(effect.response)}, over {effect.num_rows:,} rows",
        title_justify="left",
    )
    table.add_column("change", overflow="fold")
    for heading in ("mean", f"{probability} from", "to"):
        table.add_column(heading, justify="right", no_wrap=True)
    for estimate in effect.changes:
        cells = (beside(value, estimate.sd) for value in (estimate.mean, estimate.lower, estimate.upper))
        table.add_row(escape(estimate.label), *cells)
    console.print(table)


def as_json(effects: Sequence[Effect]) -> str:
    """For programs."""
    return json.dumps([effect.to_dict() for effect in effects])
