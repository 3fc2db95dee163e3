"""Thirty models of NumPyro, PyMC and Bambi: ``cm.fit`` beside the library's own NUTS on all rows.

Each side runs in a process of its own. Posterior means and standard deviations are compared within Monte Carlo error;
the table says what both cost, in seconds of the processor, which other work on the machine changes little.

    coreset-mcmc bench libraries --out docs/benchmarks
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from coreset_mcmc_benchmarks.interop.libraries import one_side
from coreset_mcmc_benchmarks.interop.libraries.agreement import compared, mixing
from coreset_mcmc_benchmarks.interop.libraries.chosen import CHOSEN, QUICK
from coreset_mcmc_benchmarks.interop.libraries.page import written_page
from coreset_mcmc_benchmarks.options import check_names, quick_parser
from coreset_mcmc_benchmarks.runs_table import RunsTable

KEYS = ("library", "model", "rows", "nuts_draws", "time_limit")
SIDES = ("ours", "nuts")
FIELDS = (
    *KEYS, "glm", "parameters", "compared", "agrees", "kl_estimate", "coreset_size", "largest_shift",
    "largest_shift_in_errors", "smallest_deviation_ratio", "largest_deviation_ratio",
    *(f"{side}_{name}" for side in SIDES for name in (
        "processor_seconds", "seconds", "divergences", "min_ess", "max_rhat", "failure",
    )),
)  # fmt: skip
MOST_WORDS = 160


class Effort(NamedTuple):
    """Rows, draws of each of the two chains of NUTS after as many steps of tuning, and seconds for each side."""

    rows: int = 20_000
    nuts_draws: int = 500
    time_limit: int = 240


QUICK_EFFORT = Effort(300, 60, 240)


class Job(NamedTuple):
    """One model."""

    name: str
    effort: Effort

    @property
    def key(self) -> tuple[str, ...]:
        """How it is found in a table of strings."""
        return (CHOSEN[self.name].library, CHOSEN[self.name].name, *map(str, self.effort))


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the models that have no row yet, and write the page after each of them."""
    parser = quick_parser("libraries", __doc__)
    parser.add_argument("--models", nargs="*", default=[], help="only these, such as 'PyMC MvNormal'")
    parser.add_argument("--rows", type=int, default=Effort().rows)
    parser.add_argument("--draws", type=int, default=Effort().nuts_draws, help="of each of the two chains of NUTS")
    parser.add_argument("--time-limit", type=int, default=Effort().time_limit, help="seconds for each side")
    parser.add_argument("--out", type=Path, default=Path("interop"), help="folder of the table and the page")
    parser.add_argument(
        "--answers", type=Path, help="folder in which the answers of both sides are kept for later calls"
    )
    parser.add_argument("--table", action="store_true", help="only write the page")
    options = parser.parse_args(arguments)
    check_names("--models", options.models, list(CHOSEN))
    effort = QUICK_EFFORT if options.quick else Effort(options.rows, options.draws, options.time_limit)
    table = RunsTable(options.out / "libraries.csv", FIELDS, KEYS, digits=4)
    jobs = [Job(name, effort) for name in options.models or (QUICK if options.quick else CHOSEN)]
    with tempfile.TemporaryDirectory() as folder:
        for job in [] if options.table else table.missing(jobs):
            row = measured(job, options.answers or Path(folder))
            table.append(row)
            print(job.name, {key: value for key, value in row.items() if key not in KEYS}, flush=True)
            (options.out / "libraries.md").write_text(written_page(table.rows()))
    (options.out / "libraries.md").write_text(written_page(table.rows()))
    return 0


def measured(job: Job, folder: Path) -> dict[str, Any]:
    """The row of a model, from the answers of both sides."""
    entry = CHOSEN[job.name]
    answers = {side: answer_of(job, side, folder) for side in SIDES}
    row: dict[str, Any] = {**dict(zip(KEYS, job.key, strict=True)), "glm": "yes" if entry.is_glm else "no"}
    for side, told in answers.items():
        row |= {f"{side}_{name}": told[name] for name in ("processor_seconds", "seconds", "failure")}
        if not told["failure"]:
            ess, rhat = mixing(told["summary"])
            row |= {f"{side}_divergences": told["divergences"], f"{side}_min_ess": ess, f"{side}_max_rhat": rhat}
    ours, nuts = answers["ours"], answers["nuts"]
    row |= {name: ours.get(name, "") for name in ("parameters", "kl_estimate", "coreset_size")}
    if not ours["failure"] and not nuts["failure"]:
        row |= compared(ours["summary"], nuts["summary"])
    return row


def answer_of(job: Job, side: str, folder: Path) -> dict[str, Any]:
    """What a side says; a failure or the end of its time is an answer, too."""
    folder.mkdir(parents=True, exist_ok=True)
    name = "-".join("".join(letter if letter.isalnum() else "_" for letter in part) for part in (*job.key, side))
    path, task = folder / f"{name}.json", folder / f"{name}.task.json"
    if not path.exists():
        task.write_text(
            json.dumps(
                {"model": job.name, "rows": job.effort.rows, "draws": job.effort.nuts_draws, "side": side}
                | {"answer": str(path)}
            )
        )
        failed = _run(task, path, job.effort.time_limit)
        if not path.exists():
            path.write_text(json.dumps(failed))
    answer: dict[str, Any] = {"failure": ""} | json.loads(path.read_text())
    return answer


def _run(task: Path, answer: Path, time_limit: float) -> dict[str, Any]:
    """Start the process; what is known about it if it leaves no answer."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    try:
        ended = subprocess.run(
            [sys.executable, "-m", one_side.__name__, str(task)],
            timeout=time_limit, capture_output=True, text=True, check=False,
        )  # fmt: skip
        failure = (
            "" if answer.exists() else (ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"])[-1]
        )
    except subprocess.TimeoutExpired:
        failure = f"not done after {time_limit:.0f} s"
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"failure": failure[:MOST_WORDS], "seconds": time.perf_counter() - began, "processor_seconds": spent}


if __name__ == "__main__":
    sys.exit(main())
