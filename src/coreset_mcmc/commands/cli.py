"""The command ``coreset-mcmc``.

Exit codes: 0 all went well; 2 a mistake in what was asked for or in the data, found before any work; 3 the run failed
(a computation, or the disk); 4 the verdict is worse than ``--require`` allows; 130 interrupted, what there is is saved.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from coreset_mcmc import __version__
from coreset_mcmc.commands import bench, programs
from coreset_mcmc.commands.terminal import EXIT_INTERRUPTED, EXIT_VERDICT, console, told_in_words
from coreset_mcmc.core.errors import require

app = typer.Typer(
    help="Bayesian coresets: a small weighted subset of rows whose posterior stands in for the full one.",
    epilog="Exit codes: 0 fine; 2 mistake in the input; 3 the run failed; 4 verdict below --require; 130 interrupted.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.add_typer(bench.app, name="bench")
app.add_typer(programs.app, name="cache")


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


KeepsPrograms = Annotated[
    bool, typer.Option("--cache/--no-cache", help="Keep compiled programs for the next call (coreset-mcmc cache show).")
]


@app.command()
def demo(
    coreset_size: Annotated[int, typer.Option(help="Flights in the coreset.")] = 500,
    draws: Annotated[int, typer.Option(help="Draws kept from each chain.")] = 1000,
    chains: Annotated[int, typer.Option(help="Chains that train and sample.")] = 4,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 1,
    out: Annotated[Path, typer.Option(help="Folder for the picture and the draws.")] = Path("."),
    keeps_programs: KeepsPrograms = True,
) -> None:
    """Fit cancellations of 297,924 real flights with a coreset of a few hundred, in about a minute.

    Example: coreset-mcmc demo --coreset-size 300 --out results
    """
    with told_in_words():
        from coreset_mcmc.commands.demo import run_demo  # noqa: PLC0415 - keeps --help fast

        with programs.kept_programs(console, is_wanted=keeps_programs):
            run_demo(console, coreset_size=coreset_size, draws=draws, chains=chains, seed=seed, folder=out)


Level = Literal["good", "care"]
ACCEPTED = {"good": ("good",), "care": ("good", "use with care")}


@app.command("fit")
def fit_command(
    data: Annotated[
        list[str] | None,
        typer.Argument(
            help="CSV, Parquet, Feather or npz: files, a folder, a pattern in quotes, or an address (s3://...).",
            show_default=False,
        ),
    ] = None,
    formula: Annotated[str | None, typer.Option("--formula", "-f", help='"y ~ x + C(group) + x:z"')] = None,
    family: Annotated[
        str | None,
        typer.Option(
            help="gaussian (default), t, bernoulli, binomial, poisson, negativebinomial, zero_inflated_... or "
            "hurdle_... of those two, gamma, beta, exponential, weibull, cumulative or categorical."
        ),
    ] = None,
    link: Annotated[str | None, typer.Option(help="probit or cloglog for logit, inverse for the log of gamma.")] = None,
    trials: Annotated[
        str | None, typer.Option(help="The column of trials of a binomial response, or a number.")
    ] = None,
    prior: Annotated[
        list[str] | None, typer.Option(help='"name=Normal(0, 1)"; a term, Intercept, sigma, ... or coefficients.')
    ] = None,
    drop_missing: Annotated[
        bool | None, typer.Option("--drop-missing/--refuse-missing", help="What to do with rows that lack a value.")
    ] = None,
    where: Annotated[
        str | None, typer.Option(help='Rows that count, e.g. "duration > 0 and year(date) >= 2020".')
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="The column that each row's log-likelihood is multiplied with.")
    ] = None,
    lump_rare: Annotated[
        int | None, typer.Option(help='Levels with fewer rows than this become one, "other".', show_default=False)
    ] = None,
    coreset_size: Annotated[
        str | None, typer.Option(help='A number of rows (500, more for many parameters), or "auto".')
    ] = None,
    kl_target: Annotated[
        float | None, typer.Option(help='Distance (KL, in nats) at which "auto" stops (0.05).')
    ] = None,
    method: Annotated[str | None, typer.Option(help="Another method; see 'coreset-mcmc list'.")] = None,
    gaussian_term: Annotated[
        bool | None,
        typer.Option("--gaussian-term/--no-gaussian-term", help="Beside the rows; by itself if parameters are many."),
    ] = None,
    draws: Annotated[int | None, typer.Option(help="Draws kept from each chain (1000).")] = None,
    tune: Annotated[int | None, typer.Option(help="Draws discarded before them (500).")] = None,
    chains: Annotated[int | None, typer.Option(help="Chains (4).")] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same draws; drawn if left out.")] = None,
    engine: Annotated[
        str | None, typer.Option(help="memory, stream, dask or ray; by default memory, or stream if that is too small.")
    ] = None,
    scheduler: Annotated[str | None, typer.Option(help="The address of the cluster, for dask and ray.")] = None,
    memory_limit: Annotated[
        str | None, typer.Option(help='Memory that may be used, e.g. "2GB"; all by default.')
    ] = None,
    trust: Annotated[
        bool | None, typer.Option("--trust/--no-trust", help="Check whether the result can be trusted.")
    ] = None,
    interval: Annotated[float | None, typer.Option(help="Probability of the intervals (0.89).")] = None,
    report: Annotated[bool | None, typer.Option("--report/--no-report", help="Write report.html.")] = None,
    config: Annotated[Path | None, typer.Option(help="A TOML file with any of this; options go before it.")] = None,
    out: Annotated[Path, typer.Option(help="A new folder for everything that the run leaves.")] = Path("run"),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the run that is in the folder.")] = False,
    require_verdict: Annotated[
        Level | None, typer.Option("--require", help="Exit with 4 if the verdict is worse.")
    ] = None,
    keeps_programs: KeepsPrograms = True,
) -> None:
    """Fit a regression to a table by a coreset, check it, and leave draws, coreset, summary and report in a folder.

    Ctrl-C goes on with what there is and saves it; a second one stops at once. 'coreset-mcmc resume' continues either.

    Example: coreset-mcmc fit flights.parquet --formula "cancelled ~ hour + distance" --family bernoulli --out run
    Example: coreset-mcmc fit visits.csv -f "spent ~ age + (1|store)" --family gamma --where "spent > 0"
    Example: coreset-mcmc fit sales.csv -f "units ~ price*C(region)" --family poisson --prior "price=Normal(0, 1)"
    Example: coreset-mcmc fit "big/*.parquet" -f "y ~ x" --memory-limit 4GB
    Example: coreset-mcmc fit --config run/config.toml --out again
    """
    with told_in_words():
        from coreset_mcmc.commands.budget import ON_CLUSTERS  # noqa: PLC0415 - keeps --help fast
        from coreset_mcmc.commands.config import Config, read_config  # noqa: PLC0415

        asked = read_config(config) if config is not None else Config()
        if data:
            asked = asked.changed("data", path=data if len(data) > 1 else data[0], sha256="", files={})
        if engine is not None and engine not in ON_CLUSTERS:
            asked = asked.changed("engine", scheduler="")
        asked = asked.changed("engine", name=engine, scheduler=scheduler, memory_limit=memory_limit)
        size = int(coreset_size) if coreset_size is not None and coreset_size.isdigit() else coreset_size
        _check_size_text(size)
        priors = {**asked.model.priors, **_priors(prior)}
        asked = asked.changed("data", drop_missing=drop_missing, where=where, weights=weights, lump_rare=lump_rare)
        asked = asked.changed("model", formula=formula, family=family, link=link, trials=trials, priors=priors)
        asked = asked.changed("coreset", size=size, kl_target=kl_target, method=method, gaussian_term=gaussian_term)
        asked = asked.changed("sampling", draws=draws, tune=tune, chains=chains, seed=seed)
        asked = asked.changed("trust", check=trust)
        asked = asked.changed("output", interval=interval, report=report)
        from coreset_mcmc.commands.fitting import fit_table  # noqa: PLC0415

        with programs.kept_programs(console, is_wanted=keeps_programs):
            summary = fit_table(console, asked, out, overwrite=overwrite)
    _leave(summary, require_verdict)


def _check_size_text(size: int | str | None) -> None:
    is_right = size is None or isinstance(size, int) or size == "auto"
    require(is_right, "--coreset-size", got=repr(size), expected='a number of rows or "auto"', fix="For example 500.")


def _priors(texts: list[str] | None) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts or []]
    for name, sign, value in pairs:
        is_pair = bool(name.strip() and sign and value.strip())
        require(
            is_pair,
            "--prior",
            got=repr(name + sign + value),
            expected="name=Distribution(numbers)",
            fix='For example --prior "hour=Normal(0, 1)".',
        )
    return {name.strip(): value.strip() for name, _, value in pairs}


def _leave(summary: Mapping[str, Any], required: Level | None) -> None:
    """With the exit code that the result deserves."""
    if summary["status"] == "interrupted":
        raise typer.Exit(EXIT_INTERRUPTED)
    if required is not None and summary["verdict"] not in ACCEPTED[required]:
        raise typer.Exit(EXIT_VERDICT)


@app.command("resume")
def resume_command(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    scheduler: Annotated[
        str | None, typer.Option(help="The address of the cluster, if it is not what it was.", show_default=False)
    ] = None,
    require_verdict: Annotated[
        Level | None, typer.Option("--require", help="Exit with 4 if the verdict is worse.")
    ] = None,
    keeps_programs: KeepsPrograms = True,
) -> None:
    """Go on with a run that was interrupted or killed; it ends with the same bits as if it had never stopped.

    Example: coreset-mcmc resume run
    """
    with told_in_words():
        from coreset_mcmc.commands.fitting import resume  # noqa: PLC0415 - keeps --help fast

        with programs.kept_programs(console, is_wanted=keeps_programs):
            summary = resume(console, run, scheduler=scheduler)
    _leave(summary, require_verdict)


@app.command("report")
def report_command(run: Annotated[Path, typer.Argument(help="The folder of a run.")]) -> None:
    """Draw the report of a run again, from the files in its folder.

    Example: coreset-mcmc report run
    """
    with told_in_words():
        from coreset_mcmc.commands.reporting import redraw  # noqa: PLC0415 - keeps --help fast

        console.print(escape(str(redraw(run))))


@app.command("compare")
def compare_command(
    runs: Annotated[list[Path], typer.Argument(help="Folders of two or more runs.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the comparison for programs.")] = False,
    loo: Annotated[bool, typer.Option("--loo", help="Also by leave-one-out; passes over the rows of each.")] = False,
    draws: Annotated[int, typer.Option(help="Draws for --loo.")] = 1000,
) -> None:
    """Put runs beside each other: verdicts, settings that differ, and how far each parameter moved.

    Example: coreset-mcmc compare run1 run2
    Example: coreset-mcmc compare run1 run2 --loo
    """
    with told_in_words():
        from coreset_mcmc.commands.comparing import compare  # noqa: PLC0415 - keeps --help fast

        shown = Console(quiet=True) if as_json else console
        result = compare(shown, runs)
        if loo:
            from coreset_mcmc.commands.loo_comparing import compare_by_loo  # noqa: PLC0415

            result |= compare_by_loo(shown, runs, draws)
        if as_json:
            print(json.dumps(result))


@app.command("predict")
def predict_command(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    data: Annotated[list[str], typer.Argument(help="A table with the predictors of its formula; as for fit.")],
    out: Annotated[Path, typer.Option(help="A new .parquet or .csv file, with a line for each row.")],
    draws: Annotated[int, typer.Option(help="Draws of the posterior that are used, evenly spaced.")] = 400,
    interval: Annotated[
        float | None, typer.Option(help="Probability of the intervals; that of the run by default.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="For new responses.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file that is there.")] = False,
) -> None:
    """Predict the responses of another table: what is expected, and new ones, each with an interval.

    Example: coreset-mcmc predict run tomorrow.parquet --out predictions.parquet
    """
    with told_in_words():
        from coreset_mcmc.commands.predicting import predict_run  # noqa: PLC0415 - keeps --help fast

        predict_run(console, run, data, out, draws=draws, interval=interval, seed=seed, overwrite=overwrite)


@app.command("check")
def check_command(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    draws: Annotated[int | None, typer.Option(help="Draws in the pass over all rows (400).")] = None,
    coresets: Annotated[
        int | None, typer.Option(help="Coresets of other rows to compare, this one among them (2).")
    ] = None,
    sensitivity: Annotated[
        bool | None, typer.Option("--half/--no-half", help="Whether half the rows are tried as well.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Another one draws other rows.")] = None,
    require_verdict: Annotated[
        Level | None, typer.Option("--require", help="Exit with 4 if the verdict is worse.")
    ] = None,
) -> None:
    """Check whether a run can be trusted: one that was made without, or again with other settings.

    Example: coreset-mcmc check run --coresets 4
    """
    with told_in_words():
        from coreset_mcmc.commands.rechecking import check_run  # noqa: PLC0415 - keeps --help fast

        summary = check_run(console, run, draws=draws, coresets=coresets, sensitivity=sensitivity, seed=seed)
    _leave(summary, require_verdict)


@app.command("effects")
def effects_command(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    columns: Annotated[
        list[str] | None, typer.Argument(help="Predictors of its formula; all by default.", show_default=False)
    ] = None,
    step: Annotated[float, typer.Option(help="By how much a number is raised.")] = 1.0,
    draws: Annotated[int, typer.Option(help="Draws of the posterior that are used, evenly spaced.")] = 200,
    interval: Annotated[
        float | None, typer.Option(help="Probability of the intervals; that of the run by default.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print them for programs.")] = False,
) -> None:
    """Average change of the expected response if a column were otherwise, over all rows; also in the report.

    Example: coreset-mcmc effects run carat --step 0.1
    """
    with told_in_words():
        from coreset_mcmc.commands import effects  # noqa: PLC0415 - keeps --help fast

        shown = Console(quiet=True) if as_json else console
        found = effects.effects_of_run(shown, run, columns or [], step=step, draws=draws, interval=interval)
        if as_json:
            print(effects.as_json(found))


@app.command("flights")
def flights_command(
    out: Annotated[Path, typer.Argument(help="A new .parquet or .csv file.")] = Path("flights.parquet"),
) -> None:
    """Write a table to try things on: 297,924 real flights with the weather, and whether each was cancelled.

    Example: coreset-mcmc flights flights.parquet
    """
    with told_in_words():
        from coreset_mcmc.commands.example import write_flights  # noqa: PLC0415 - keeps --help fast

        console.print(escape(str(write_flights(out))))


@app.command("list")
def list_parts() -> None:
    """List the methods, models, kernels, optimisers and other parts that can be exchanged."""
    from coreset_mcmc.methods.registry import REGISTRY  # noqa: PLC0415 - keeps --help fast

    table = Table(show_lines=False)
    table.add_column("kind")
    table.add_column("name", min_width=max(len(name) for entries in REGISTRY.values() for name in entries))
    table.add_column("what it is")
    for kind, entries in REGISTRY.items():
        for name, entry in entries.items():
            first_line = (inspect.getdoc(entry) or "").partition("\n")[0]
            table.add_row(kind, name, escape(first_line))
    console.print(table)
