"""The command ``coreset-mcmc``."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coreset_mcmc import __version__
from coreset_mcmc.errors import CheckpointError, InputError, RunError, require

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


@contextmanager
def _told_in_words() -> Iterator[None]:
    """Errors as one message and an exit code, without a traceback."""
    try:
        yield
    except (InputError, CheckpointError) as error:
        errors.print(f"[red]Error:[/red] {escape(str(error))}")
        raise typer.Exit(EXIT_USER_ERROR) from error
    except RunError as error:
        errors.print(f"[red]The run failed.[/red] {escape(str(error))}")
        raise typer.Exit(EXIT_RUN_ERROR) from error
    except KeyboardInterrupt as error:
        errors.print("Interrupted.")
        raise typer.Exit(EXIT_INTERRUPTED) from error


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
    with _told_in_words():
        from coreset_mcmc.demo import run_demo  # noqa: PLC0415 - keeps --help fast

        run_demo(console, coreset_size=coreset_size, draws=draws, chains=chains, seed=seed, folder=out)


bench = typer.Typer(help="Rerun published experiments and comparisons.", no_args_is_help=True)
app.add_typer(bench, name="bench")


def _split(values: list[str] | None) -> list[str]:
    """Options may be repeated, or hold several values separated by commas."""
    return [part.strip() for value in values or [] for part in value.split(",") if part.strip()]


def _numbers(option: str, values: list[str] | None) -> list[int]:
    parts = _split(values)
    wrong = [part for part in parts if not part.isdigit()]
    require(not wrong, option, got=", ".join(wrong), expected="whole numbers", fix="For example: 50,500.")
    return [int(part) for part in parts]


@bench.command()
def paper(
    experiment: Annotated[
        list[str] | None, typer.Option(help="gaussian, linear, logistic, poisson or sparse; all by default.")
    ] = None,
    method: Annotated[list[str] | None, typer.Option(help="Methods by name; all by default.")] = None,
    coreset_sizes: Annotated[
        list[str] | None, typer.Option(help="For example 50,500; the paper's six by default.")
    ] = None,
    repeats: Annotated[int | None, typer.Option(help="Seeds 1, 2, ... of each run; 10 by default.")] = None,
    out: Annotated[Path, typer.Option(help="Folder for tables, references and figures.")] = Path("paper"),
    data: Annotated[Path | None, typer.Option(help="Folder with poisson_reg.csv; otherwise it is downloaded.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes; one for each core by default.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small version of everything, in minutes.")] = False,
    figures_only: Annotated[bool, typer.Option("--figures-only", help="Draw from the tables; run nothing.")] = False,
) -> None:
    """Rerun the experiments of Chen & Campbell (2024) and draw the paper's seven figures.

    Runs that are in the table already are not repeated, so a stopped command can be given again.

    Example: coreset-mcmc bench paper --quick
    Example: coreset-mcmc bench paper --experiment poisson --coreset-sizes 100,500 --repeats 3 --out results
    """
    with _told_in_words():
        from coreset_mcmc.experiments.command import Request, reproduce  # noqa: PLC0415 - keeps --help fast

        reproduce(
            console,
            Request(
                experiments=_split(experiment),
                methods=_split(method),
                coreset_sizes=_numbers("--coreset-sizes", coreset_sizes),
                repeats=repeats,
                out=out,
                data=data,
                quick=quick,
                workers=workers,
                figures_only=figures_only,
            ),
        )


@bench.command()
def speed(
    problem: Annotated[list[str] | None, typer.Option(help="Problems by name; all by default.")] = None,
    contestant: Annotated[list[str] | None, typer.Option(help="Contestants by name; all by default.")] = None,
    repeats: Annotated[int, typer.Option(help="Seeds 1, 2, ... of each run.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the table, the page and its picture.")] = Path("speed"),
    references: Annotated[
        Path | None, typer.Option(help="Folder of the reference posteriors; by default one in the folder of the table.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder with poisson_reg.csv; otherwise it is downloaded.")] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds after which a run is stopped, and its row says so.")] = 600,
    quick: Annotated[bool, typer.Option("--quick", help="All contestants on two small problems.")] = False,
    figures_only: Annotated[bool, typer.Option("--figures-only", help="Write the page; run nothing.")] = False,
) -> None:
    """Time cm.fit against NUTS, HMCECS, Laplace, Pathfinder and the published algorithm, each in a fresh process.

    Runs that are in the table already are not repeated, so a stopped command can be given again.

    Example: coreset-mcmc bench speed --quick
    Example: coreset-mcmc bench speed --problem poisson,logistic --contestant ours,nuts --out results
    """
    with _told_in_words():
        from coreset_mcmc.experiments.speed.command import Request, compare  # noqa: PLC0415 - keeps --help fast

        compare(
            console,
            Request(
                problems=_split(problem),
                contestants=_split(contestant),
                repeats=repeats,
                out=out,
                references=references,
                data=data,
                time_limit=time_limit,
                quick=quick,
                figures_only=figures_only,
            ),
        )


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
