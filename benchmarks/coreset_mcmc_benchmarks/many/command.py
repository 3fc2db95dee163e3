"""Many parameters: fits with a Gaussian term, without one, and the term alone, each cold in a process of its own.

What is compared with are the same draws, corrected by Pareto-smoothed importance weights on all rows: with 400 draws
the means are known to about 0.05 standard deviations and the deviations to 4 %, which is what largest errors of a right
posterior over hundreds of parameters show several times over. Runs that are in the table already are not repeated.

    coreset-mcmc bench many --out docs/benchmarks
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from coreset_mcmc_benchmarks.many.measure import CONTESTANTS
from coreset_mcmc_benchmarks.many.problems import PROBLEMS, QUICK
from coreset_mcmc_benchmarks.markdown import table_lines
from coreset_mcmc_benchmarks.options import check_names, quick_parser
from coreset_mcmc_benchmarks.runs_table import RunsTable

KEYS = ("problem", "rows", "contestant", "seed")
FIELDS = (
    *KEYS, "seconds", "compile_seconds", "peak_gigabytes", "num_parameters", "kl_estimate", "pareto_k",
    "effective_draws", "largest_shift", "largest_sd_error", "smallest_ess", "term", "load_before",
)  # fmt: skip
TIME_LIMIT = 900.0
"""Seconds that a run may take; one that takes longer gets a row that says so."""


class Job(NamedTuple):
    """One run."""

    problem: str
    rows: int
    contestant: str
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """How the job is found in a table of strings."""
        return tuple(str(part) for part in self)


def jobs(problems: Sequence[str], contestants: Sequence[str], seeds: Sequence[int], *, quick: bool) -> Iterator[Job]:
    """Problem by problem."""
    known = QUICK if quick else PROBLEMS
    for name in problems or known:
        for size in known[name].sizes:
            yield from (Job(name, size, contestant, seed) for contestant in contestants for seed in seeds)


def many_table(folder: Path) -> RunsTable:
    """One row for each run."""
    return RunsTable(folder / "many.csv", FIELDS, KEYS)


def run_job(job: Job, *, quick: bool, time_limit: float) -> dict[str, Any]:
    """In a process of its own; what goes wrong becomes a row with a reason."""
    words = [str(part) for part in job]
    command = [sys.executable, "-m", "coreset_mcmc_benchmarks.many.measure", *words, "quick" if quick else "whole"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=time_limit)
    except subprocess.TimeoutExpired:
        return {"term": f"not done after {time_limit:.0f} s"}
    if ended.returncode:
        return {"term": f"failed: {ended.stderr.strip().splitlines()[-1][:200]}"}
    result: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return result


def page(table: RunsTable) -> list[str]:
    """Every run, in the order of the file."""
    head = ["problem", "parameters", "rows", "contestant", "seed", "seconds", "peak, GB", "estimated KL", "k-hat"]
    names = ["problem", "num_parameters", "rows", "contestant", "seed", "seconds", "peak_gigabytes", "kl_estimate"]
    names += ["pareto_k", "largest_shift", "largest_sd_error", "load_before"]
    head += ["largest mean error, sd", "largest sd error", "load before"]
    return table_lines(head, [[_short(row[name]) for name in names] for row in table.rows()])


def _short(text: str) -> str:
    try:
        return f"{float(text):.3g}"
    except ValueError:
        return text


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what is missing and print the table."""
    parser = quick_parser("many", __doc__)
    parser.add_argument("--problem", action="append", default=[], help=f"one of {', '.join(PROBLEMS)}")
    parser.add_argument("--contestant", action="append", default=[], help=f"one of {', '.join(CONTESTANTS)}")
    parser.add_argument("--seeds", default="1", help="for example 1,2,3")
    parser.add_argument("--out", type=Path, default=Path("many"), help="folder of the table")
    parser.add_argument("--time-limit", type=float, default=TIME_LIMIT, help="seconds that a run may take")
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    check_names("--problem", options.problem, list(PROBLEMS))
    check_names("--contestant", options.contestant, list(CONTESTANTS))
    seeds = [int(part) for part in options.seeds.split(",")]
    wanted = jobs(options.problem, options.contestant or list(CONTESTANTS), seeds, quick=options.quick)
    table = many_table(options.out)
    for job in [] if options.table else table.missing(wanted):
        found = run_job(job, quick=options.quick, time_limit=options.time_limit)
        table.append(job._asdict() | found)
        print(*job, found.get("seconds", ""), found.get("kl_estimate", found["term"]), flush=True)
    print(*page(table), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
