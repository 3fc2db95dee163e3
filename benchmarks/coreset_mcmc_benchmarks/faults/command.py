"""Faults at every boundary of a run of the command line, and how many runs survive them.

A run writes each of its files beside its place, flushes it and renames it. At every one of these moments (of the many
checkpoints the first and the last) a run is killed, interrupted, told that the disk is full or read-only, gets no
memory, sees its clock go back or a second process come in; each file is cut, emptied, overwritten or exchanged with
that of another run. A run survives if no file under its final name is half-written, nothing but words is printed, and
it goes on to the same bits as a run that nobody disturbed. Real signals and limits hit processes of their own.

    coreset-mcmc bench faults --out docs/benchmarks
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from coreset_mcmc_benchmarks.faults.processes import in_processes
from coreset_mcmc_benchmarks.faults.trials import FAULTS, REFUSED, SAME, Stage, Trial, a_few, prepare
from coreset_mcmc_benchmarks.markdown import table_lines
from coreset_mcmc_benchmarks.options import check_names, quick_parser
from coreset_mcmc_benchmarks.runs_table import RunsTable

FIELDS = ("fault", "place", "outcome")
SETS = {**FAULTS, "processes": in_processes}
QUICK = "a few"


def faults_table(folder: Path) -> RunsTable:
    """One row for each trial."""
    return RunsTable(folder / "faults.csv", FIELDS, ("fault", "place"))


def survives(outcome: str) -> bool:
    """Whether nothing was lost."""
    return outcome in (SAME, REFUSED)


def trials(stage: Stage, names: Sequence[str]) -> Iterator[Trial]:
    """Of the named sets, one after the other."""
    for name in names:
        yield from (a_few if name == QUICK else SETS[name])(stage)


def write_page(folder: Path) -> Path:
    """Counts by fault, and whatever did not survive."""
    rows = faults_table(folder).rows()
    lines = []
    for fault in dict.fromkeys(row["fault"] for row in rows):
        outcomes = [row["outcome"] for row in rows if row["fault"] == fault]
        same, refused = outcomes.count(SAME), outcomes.count(REFUSED)
        lines.append([fault, str(len(outcomes)), str(same), str(refused), str(len(outcomes) - same - refused)])
    alive = sum(survives(row["outcome"]) for row in rows)
    text = [
        "# Faults on purpose", "",
        "`coreset-mcmc bench faults` hits runs of the command line at every boundary and resumes them; "
        "[faults.csv](faults.csv) has every trial.", "",
        f"{len(rows)} trials, {alive} survivors.", "",
        *table_lines(["fault", "trials", SAME, REFUSED, "lost or loud"], lines), "",
    ]  # fmt: skip
    dead = [[row[name].replace("|", "/") for name in FIELDS] for row in rows if not survives(row["outcome"])]
    if dead:
        text += ["## Not survived", "", *table_lines(FIELDS, dead), ""]
    path = folder / "faults.md"
    path.write_text("\n".join(text))
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Hit runs and write the table; 1 if one did not survive."""
    parser = quick_parser("faults", __doc__)
    parser.add_argument("--only", nargs="*", default=[], metavar="SET", help=f"some of {', '.join(SETS)}")
    parser.add_argument("--out", type=Path, default=Path("faults"), help="folder of the table")
    parser.add_argument("--table", action="store_true", help="only write the page")
    options = parser.parse_args(arguments)
    check_names("--only", options.only, list(SETS))
    table = faults_table(options.out)
    names = options.only or ([QUICK] if options.quick else list(SETS))
    if not options.table and not (options.quick and table.rows()):
        with tempfile.TemporaryDirectory() as place:
            stage = prepare(Path(place))
            finished = table.finished()
            for trial in trials(stage, names):
                if (trial.fault, trial.place) not in finished:
                    table.append(trial._asdict())
                print(*trial, sep=" | ", flush=True)
    write_page(options.out)
    return int(any(not survives(row["outcome"]) for row in table.rows()))


if __name__ == "__main__":
    sys.exit(main())
