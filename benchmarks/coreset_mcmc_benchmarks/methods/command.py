"""Every method on every model that admits it: how close, how fast, how many likelihoods for an effective draw.

One row for each problem, method and seed:

- two-moment KL of the continuous coordinates to the reference (and Jensen-Shannon of the inclusion patterns for the
  sparse regression),
- seconds of training and of sampling, compilation apart,
- the smallest bulk ESS, and how many of it a second of sampling gives,
- log-likelihoods of single rows for one effective draw, training included.

Methods run with the paper's settings where it names some (they were tuned with the true posterior: "oracle"), else
with their defaults. ``least-squares`` is the default of ``fit``. A run that fails is a row that says so. Rows are
appended as they come, and a second call makes only what is missing.

    coreset-mcmc bench methods --out docs/benchmarks --data DIRECTORY --references FOLDER
    coreset-mcmc bench methods --out docs/benchmarks --table
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape

from coreset_mcmc.methods.registry import METHODS
from coreset_mcmc_benchmarks.methods.cases import Case, all_cases, gaussian
from coreset_mcmc_benchmarks.methods.measure import FULL, QUICK, Effort, measure
from coreset_mcmc_benchmarks.methods.page import methods_table, write_page
from coreset_mcmc_benchmarks.options import check_names, quick_parser

QUICK_METHODS, QUICK_ROWS = ("least-squares", "uniform"), 500


class Job(NamedTuple):
    """One run."""

    problem: str
    method: str
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """How the job is found in a table of strings."""
        return (self.problem, self.method, str(self.seed))


def run_missing(
    console: Console, jobs: list[Job], cases: dict[str, Callable[[], Case]], effort: Effort, out: Path
) -> None:
    """Problem by problem, since a reference takes long."""
    table = methods_table(out)
    left = table.missing(jobs)
    for problem in dict.fromkeys(job.problem for job in left):
        case = cases[problem]()
        reference = case.reference()
        for job in (job for job in left if job.problem == problem):
            began = time.perf_counter()
            row = job._asdict() | measure(job.method, case, reference, job.seed, effort)
            table.append(row)
            outcome = row.get("failure") or f"KL {row['kl']:.3g}, {row['ess_per_second']:.0f} ESS/s"
            console.print(escape(f"{problem:10s} {job.method:24s} {time.perf_counter() - began:6.1f} s  {outcome}"))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing and write the page."""
    parser = quick_parser("methods", __doc__)
    parser.add_argument("--problem", nargs="*", default=[], help="only these problems")
    parser.add_argument("--method", nargs="*", default=[], help="only these methods")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--data", type=Path, help="the folder with poisson_reg.csv; without it Poisson is left out")
    parser.add_argument(
        "--references", type=Path, help="the folder of 'bench references'; without it its problems are left out"
    )
    parser.add_argument("--out", type=Path, default=Path("methods"), help="folder of the table and the page")
    parser.add_argument("--table", action="store_true", help="only write the page")
    options = parser.parse_args(arguments)
    cases: dict[str, Callable[[], Case]] = (
        {"gaussian": partial(gaussian, QUICK_ROWS)} if options.quick else all_cases(options.data, options.references)
    )
    check_names("--problem", options.problem, list(cases))
    check_names("--method", options.method, list(METHODS))
    methods = options.method or (QUICK_METHODS if options.quick else METHODS)
    if not options.table:
        problems = [name for name in cases if not options.problem or name in options.problem]
        seeds = range(1, options.seeds + 1)
        jobs = [Job(problem, method, seed) for problem in problems for seed in seeds for method in methods]
        run_missing(Console(), jobs, cases, QUICK if options.quick else FULL, options.out)
    write_page(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
