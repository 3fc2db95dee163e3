"""``coreset-mcmc bench speed``: run what is missing, then write the page."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from coreset_mcmc.core.errors import require, require_count, require_positive
from coreset_mcmc_benchmarks.options import check_names
from coreset_mcmc_benchmarks.speed.contestants import CONTESTANTS, Job, all_jobs
from coreset_mcmc_benchmarks.speed.idle import undisturbed, with_load
from coreset_mcmc_benchmarks.speed.page import losses, summarised, write_page
from coreset_mcmc_benchmarks.speed.picture import draw_picture
from coreset_mcmc_benchmarks.speed.problems import PROBLEMS, QUICK_PROBLEMS, QUICK_ROWS
from coreset_mcmc_benchmarks.speed.processes import ChildError, TimeUpError, answer_of
from coreset_mcmc_benchmarks.speed.table import speed_table

REPEATS = 3
TIME_LIMIT = 600.0
REFERENCE_TIME_LIMIT = 3_600.0
SECONDS = {
    "ours": (5.5, 1.4e-6), "published": (20.0, 5e-4), "nuts": (12.0, 1.5e-4), "blackjax": (10.0, 1.5e-4),
    "nutpie": (30.0, 3e-4), "nutpie-jax": (9.0, 1.5e-4), "pymc": (55.0, 4e-4), "hmcecs": (13.0, 6e-5),
    "laplace": (7.0, 1.5e-6), "pathfinder": (6.5, 3e-6), "advi": (8.0, 8e-5), "statsmodels": (2.0, 5e-6),
}  # fmt: skip
"""Roughly what a run takes: a fixed part and one for each row; those of full-data samplers are short from a million."""
LONGER = {"unidentified": 15.0, "hierarchical": 12.0, "simulated-50": 15.0}
"""Seconds that these problems take more than others, by their shape or the number of parameters."""
MOST_SECONDS = {"nuts": 60.0}
REST_SECONDS = 2.5
"""Between two runs: to see that the machine is idle, and to judge the draws."""


@dataclass(frozen=True)
class Request:
    """What the user asked for; empty lists stand for everything."""

    problems: Sequence[str] = ()
    contestants: Sequence[str] = ()
    repeats: int = REPEATS
    out: Path = Path("speed")
    references: Path | None = None
    data: Path | None = None
    time_limit: float = TIME_LIMIT
    quick: bool = False
    figures_only: bool = False


def compare(console: Console, request: Request) -> list[Path]:
    """Run the jobs that have no row yet, append their rows, write the page and its picture, and say where we lose."""
    check_names("--problem", request.problems, list(PROBLEMS))
    check_names("--contestant", request.contestants, list(CONTESTANTS))
    require_count("--repeats", request.repeats, at_least=1, fix=f"Leave it out for {REPEATS}.")
    require_positive("--time-limit", request.time_limit)
    if not request.figures_only:
        _run_missing(console, request)
    paths = [write_page(request.out), draw_picture(request.out)]
    for line in losses(summarised(request.out)):
        console.print(escape(line))
    for path in paths:
        console.print(f"[bold]{escape(str(path))}[/bold]")
    return paths


def expected_seconds(job: Job, rows: int) -> float:
    """A rough prediction, good to a factor of two."""
    fixed, by_row = SECONDS[job.contestant]
    running = min(fixed + by_row * rows, MOST_SECONDS.get(job.contestant, TIME_LIMIT))
    more = LONGER.get(job.problem, 0.0) if job.contestant in ("ours", "nuts") else 0.0
    return running + more + REST_SECONDS


def _run_missing(console: Console, request: Request) -> None:
    problems = request.problems or (QUICK_PROBLEMS if request.quick else list(PROBLEMS))
    jobs = all_jobs(problems, request.contestants or list(CONTESTANTS), request.repeats, request.quick)
    require(
        bool(jobs), "--problem and --contestant", got="no run", expected="a contestant that suits a problem",
        fix="Only cm.fit and the published algorithm run on the sparse regression.",
    )  # fmt: skip
    table = speed_table(request.out)
    left = table.missing(jobs)
    console.print(f"{len(jobs):,} runs asked for, {len(jobs) - len(left):,} already in {escape(str(table.path))}.")
    if not left:
        return
    seconds = sum(expected_seconds(job, QUICK_ROWS if request.quick else PROBLEMS[job.problem].rows) for job in left)
    console.print(
        f"{len(left):,} to do, one after the other, about {timedelta(seconds=round(seconds))} on an idle machine with "
        "an error of a factor of two, references apart. Ctrl-C loses no run that has ended; the same command goes on."
    )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress, tempfile.TemporaryDirectory() as folder:
        bar = progress.add_task("runs", total=len(left))
        for problem in (name for name in PROBLEMS if any(job.problem == name for job in left)):
            _run_problem(progress, bar, [job for job in left if job.problem == problem], request, Path(folder))


def _run_problem(progress: Progress, bar: Any, jobs: list[Job], request: Request, folder: Path) -> None:
    """All runs of one problem, whose data lie in a file meanwhile."""
    problem = PROBLEMS[jobs[0].problem]
    data_path = folder / "data.npz"
    columns: dict[str, Any] = {**problem.load(request.data, QUICK_ROWS if request.quick else None)}
    np.savez(data_path, **columns)
    common: dict[str, Any] = {
        "problem": jobs[0].problem,
        "data": str(data_path),
        "references": str(request.references or request.out / "references"),
        "quick": request.quick,
    }
    common["has_reference"] = problem.reference != "estimate" and _make_reference(progress, bar, common, folder)
    for job in jobs:
        progress.update(bar, description=f"{job.problem}: {CONTESTANTS[job.contestant].title}")
        run = partial(_row, common | _task(job), job, folder, request.time_limit)
        row = with_load(run) if request.quick else undisturbed(run)
        speed_table(request.out).append(row)
        progress.advance(bar)
        progress.console.print(escape(_describe(job, row)))


def _task(job: Job) -> dict[str, Any]:
    """What the process of a run is told of its contestant."""
    contestant = CONTESTANTS[job.contestant]
    return {
        "work": "measure",
        "contestant": job.contestant,
        "seed": job.seed,
        "run": contestant.run,
        "kind": PROBLEMS[job.problem].kind,
        "libraries": list(contestant.libraries),
        "num_devices": contestant.num_devices,
        "has_workers": contestant.has_workers,
    }


def _make_reference(progress: Progress, bar: Any, common: dict[str, Any], folder: Path) -> bool:
    """Make or read the reference; without one the comparison goes on, and estimated KLs stand in its place."""
    name = common["problem"]
    progress.update(bar, description=f"{name}: reference")
    task = common | {"work": "make_reference", "libraries": [], "num_devices": 2, "has_reference": True}
    try:
        checks = answer_of(task, folder, REFERENCE_TIME_LIMIT)
    except (ChildError, TimeUpError) as error:
        progress.console.print(escape(f"no reference of {name}: {str(error) or 'it took too long'}"))
        return False
    text = ", ".join(f"{key} {value:.3g}" for key, value in checks.items())
    progress.console.print(escape(f"reference of {name}: {text}"))
    return True


def _row(task: dict[str, Any], job: Job, folder: Path, time_limit: float) -> dict[str, Any]:
    began = time.perf_counter()
    try:
        return answer_of(task, folder, time_limit)
    except TimeUpError:
        failure = f"stopped after {time_limit:.0f} s"
    except ChildError as error:
        failure = str(error)
    seconds = time.perf_counter() - began
    return {**job._asdict(), "rows": PROBLEMS[job.problem].rows, "failure": failure, "seconds": seconds}


def _describe(job: Job, row: dict[str, Any]) -> str:
    label = f"{job.problem}, {CONTESTANTS[job.contestant].title}" + (f" #{job.seed}" if job.seed > 1 else "")
    if row.get("failure"):
        return f"{label}: {row['failure'][:120]}"
    distance = f"KL {row['kl']:.2g}" if row.get("kl") is not None else "KL unknown"
    scaled = f" ({row['scaled']})" if row["scaled"] else ""
    return f"{label}: {row['seconds_to_effective']:.1f} s to 10,000 effective draws{scaled}, {distance}"
