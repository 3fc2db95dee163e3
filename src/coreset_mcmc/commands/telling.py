"""What a run says in the terminal before its work and after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.markup import escape

from coreset_mcmc.commands.clock import Clock
from coreset_mcmc.commands.config import Config
from coreset_mcmc.commands.folder import INTERRUPTED, RunFolder
from coreset_mcmc.commands.paths import name_of
from coreset_mcmc.commands.summary import print_parameters, print_verdict
from coreset_mcmc.tables import Regression


def print_plan(console: Console, config: Config, model: Regression) -> None:
    """What is going to be done."""
    console.print(
        f"[bold]{escape(config.model.formula)}[/bold] ({model.family}), {model.num_rows:,} rows of "
        f"{escape(name_of(config.data.paths))}, seed {config.sampling.seed}"
    )
    priors = ", ".join(f"{name} ~ {prior}" for name, prior in list(model.priors.items())[:8])
    more = f" and {len(model.priors) - 8} more" if len(model.priors) > 8 else ""
    console.print(f"Priors: {escape(priors)}{more}")
    for note in model.notes:
        console.print(escape(note))


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
    print_verdict(console, summary["trust"])
    if summary["status"] == INTERRUPTED:
        console.print("[yellow]Interrupted:[/yellow] this is what the draws so far say.")
        print_way_on(console, folder)
    found = [path for path in (folder.report, folder.draws, folder.coreset, folder.summary_file) if path.exists()]
    console.print("Files: " + ", ".join(escape(str(path)) for path in found))


def print_way_on(console: Console, folder: RunFolder) -> None:
    """What a run that was stopped leaves to be done."""
    console.print(f"'coreset-mcmc resume {escape(str(folder.path))}' goes on.")
