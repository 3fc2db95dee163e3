"""A cold start taken apart: import, tracing, lowering, compilation and work of a default fit, and what comes after it.

Every run is a process of its own on a simulated logistic regression with ten columns; so is every call of the command
line, which finds the programs that the calls before it have kept. The page is written anew from all runs of this call.

    coreset-mcmc bench cold-start --out docs/benchmarks
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from coreset_mcmc_benchmarks.cold_start.second_time import Call, calls
from coreset_mcmc_benchmarks.markdown import table_lines
from coreset_mcmc_benchmarks.options import quick_parser

NUM_ROWS, QUICK_ROWS = 98_673, 2_000
NUM_RUNS = 3
MOST_PROGRAMS = 12
EXPLANATION = """
Made by `coreset-mcmc bench cold-start`: {runs} processes, one after the other, {rows:,} rows, ten columns and an
intercept. Medians, with the range of seconds in brackets; load of the machine before {before:.2f}, after {after:.2f}.
Seconds of tracing, lowering and compiling are sums over programs, several of which are compiled at the same time and
beside other work: they add up to more than have passed. Largest peak of memory: {peak:.2f} GB.
"""


def one_run(num_rows: int) -> dict[str, Any]:
    """In a process of its own, without a cache of compiled programs."""
    environment = {name: value for name, value in os.environ.items() if name != "JAX_COMPILATION_CACHE_DIR"}
    command = [sys.executable, "-m", "coreset_mcmc_benchmarks.cold_start.child", str(num_rows)]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return result


SECOND_TIME = """
`coreset-mcmc fit`, without verdict or report, on such rows as files; medians of {repeats} series of calls, each from an
empty folder of programs on. Seconds are of whole processes, from their start to their end. *Work* is training, sampling
and the final check, *later* what comes after the draws (responses that the model makes beside those of the table, and
files), *start* all else: imports, reading, tracing, compilation. The table of another length has seven hundredths fewer
rows.
"""


def page(
    runs: Sequence[dict[str, Any]], again: Sequence[Sequence[Call]], num_rows: int, before: float, after: float
) -> list[str]:
    """Stages, the programs of a first fit, then calls of the command line."""
    peak = max(run["peak_gigabytes"] for run in runs)
    words = EXPLANATION.format(runs=len(runs), rows=num_rows, before=before, after=after, peak=peak)
    lines = ["# A cold start, taken apart", words, "## Stages", ""]
    head = ["stage", "seconds", "processor s", "programs compiled", "tracing s", "lowering s", "compiling s"]
    lines += table_lines(head, [_stage_line([run["stages"][place] for run in runs]) for place in _places(runs)])
    lines += ["", "## Programs of the first fit", ""]
    programs = runs[0]["programs"]
    rows = [[f"`{program['name']}`", f"{program['seconds']:.2f}"] for program in programs[:MOST_PROGRAMS]]
    rest = programs[MOST_PROGRAMS:]
    rows.append([f"{len(rest)} more", f"{sum(program['seconds'] for program in rest):.2f}"])
    lines += table_lines(["program", "seconds of its compilation"], rows)
    lines += ["", "## The second time at the command line", SECOND_TIME.format(repeats=len(again))]
    head = ["call", "seconds", "of them start", "work", "later", "programs compiled"]
    return [*lines, *table_lines(head, [_call_line(same) for same in zip(*again, strict=True)])]


def _call_line(same: Sequence[Call]) -> list[str]:
    parts = [median(part) for part in zip(*((one.work_seconds, one.later_seconds) for one in same), strict=True)]
    shown = [_with_range([one.seconds for one in same]), _with_range([one.start_seconds for one in same])]
    return [
        same[0].words,
        *shown,
        *(f"{part:.2f}" for part in parts),
        f"{median(one.num_compiled for one in same):.0f}",
    ]


def _with_range(values: Sequence[float]) -> str:
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def _called(num_rows: int) -> list[Call]:
    with tempfile.TemporaryDirectory() as folder:
        return calls(num_rows, Path(folder))


def _places(runs: Sequence[dict[str, Any]]) -> range:
    return range(len(runs[0]["stages"]))


def _stage_line(stages: Sequence[dict[str, Any]]) -> list[str]:
    def middle(part: str) -> float:
        return median(float(stage[part]) for stage in stages)

    shown = _with_range([stage["seconds"] for stage in stages])
    parts = [f"{middle(part):.2f}" for part in ("tracing", "lowering", "compiling")]
    return [stages[0]["stage"], shown, f"{middle('processor_seconds'):.2f}", f"{middle('programs'):.0f}", *parts]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print and write the page."""
    parser = quick_parser("cold-start", __doc__)
    parser.add_argument("--runs", type=int, default=NUM_RUNS, help="processes")
    parser.add_argument("--out", type=Path, default=Path("cold-start"), help="folder of the page")
    options = parser.parse_args(arguments)
    num_rows, before = QUICK_ROWS if options.quick else NUM_ROWS, os.getloadavg()[0]
    repeats = range(1 if options.quick else options.runs)
    runs, again = [one_run(num_rows) for _ in repeats], [_called(num_rows) for _ in repeats]
    lines = page(runs, again, num_rows, before, os.getloadavg()[0])
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "cold_start.md").write_text("\n".join(lines) + "\n")
    print(*lines, sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
