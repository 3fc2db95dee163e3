"""Many parameters: ours beside a plain coreset, Laplace, Pathfinder and NUTS, each cold in a process of its own.

Every run is compared with a reference: long NUTS on all rows for the paper's problems, importance sampling on all
rows with a stated number of effective draws for the others (:mod:`coreset_mcmc_benchmarks.many.reference`). Runs that
are in the table already are not repeated.

    coreset-mcmc bench many --out docs/benchmarks --papers docs/paper/references --data DIRECTORY
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from coreset_mcmc.core.errors import RunError
from coreset_mcmc_benchmarks.many.contestants import CONTESTANTS
from coreset_mcmc_benchmarks.many.measure import REFERENCE
from coreset_mcmc_benchmarks.many.page import page
from coreset_mcmc_benchmarks.many.problems import PROBLEMS, QUICK
from coreset_mcmc_benchmarks.options import check_names, quick_parser
from coreset_mcmc_benchmarks.runs_table import RunsTable

KEYS = ("problem", "rows", "contestant", "seed")
FIELDS = (
    *KEYS, "seconds", "peak_gigabytes", "num_parameters", "kl_estimate", "kl_all_rows", "two_moment_kl", "pareto_k",
    "largest_mean_error", "largest_sd_error", "smallest_ess", "reference_draws", "reference_k", "note", "load_before",
    "load_after",
)  # fmt: skip
TIME_LIMIT = 900.0
"""Seconds that a run may take, what is made outside its clock included; one that takes longer says so. References may
take as long as they need.
"""


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
    """All problems for one contestant before the next, one seed before the next."""
    known = QUICK if quick else PROBLEMS
    for contestant in contestants:
        for seed in seeds:
            for name in problems or known:
                yield from (Job(name, size, contestant, seed) for size in known[name].sizes)


def many_table(folder: Path) -> RunsTable:
    """One row for each run."""
    return RunsTable(folder / "many.csv", FIELDS, KEYS)


def make_reference(job: Job, options: Any) -> None:
    """Before anyone is compared with it, and outside of all time limits."""
    failed = run_job(job._replace(contestant=REFERENCE), options, None).get("note")
    if failed:
        raise RunError(f"The reference of {job.problem} {failed}")


def run_job(job: Job, options: Any, time_limit: float | None) -> dict[str, Any]:
    """In a process of its own; what goes wrong becomes a row with a reason."""
    task = job._asdict() | {
        "quick": options.quick,
        "data": str(options.data or ""),
        "papers": str(options.papers),
        "references": str(options.out / "many_references"),
    }
    command = [sys.executable, "-m", "coreset_mcmc_benchmarks.many.measure", json.dumps(task)]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=time_limit)
    except subprocess.TimeoutExpired:
        return {"note": f"not done after {time_limit:.0f} s"}
    if ended.returncode:
        return {"note": f"failed: {(ended.stderr.strip().splitlines() or ['killed'])[-1][:200]}"}
    result: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what is missing, print the tables and write them down."""
    parser = quick_parser("many", __doc__)
    parser.add_argument("--problem", action="append", default=[], help=f"one of {', '.join(PROBLEMS)}")
    parser.add_argument("--contestant", action="append", default=[], help=f"one of {', '.join(CONTESTANTS)}")
    parser.add_argument("--seeds", default="1,2,3", help="for example 1,2,3")
    parser.add_argument("--out", type=Path, default=Path("many"), help="folder of the table, its page and references")
    parser.add_argument("--papers", type=Path, default=Path("references"), help="references of the paper's problems")
    parser.add_argument("--data", type=Path, help="folder of the paper's data")
    parser.add_argument("--time-limit", type=float, default=TIME_LIMIT, help="seconds that a run may take")
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    check_names("--problem", options.problem, list(PROBLEMS))
    check_names("--contestant", options.contestant, list(CONTESTANTS))
    seeds = [int(part) for part in options.seeds.split(",")]
    wanted = jobs(options.problem, options.contestant or list(CONTESTANTS), seeds, quick=options.quick)
    table = many_table(options.out)
    have_reference = set()
    for job in [] if options.table else table.missing(wanted):
        if job.problem not in have_reference:
            make_reference(job, options)
            have_reference.add(job.problem)
        found = run_job(job, options, options.time_limit)
        table.append(job._asdict() | found)
        print(*job, found.get("seconds", ""), found.get("kl_estimate", found["note"]), flush=True)
    lines = page(table, QUICK if options.quick else PROBLEMS)
    (options.out / "many.md").write_text("\n".join(lines) + "\n")
    print(*lines, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
