"""The command ``coreset-mcmc``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coreset_mcmc import __version__
from coreset_mcmc.errors import CheckpointError, InputError, RunError

EXIT_USER_ERROR = 2
EXIT_RUN_ERROR = 3
EXIT_INTERRUPTED = 130

app = typer.Typer(
    help="Bayesian coresets: a small weighted subset of rows whose posterior stands in for the full one.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
console = Console()
errors = Console(stderr=True)


def _show_version(wanted: bool) -> None:
    if wanted:
        console.print(__version__)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Bayesian coresets: a small weighted subset of rows whose posterior stands in for the full one."""


@app.command()
def demo(
    coreset_size: Annotated[int, typer.Option(help="Flights in the coreset.")] = 500,
    draws: Annotated[int, typer.Option(help="Draws kept from each chain.")] = 1000,
    chains: Annotated[int, typer.Option(help="Chains that train and sample.")] = 4,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the picture and the draws.")] = Path("."),
) -> None:
    """Fit cancellations of 297,924 real flights with a coreset of a few hundred, in about a minute.

    Example: coreset-mcmc demo --coreset-size 300 --out results
    """
    from coreset_mcmc.demo import run_demo  # noqa: PLC0415 - keeps --help fast

    try:
        run_demo(console, coreset_size=coreset_size, draws=draws, chains=chains, seed=seed, folder=out)
    except (InputError, CheckpointError) as error:
        errors.print(f"[red]Error:[/red] {escape(str(error))}")
        raise typer.Exit(EXIT_USER_ERROR) from error
    except RunError as error:
        errors.print(f"[red]The run failed.[/red] {escape(str(error))}")
        raise typer.Exit(EXIT_RUN_ERROR) from error
    except KeyboardInterrupt as error:
        errors.print("Interrupted.")
        raise typer.Exit(EXIT_INTERRUPTED) from error


@app.command("list")
def list_parts() -> None:
    """List the methods, models, kernels, optimisers and other parts that can be exchanged."""
    from coreset_mcmc.registry import REGISTRY  # noqa: PLC0415 - keeps --help fast

    table = Table(show_lines=False)
    table.add_column("kind")
    table.add_column("name", min_width=max(len(name) for entries in REGISTRY.values() for name in entries))
    table.add_column("what it is")
    for kind, entries in REGISTRY.items():
        for name, entry in entries.items():
            first_line = (inspect.getdoc(entry) or "").partition("\n")[0]
            table.add_row(kind, name, escape(first_line))
    console.print(table)
