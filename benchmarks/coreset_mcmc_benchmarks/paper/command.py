"""``coreset-mcmc bench paper``: run what is missing, then draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from coreset_mcmc.core.errors import RunError, require_count
from coreset_mcmc_benchmarks.options import check_names
from coreset_mcmc_benchmarks.paper.beside_authors import write_beside_authors
from coreset_mcmc_benchmarks.paper.budget import FULL, QUICK
from coreset_mcmc_benchmarks.paper.cases import CASES
from coreset_mcmc_benchmarks.paper.diagnostics import METHODS
from coreset_mcmc_benchmarks.paper.figures import draw_figures
from coreset_mcmc_benchmarks.paper.findings import write_findings
from coreset_mcmc_benchmarks.paper.jobs import EXPERIMENTS, Job, all_jobs, expected_seconds
from coreset_mcmc_benchmarks.paper.left import is_wanted
from coreset_mcmc_benchmarks.paper.measure import Setup
from coreset_mcmc_benchmarks.paper.settings import CONTESTANTS
from coreset_mcmc_benchmarks.paper.summary import write_summary
from coreset_mcmc_benchmarks.paper.table import curves_table, runs_table
from coreset_mcmc_benchmarks.paper.workers import Outcome, available_cores, spread


@dataclass(frozen=True)
class Request:
    """What the user asked for; empty lists and None stand for everything."""

    experiments: Sequence[str] = ()
    methods: Sequence[str] = ()
    coreset_sizes: Sequence[int] = ()
    repeats: int | None = None
    """By default as many as the comparison wants of each."""
    out: Path = Path("paper")
    data: Path | None = None
    quick: bool = False
    workers: int | None = None
    figures_only: bool = False


def reproduce(console: Console, request: Request) -> list[Path]:
    """Run the jobs that have no row yet, append their rows and draw every figure that has data."""
    check_names("--experiment", request.experiments, EXPERIMENTS)
    check_names("--method", request.methods, list(METHODS))
    for size in request.coreset_sizes:
        require_count("--coreset-sizes", size, at_least=2, fix="The paper has 10, 20, 50, 100, 200 and 500.")
    if not request.figures_only:
        _run_missing(console, request)
    pages = (write_findings, write_beside_authors, write_summary)
    paths = [*draw_figures(request.out), *(write(request.out) for write in pages)]
    for path in paths:
        console.print(f"[bold]{escape(str(path))}[/bold]")
    return paths


def _run_missing(console: Console, request: Request) -> None:
    budget = QUICK if request.quick else FULL
    repeats = budget.repeats if request.repeats is None else request.repeats
    require_count("--repeats", repeats, at_least=1, fix="Leave it out for the default.")
    jobs = all_jobs(
        request.experiments or EXPERIMENTS,
        request.methods or list(CONTESTANTS),
        request.coreset_sizes or budget.coreset_sizes,
        repeats,
        is_complete=budget.is_complete,
    )
    if request.repeats is None and not request.quick:
        jobs = [job for job in jobs if is_wanted(job)]
    table = runs_table(request.out)
    left = table.missing(jobs)
    setup = Setup(budget, request.data, request.out / "references")
    console.print(f"{len(jobs):,} runs asked for, {len(jobs) - len(left):,} already in {escape(str(table.path))}.")
    if not left:
        return
    experiments = [name for name in CASES if any(job.experiment == name for job in left)]
    for name in experiments:
        CASES[name](request.data, 2_000)
    num_workers = min(request.workers or len(available_cores()), len(left))
    seconds = expected_seconds(left, budget) / num_workers
    console.print(
        f"{len(left):,} to do in {num_workers} process{'es' if num_workers > 1 else ''}, about "
        f"{timedelta(seconds=round(seconds))} with an error of a factor of two, references apart. Ctrl-C loses no run "
        "that has ended; the same command goes on."
    )
    failures = _run(console, left, experiments, setup, num_workers, request.out)
    if failures:
        console.print(f"{failures:,} of {len(left):,} runs failed.")


def _run(console: Console, jobs: list[Job], experiments: list[str], setup: Setup, num_workers: int, out: Path) -> int:
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    num_failures = 0
    with Progress(*columns, console=console) as progress:
        references = progress.add_task("references", total=len(experiments))
        for outcome in spread([*experiments], setup, num_workers) if experiments else ():
            if outcome.error is not None:
                raise RunError(f"The reference of {outcome.job} failed.\n{outcome.error}")
            progress.advance(references)
            progress.console.print(_describe_reference(str(outcome.job), outcome))
        bar = progress.add_task("runs", total=len(jobs))
        for outcome in spread([*jobs], setup, num_workers):
            progress.advance(bar)
            if outcome.error is not None:
                num_failures += 1
                progress.console.print(escape(f"{outcome.job} left no row:\n{outcome.error}"))
                continue
            if outcome.points:
                curves_table(out).append(*outcome.points)
            runs_table(out).append(outcome.row)
            num_failures += bool(outcome.row.get("failure"))
            progress.console.print(_describe(outcome))
    return num_failures


def _describe_reference(name: str, outcome: Outcome) -> str:
    checks = {key: f"{value:.3g}" for key, value in outcome.row.items()}
    return f"reference of {name}: " + ", ".join(f"{key} {value}" for key, value in checks.items())


def _describe(outcome: Outcome) -> str:
    job, row = outcome.job, outcome.row
    assert isinstance(job, Job)
    label = " ".join(filter(None, [job.experiment, job.variant or job.method, f"M={job.coreset_size}", f"#{job.seed}"]))
    if row.get("failure"):
        return escape(f"{label}: failed, {row['failure'][:100]}")
    return escape(f"{label}: KL {row['kl']:.3g}, training {row['training_seconds']:.1f} s")
