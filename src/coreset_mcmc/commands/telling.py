"""What a run says in the terminal before its work and after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from coreset_mcmc.commands.budget import AUTO
from coreset_mcmc.commands.clock import Clock
from coreset_mcmc.commands.config import Config
from coreset_mcmc.commands.folder import INTERRUPTED, RunFolder
from coreset_mcmc.commands.paths import name_of
from coreset_mcmc.commands.summary import print_parameters, print_verdict, print_words
from coreset_mcmc.methods.registry import METHODS
from coreset_mcmc.methods.sizes import advice_for_few_rows, hardly_pays
from coreset_mcmc.tables import Regression

MOST_PRIORS = 30
"""Shown in the terminal, each in a line."""


def print_plan(console: Console, config: Config, model: Regression) -> None:
    """What is going to be done."""
    console.print(
        f"[bold]{escape(config.model.formula)}[/bold] ({model.family}), {model.num_rows:,} rows of "
        f"{escape(name_of(config.data.paths))}, seed {config.sampling.seed}"
    )
    console.print("Priors:")
    for name, prior in list(model.priors.items())[:MOST_PRIORS]:
        console.print(f"  {escape(name)} ~ {escape(prior)}", highlight=False)
    if len(model.priors) > MOST_PRIORS:
        console.print(f"  and {len(model.priors) - MOST_PRIORS} more, in summary.json")
    for note in [*model.notes, *_about_size(config, model)]:
        console.print(escape(note))


def _about_size(config: Config, model: Regression) -> list[str]:
    method = METHODS[config.coreset.method]()
    if not method.uses_coreset_rows or config.coreset.size == AUTO:
        return []
    start: Any = model.model.initial_position
    size = config.coreset.size or min(method.default_rows(model.model, start), model.num_rows)
    instead = "--method laplace and --method nuts"
    return [advice_for_few_rows(int(size), model.num_rows, instead)] if hardly_pays(int(size), model.num_rows) else []


def print_result(console: Console, folder: RunFolder, summary: Mapping[str, Any], clock: Clock) -> None:
    """The result, and where it is."""
    print_parameters(console, summary)
    for note in summary["warnings"]:
        console.print(f"[yellow]Note:[/yellow] {escape(note)}")
    coreset = summary["coreset"]
    work = ""
    if coreset is not None:
        console.print(f"Coreset: {coreset['size']:,} of {coreset['num_rows']:,} rows.")
        work = f"{summary['cost']['passes_over_all_rows']:,.0f} passes over all rows, "
    console.print(f"Work: {work}{clock.in_words()}.")
    if work:
        print_words(console, "pass")
    print_verdict(console, summary["trust"])
    if summary["status"] == INTERRUPTED:
        console.print("[yellow]Interrupted:[/yellow] this is what the draws so far say.")
        print_way_on(console, folder)
    found = [path for path in (folder.report, folder.draws, folder.coreset, folder.summary_file) if path.exists()]
    console.print("Files: " + ", ".join(escape(str(path)) for path in found))


def print_way_on(console: Console, folder: RunFolder) -> None:
    """What a run that was stopped leaves to be done."""
    console.print(f"'coreset-mcmc resume {escape(str(folder.path))}' goes on.")
