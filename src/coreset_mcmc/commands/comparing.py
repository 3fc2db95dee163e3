"""``coreset-mcmc compare``: what runs agree on, parameter by parameter, and what they were told differently."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coreset_mcmc.commands.folder import RunFolder
from coreset_mcmc.commands.summary import COLOURS, digits, shown
from coreset_mcmc.core.errors import require
from coreset_mcmc.core.plain import number, plain

IGNORED = ("made_with",)
"""Settings that say nothing about the model."""


def compare(console: Console, paths: Sequence[Path]) -> dict[str, Any]:
    """Print the comparison and return it as plain values."""
    require(len(paths) >= 2, "compare", got=f"{len(paths)} run", expected="two or more", fix="Name their folders.")
    summaries = {str(path): _summary(path) for path in paths}
    require(
        len(summaries) == len(paths), "compare", got="a run twice", expected="different runs", fix="Name each once."
    )
    result = comparison(summaries)
    for text in result["notes"]:
        console.print(f"[yellow]Note:[/yellow] {escape(text)}")
    _print_runs(console, summaries)
    _print_settings(console, result["settings"])
    _print_parameters(console, summaries, result)
    return result


def _summary(path: Path) -> dict[str, Any]:
    folder = RunFolder(path)
    folder.config()
    summary = folder.summary()
    require(
        summary is not None,
        str(path),
        got="a run without a result",
        expected="a finished or interrupted run",
        fix=f"coreset-mcmc resume {path} goes on with it.",
    )
    assert summary is not None
    return summary


def comparison(summaries: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Different settings, and for each parameter the largest shift of its mean in standard deviations."""
    flat = {name: _flattened(summary["settings"]) for name, summary in summaries.items()}
    keys = list(dict.fromkeys(key for settings in flat.values() for key in settings))
    different = {key: {name: settings.get(key) for name, settings in flat.items()} for key in keys}
    settings = {key: values for key, values in different.items() if len({str(item) for item in values.values()}) > 1}
    tables = {name: summary["parameters"] for name, summary in summaries.items()}
    names = list(dict.fromkeys(parameter for table in tables.values() for parameter in table))
    shifts = {
        parameter: _shift([table[parameter] for table in tables.values() if parameter in table]) for parameter in names
    }
    result: dict[str, Any] = plain({"settings": settings, "shifts": shifts, "notes": _notes(summaries)})
    return result


def _notes(summaries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Why numbers of these runs may not be comparable."""
    kinds = {
        "responses": {name: _response(summary) for name, summary in summaries.items()},
        "families": {name: summary["settings"]["model"]["family"] for name, summary in summaries.items()},
    }
    return [
        f"The runs have different {kind}: {', '.join(f'{value} in {name}' for name, value in found.items())}. "
        "Parameters of the same name are not the same quantity, and their shifts mean nothing."
        for kind, found in kinds.items()
        if len(set(found.values())) > 1
    ]


def _response(summary: Mapping[str, Any]) -> str:
    return str(summary["settings"]["model"]["formula"]).partition("~")[0].strip()


def _shift(rows: list[Mapping[str, Any]]) -> float:
    """Between the two means that are furthest apart, in the smallest of the standard deviations."""
    if len(rows) < 2:
        return math.nan
    means, spreads = ([number(row[name]) for row in rows] for name in ("mean", "sd"))
    if any(math.isnan(value) for value in (*means, *spreads)):
        return math.nan
    distance, spread = max(means) - min(means), min(spreads)
    return distance / spread if spread else math.inf if distance else 0.0


def _flattened(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if prefix == "" and key in IGNORED:
            continue
        if isinstance(value, Mapping):
            flat |= _flattened(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _print_runs(console: Console, summaries: Mapping[str, Mapping[str, Any]]) -> None:
    table = Table(title="Runs", title_justify="left")
    for heading in ("run", "verdict", "estimated KL", "coreset", "rows", "smallest ESS", "seconds"):
        table.add_column(heading, justify="left" if heading in ("run", "verdict") else "right", overflow="fold")
    for name, summary in summaries.items():
        verdict = summary["verdict"] or "not checked"
        colour = COLOURS.get(verdict, "white")
        coreset = summary["coreset"] or {}
        ess = [number(row["ess_bulk"]) for row in summary["parameters"].values() if row.get("ess_bulk") is not None]
        table.add_row(
            escape(name),
            f"[{colour}]{verdict}[/{colour}]",
            shown(summary["kl_estimate"], ".2g"),
            f"{coreset['size']:,}" if coreset else "",
            f"{coreset['num_rows']:,}" if coreset else "",
            f"{min(ess):,.0f}" if ess else "",
            f"{summary['cost']['total_seconds']:.0f}",
        )
    console.print(table)


def _print_settings(console: Console, settings: Mapping[str, Mapping[str, Any]]) -> None:
    if not settings:
        console.print("All runs have the same settings.")
        return
    table = Table(title="Settings that differ", title_justify="left")
    table.add_column("setting", overflow="fold")
    for name in next(iter(settings.values())):
        table.add_column(escape(name), overflow="fold")
    for key, values in settings.items():
        table.add_row(escape(key), *(escape("" if value is None else json.dumps(value)) for value in values.values()))
    console.print(table)


def _print_parameters(console: Console, summaries: Mapping[str, Mapping[str, Any]], result: Mapping[str, Any]) -> None:
    table = Table(title="Mean (sd) of each parameter", title_justify="left")
    table.add_column("parameter", overflow="fold")
    for name in summaries:
        table.add_column(escape(name), justify="right", overflow="fold")
    table.add_column("largest shift (sd)", justify="right")
    for parameter, shift in result["shifts"].items():
        rows = [summary["parameters"].get(parameter) for summary in summaries.values()]
        cells = [f"{digits(row['mean'], row['sd'])} ({digits(row['sd'], row['sd'])})" if row else "" for row in rows]
        table.add_row(escape(parameter), *cells, shown(shift, ".2f"))
    console.print(table)
    console.print("A shift below about 0.3 of a standard deviation rarely changes a conclusion.")
