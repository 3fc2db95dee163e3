"""Fits of a logistic regression with 11 columns of float32 Parquet: passes, seconds and memory, against raw scans.

Each run is a process of its own. A raw scan is what plain pyarrow takes to decode the same files on all cores, measured
in the same run before and after the fits. Runs that are in the table already are not repeated, so a stopped command can
be given again.

    coreset-mcmc bench scale --out docs/benchmarks --data FOLDER --rows 10000000,100000000
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc_benchmarks.markdown import table_lines
from coreset_mcmc_benchmarks.options import quick_parser
from coreset_mcmc_benchmarks.runs_table import RunsTable
from coreset_mcmc_benchmarks.scale.files import data_folder

KEYS = ("rows", "engine", "seed")
FIELDS = (
    *KEYS, "cold_seconds", "warm_seconds", "compile_seconds", "num_passes", "slowest_pass", "derivative_pass",
    "raw_seconds", "data_gigabytes", "peak_gigabytes", "peak_above_data", "kl_estimate", "mean", "sd", "load_before",
    "load_after",
)  # fmt: skip
GIGABYTE = 1e9
ROWS, QUICK_ROWS = (10_000_000, 100_000_000), (20_000,)
IN_MEMORY = 10_000_000
"""Most rows that are also held in memory, as doubles and as floats of 32 bits."""


class Job(NamedTuple):
    """One run."""

    rows: int
    engine: str
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """How the job is found in a table of strings."""
        return tuple(str(part) for part in self)


def jobs(sizes: Sequence[int], seed: int, *, quick: bool = False) -> Iterator[Job]:
    """Streams of all sizes; in memory what fits."""
    for size in sizes:
        yield Job(size, "stream", seed)
        if size <= IN_MEMORY and not quick:
            yield from (Job(size, engine, seed) for engine in ("memory-float64", "memory-float32"))


def scale_table(folder: Path) -> RunsTable:
    """One row for each run."""
    return RunsTable(folder / "scale.csv", FIELDS, KEYS)


def run_job(job: Job, data: Path) -> dict[str, Any]:
    """In a process of its own, so that its peak memory is its own."""
    folder = data_folder(data, job.rows)
    command = [sys.executable, "-m", "coreset_mcmc_benchmarks.scale.measure", str(folder), job.engine, str(job.seed)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    require(
        ended.returncode == 0,
        f"run {job}",
        got=ended.stderr.strip()[-500:],
        expected="a run that ends well",
        fix="Repair the cause and give the command again.",
    )
    return _row(json.loads(ended.stdout.splitlines()[-1]))


def _row(found: dict[str, Any]) -> dict[str, Any]:
    passes = found["warm_passes"]
    derivative = [seconds for name, seconds in passes if name == "looking for the mode"]
    return {
        **{name: found[name] for name in FIELDS if name in found},
        "num_passes": len(passes),
        "slowest_pass": max((f"{seconds:.3g} s {name}" for name, seconds in passes), key=_seconds_in, default=""),
        "derivative_pass": float(np.mean(derivative)) if derivative else float("nan"),
        "raw_seconds": float(np.mean(found["raw_seconds"])) if found["raw_seconds"] else float("nan"),
        "data_gigabytes": found["data_bytes"] / GIGABYTE,
        "peak_gigabytes": found["peak_bytes"] / GIGABYTE,
        "peak_above_data": (found["peak_bytes"] - found["bytes_before_fit"]) / GIGABYTE,
        "mean": " ".join(f"{value:.6g}" for value in found["mean"]),
        "sd": " ".join(f"{value:.4g}" for value in found["sd"]),
    }


def _seconds_in(text: str) -> float:
    return float(text.split(" ", maxsplit=1)[0])


def page(table: RunsTable) -> list[str]:
    """The table of the page."""
    runs: Any = table.frame(texts=("mean", "sd", "slowest_pass"))
    rows = []
    for run in runs.itertuples():
        raws = run.warm_seconds / run.raw_seconds
        cells = [f"{run.rows:.0e}", run.engine, f"{run.cold_seconds:.1f}", f"{run.warm_seconds:.1f}", run.num_passes]
        cells += [f"{run.raw_seconds:.1f}", f"{raws:.1f}", f"{run.derivative_pass / run.raw_seconds:.1f}"]
        cells += [f"{run.peak_gigabytes:.2f}", f"{run.kl_estimate:.1g}", _distance(runs, run), f"{run.load_before:.1f}"]
        rows.append(["" if str(cell) == "nan" else str(cell) for cell in cells])
    head = ["rows", "engine", "cold, s", "warm, s", "passes", "raw scan, s", "warm / raw", "derivative pass / raw"]
    head += ["peak, GB", "estimated KL", "means off, sd", "load before"]
    return table_lines(head, rows)


def _distance(runs: Any, run: Any) -> str:
    """The largest difference to the means of doubles in memory, in standard deviations."""
    same = runs[(runs["rows"] == run.rows) & (runs["engine"] == "memory-float64") & (runs["seed"] == run.seed)]
    if same.empty:
        return ""
    mean, other = (np.array(text.split(), float) for text in (run.mean, same.iloc[0]["mean"]))
    return f"{np.max(np.abs(mean - other) / np.array(run.sd.split(), float)):.1g}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what is missing and print the table."""
    parser = quick_parser("scale", __doc__)
    parser.add_argument("--rows", help="for example 10000000,100000000")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", type=Path, default=Path("scale-data"), help="folder for the Parquet files")
    parser.add_argument("--out", type=Path, default=Path("scale"), help="folder of the table")
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    sizes = [int(part) for part in options.rows.split(",")] if options.rows else QUICK_ROWS if options.quick else ROWS
    table = scale_table(options.out)
    for job in [] if options.table else table.missing(jobs(sizes, options.seed, quick=options.quick)):
        measured = run_job(job, options.data)
        table.append(job._asdict() | measured)
        print(*job, f"{measured['cold_seconds']:.1f} s, {measured['peak_gigabytes']:.2f} GB", flush=True)
    print(*page(table), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
