"""``coreset-mcmc check``: the verdict on a run that was made without one, or another one with other settings."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coreset_mcmc.commands.checking import judged_run
from coreset_mcmc.commands.config import write_config
from coreset_mcmc.commands.folder import locked, writing
from coreset_mcmc.commands.reporting import draw_report
from coreset_mcmc.commands.runs import opened_run
from coreset_mcmc.commands.summary import COLOURS, print_verdict, shown, to_json
from coreset_mcmc.commands.terminal import announced
from coreset_mcmc.core.errors import require_count


def check_run(
    console: Console, path: Path, *, draws: int | None, coresets: int | None, sensitivity: bool | None, seed: int | None
) -> dict[str, Any]:
    """Judge the draws of a run; its summary, configuration and report say so from then on."""
    if seed is not None:
        require_count("--seed", seed, at_least=0, fix="Pass a whole number, or leave it out.")
    with opened_run(console, path) as run:
        asked = run.config.changed("trust", check=True, draws=draws, coresets=coresets, sensitivity=sensitivity)
        asked.check()
        folder, summary = run.folder, dict(run.summary)
        with locked(folder), writing(folder):
            judged = judged_run(console, asked, folder, run.fitted, seed=seed)
            summary |= {"trust": judged.to_dict(), "verdict": judged.verdict}
            summary["settings"] = {**summary["settings"], "trust": asdict(asked.trust)}
            folder.write(folder.config_file, lambda place: write_config(replace(asked), place))
            folder.write_text(folder.summary_file, to_json(summary))
            if folder.report.exists():
                with announced(console, "Drawing the report ..."):
                    draw_report(folder, summary)
    print_findings(console, summary["trust"])
    print_verdict(console, summary["trust"])
    return summary


def print_findings(console: Console, trust: dict[str, Any]) -> None:
    """Everything that was looked at."""
    table = Table(title="What was checked", title_justify="left")
    table.add_column("check", overflow="fold")
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("level", no_wrap=True)
    for finding in trust["findings"]:
        colour = COLOURS.get(finding["level"], "white")
        value = shown(finding["value"], ".3g") or "-"
        table.add_row(escape(finding["name"]), value, f"[{colour}]{finding['level']}[/{colour}]")
    console.print(table)
