"""Which rows should enter a coreset: uniform ones, ones by outcome, or those that matter.

Trains the default method on the paper's regressions with each selection and adds two-moment KLs to selection.csv; runs
that are in the table are not repeated. Prints medians as Markdown, with --table these alone.

    coreset-mcmc bench selection --out docs/benchmarks --references docs/paper/references --data DIRECTORY
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import coreset_mcmc as cm
from coreset_mcmc.data.selection import Selection
from coreset_mcmc.diagnostics import metrics
from coreset_mcmc_benchmarks.draws import continuous, draws_of
from coreset_mcmc_benchmarks.markdown import table_lines
from coreset_mcmc_benchmarks.options import quick_parser
from coreset_mcmc_benchmarks.paper import budget
from coreset_mcmc_benchmarks.paper.cases import CASES
from coreset_mcmc_benchmarks.paper.references import reference
from coreset_mcmc_benchmarks.runs_table import RunsTable

KEYS = ("experiment", "selection", "coreset_size", "seed")
FIELDS = (*KEYS, "kl", "kl_estimate", "training_seconds")
SELECTIONS: dict[str, Selection | None] = {
    "influence (default)": None,
    "uniform": cm.selection.Uniform(),
    "by outcome": cm.selection.Stratified("y"),
}


class Job(NamedTuple):
    """One run."""

    experiment: str
    selection: str
    coreset_size: int
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """How the job is found in a table of strings."""
        return (self.experiment, self.selection, str(self.coreset_size), str(self.seed))


@dataclass(frozen=True)
class Effort:
    """What is run, and how long."""

    experiments: tuple[str, ...] = ("logistic", "linear", "poisson")
    sizes: tuple[int, ...] = (100, 500)
    seeds: int = 5
    draws: int = 2_500
    max_rows: int | None = None
    reference_draws: int = budget.FULL.reference_draws

    def jobs(self) -> Iterator[Job]:
        """One seed of everything before the next; outcomes are classes in the logistic regression only."""
        for experiment in self.experiments:
            labels = [label for label in SELECTIONS if label != "by outcome" or experiment == "logistic"]
            for seed in range(1, self.seeds + 1):
                yield from (Job(experiment, label, size, seed) for label in labels for size in self.sizes)


QUICK = Effort(("linear",), (50,), 1, 50, budget.QUICK.max_rows, budget.QUICK.reference_draws)


def selection_table(folder: Path) -> RunsTable:
    """One row for each run."""
    return RunsTable(folder / "selection.csv", FIELDS, KEYS, digits=4)


def run_missing(table: RunsTable, effort: Effort, references: Path, data: Path | None) -> None:
    """What has no row yet."""
    left = table.missing(effort.jobs())
    for name in dict.fromkeys(job.experiment for job in left):
        case = CASES[name](data, effort.max_rows)
        target = reference(case, effort.reference_draws, references)
        for job in (job for job in left if job.experiment == name):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                fitted = cm.fit(
                    case.model, case.data, coreset_size=job.coreset_size, selection=SELECTIONS[job.selection],
                    random_seed=job.seed, draws=effort.draws, progressbar=False,
                )  # fmt: skip
            kl = metrics.two_moment_kl(continuous(draws_of(fitted)), target.mean, target.covariance)
            measured = {"kl": kl, "kl_estimate": fitted.kl_estimate, "training_seconds": fitted.training.seconds}
            table.append(job._asdict() | measured)
            print(*job, f"{kl:.4g}", f"{fitted.kl_estimate:.4g}", flush=True)


def medians(table: RunsTable) -> list[str]:
    """Of each experiment and size, and the largest value in brackets."""
    runs = table.frame()
    labels = [label for label in SELECTIONS if label in set(runs["selection"])]
    rows = []
    for (experiment, size), mine in runs.groupby(["experiment", "coreset_size"]):
        found = [mine.loc[mine["selection"] == label, "kl"] for label in labels]
        cells = [f"{kl.median():.2g} ({kl.max():.2g})" if len(kl) else "" for kl in found]
        rows.append([str(experiment), str(size), *cells])
    return table_lines(["experiment", "M", *labels], rows)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing and print the medians."""
    parser = quick_parser("selection", __doc__)
    parser.add_argument("--data", type=Path, help="folder with poisson_reg.csv; otherwise it is downloaded")
    parser.add_argument("--references", type=Path, help="folder of the references; by default one in that of the table")
    parser.add_argument("--out", type=Path, default=Path("selection"), help="folder of the table")
    parser.add_argument("--table", action="store_true", help="run nothing")
    options = parser.parse_args(arguments)
    table = selection_table(options.out)
    if not options.table:
        references = options.references or options.out / "references"
        run_missing(table, QUICK if options.quick else Effort(), references, options.data)
    print(*medians(table), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
