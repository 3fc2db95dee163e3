"""Log-likelihoods in NumPy, SciPy or Python: the time of a cold fit, and its posterior beside one that is known.

Each fit has a process of its own. Its draws are compared with importance sampling on all rows, or with a closed form.

    coreset-mcmc bench black-boxes --out docs/benchmarks
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from coreset_mcmc_benchmarks.black_boxes import one_fit
from coreset_mcmc_benchmarks.black_boxes.problems import PROBLEMS
from coreset_mcmc_benchmarks.markdown import table_lines
from coreset_mcmc_benchmarks.options import check_names, quick_parser
from coreset_mcmc_benchmarks.runs_table import RunsTable

KEYS = ("problem", "rows", "seed")
FIELDS = (
    *KEYS, "parameters", "derivatives", "seconds", "processor_seconds", "calls", "rows_evaluated", "coreset_size",
    "kl_estimate", "verdict", "largest_shift", "largest_shift_in_errors", "smallest_deviation_ratio",
    "largest_deviation_ratio", "min_ess", "reference_draws", "failure",
)  # fmt: skip
ROWS, QUICK_ROWS = 20_000, 1_500
TIME_LIMIT = 900
INTRODUCTION = """# Log-likelihoods that JAX cannot see into

Models written with SciPy, NumPy or a loop in Python (`benchmarks/coreset_mcmc_benchmarks/black_boxes/problems.py`),
fitted by `cm.fit(cm.Model.from_callable(...), data)` with all defaults, each in a process of its own. Seconds are from
the import of the library to the last draw, compilation included, on two cores that were idle for the first model
and did other work as well for the others;
[black_boxes.csv](black_boxes.csv) has those of the processor, too.
A call is one of the user's function, for one position and any number of rows. Posterior means and
standard deviations are compared with importance sampling on all rows by a t distribution at the mode that SciPy finds,
and for the shifted exponential with a grid. The verdict is that of `fit.trust()`, which is not timed.

`coreset-mcmc bench black-boxes --out docs/benchmarks`
"""


class Job(NamedTuple):
    """One fit."""

    problem: str
    rows: int
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """How it is found in a table of strings."""
        return (self.problem, str(self.rows), str(self.seed))


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the fits that have no row yet, and write the page."""
    parser = quick_parser("black-boxes", __doc__)
    parser.add_argument("--problems", nargs="*", default=[], help="only these")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--seeds", type=int, default=1, help="seeds 1, 2, ... of each fit")
    parser.add_argument("--out", type=Path, default=Path("black_boxes"), help="folder of the table and the page")
    parser.add_argument("--table", action="store_true", help="only write the page")
    options = parser.parse_args(arguments)
    check_names("--problems", options.problems, list(PROBLEMS))
    names = options.problems or (["gumbel"] if options.quick else list(PROBLEMS))
    rows = QUICK_ROWS if options.quick else options.rows
    table = RunsTable(options.out / "black_boxes.csv", FIELDS, KEYS, digits=4)
    jobs = [Job(name, rows, seed) for name in names for seed in range(1, options.seeds + 1)]
    for job in [] if options.table else table.missing(jobs):
        row = {**job._asdict(), **measured(job, is_quick=options.quick)}
        table.append(row)
        print(row, flush=True)
    (options.out / "black_boxes.md").write_text("\n".join([INTRODUCTION, *page_lines(table.rows()), ""]))
    return 0


def measured(job: Job, *, is_quick: bool) -> dict[str, Any]:
    """What a process says about its fit; that it failed or took too long is an answer, too."""
    with tempfile.TemporaryDirectory() as folder:
        task, answer = Path(folder) / "task.json", Path(folder) / "answer.json"
        effort = {"reference_draws": 300 if is_quick else 4_000, "num_coresets": 1 if is_quick else 2}
        task.write_text(json.dumps({**job._asdict(), **effort, "answer": str(answer)}))
        try:
            ended = subprocess.run(
                [sys.executable, "-m", one_fit.__name__, str(task)],
                timeout=TIME_LIMIT, capture_output=True, text=True, check=False,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return {"failure": f"not done after {TIME_LIMIT} s"}
        if not answer.exists():
            return {"failure": (ended.stderr.strip().splitlines() or ["no answer"])[-1][:160]}
        found: dict[str, Any] = json.loads(answer.read_text())
        return found


def page_lines(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """The table of the page."""
    headings = (
        "model", "rows", "d", "derivatives", "seconds", "calls", "rows evaluated (10⁶)", "estimated KL", "verdict",
        "largest shift (sd)", "(MC errors)", "sd ratio", "smallest ESS",
    )  # fmt: skip
    return table_lines(headings, [_cells(row) for row in rows])


def _cells(row: Mapping[str, str]) -> list[str]:
    words = PROBLEMS[row["problem"]][0]
    if row["failure"]:
        return [words, row["rows"], row["failure"], *[""] * 10]
    return [
        words,
        row["rows"],
        row["parameters"],
        row["derivatives"],
        f"{float(row['seconds']):.0f}",
        row["calls"],
        f"{float(row['rows_evaluated']) / 1e6:.0f}",
        f"{float(row['kl_estimate']):.2g}",
        row["verdict"],
        f"{float(row['largest_shift']):.3f}",
        f"{float(row['largest_shift_in_errors']):.1f}",
        f"{float(row['smallest_deviation_ratio']):.2f} to {float(row['largest_deviation_ratio']):.2f}",
        f"{float(row['min_ess']):.0f}",
    ]


if __name__ == "__main__":
    sys.exit(main())
