"""Whether the verdict of ``cm.trust`` can be trusted: verdicts against true distances to the full posterior.

Each run fits a problem, asks ``fit.trust()`` and measures the true two-moment KL to what is known of the full
posterior. There are two sets of problems.

``zoo``, which is the default: many small problems, each hard for a reason of its own, with exact posteriors (closed
form, grid, quadrature, importance sampling on all rows) and fits by default settings. The verdict is recorded as it
was given; an error instead of a result is recorded, too.

``sizes``: a few problems from hopelessly few rows to enough of them, against closed form (Gaussian location), NUTS or
Gibbs sampling on all rows. The recorded numbers are judged by the rules as they are now. Constructions:

- ``default``: ``fit`` as it comes;
- ``random-rows``: the same method on rows drawn uniformly, which may miss what is rare;
- ``uniform``: such rows with equal weights, nothing trained;
- ``tripled``: weights of ``random-rows`` times three, a posterior that is too narrow in every direction.

What random draws of the reference would score themselves, d (d + 3) / 4 (1 / ESS + 1 / ESS of the reference), is
subtracted. Rows are appended as they come, and a second call makes only what is missing.

    coreset-mcmc bench trust --out docs/benchmarks --page docs/trust.md
    coreset-mcmc bench trust --out docs/benchmarks --page docs/trust.md --table
    coreset-mcmc bench trust --set sizes --out docs/benchmarks --references FOLDER --data DIRECTORY
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from coreset_mcmc_benchmarks.options import check_names, quick_parser
from coreset_mcmc_benchmarks.runs_table import RunsTable
from coreset_mcmc_benchmarks.verdicts.measure import measure
from coreset_mcmc_benchmarks.verdicts.page import write_page
from coreset_mcmc_benchmarks.verdicts.picture import draw_zoo
from coreset_mcmc_benchmarks.verdicts.problems import MAKE, Problem, constructions, gaussian
from coreset_mcmc_benchmarks.verdicts.table import DRAWS, verdicts_table, zoo_table
from coreset_mcmc_benchmarks.verdicts.zoo_page import write_zoo
from coreset_mcmc_benchmarks.zoo.catalogue import ZOO
from coreset_mcmc_benchmarks.zoo.entry import Entry
from coreset_mcmc_benchmarks.zoo.kept import kept_in

QUICK_ROWS, QUICK_DRAWS, QUICK_SIZES = 500, 200, (25,)
QUICK_ZOO = ["linear-three-rows"]


class Job(NamedTuple):
    """One run."""

    problem: str
    construction: str
    coreset_size: int
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """How the job is found in a table of strings."""
        return (self.problem, self.construction, str(self.coreset_size), str(self.seed))


def quick_problem(folder: Path, data: Path | None) -> Problem:
    """A Gaussian with few rows and one coreset size."""
    return replace(gaussian(folder, data, QUICK_ROWS), sizes=QUICK_SIZES)


def run(table: RunsTable, job: Job, problem: Problem, draws: int, **more: str) -> None:
    """One run, appended as soon as it has ended."""
    row = job._asdict() | more | measure(problem, job.construction, job.coreset_size, job.seed, draws)
    table.append(row)
    shown = {key: row.get(key) for key in ("true_kl", "kl_estimate", "verdict", "failure", "cpu_seconds")}
    told = {key: f"{value:.3g}" if isinstance(value, float) else value for key, value in shown.items()}
    print(*job, told, flush=True)


def run_sizes(options: argparse.Namespace, draws: int) -> None:
    """All constructions of the problems that have no row yet, or the wanted ones of them."""
    known = {"gaussian": quick_problem} if options.quick else MAKE
    check_names("--problem", options.problem, list(known))
    made = cache(lambda name: known[name](options.references or options.out / "references", options.data))
    table = verdicts_table(options.out)
    for seed in range(options.seeds):
        for name in options.problem or known:
            jobs = [Job(name, construction, size, seed) for construction, size in constructions(made(name))]
            wanted = options.construction
            for job in table.missing(job for job in jobs if not wanted or job.construction in wanted):
                run(table, job, made(name), draws)


class Visit(NamedTuple):
    """A run of the zoo whose problem has not been made yet."""

    entry: Entry
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """Problem and seed: the size belongs to the problem."""
        return (self.entry.name, str(self.seed))


def run_zoo(options: argparse.Namespace, draws: int) -> None:
    """Default fits of all problems; those that share programs follow each other, seeds of a problem as well."""
    check_names("--problem", options.problem, list(ZOO))
    check_names("--family", options.family, sorted({entry.family for entry in ZOO.values()}))
    names = options.problem or (QUICK_ZOO if options.quick else list(ZOO))
    entries = [ZOO[name] for name in names if not options.family or ZOO[name].family in options.family]
    table = zoo_table(options.out)
    finished = {(row["problem"], row["seed"]) for row in table.rows()}
    for entry in entries:
        visits = [Visit(entry, seed) for seed in range(options.seeds)]
        missing = [visit for visit in visits if visit.key not in finished]
        if missing:
            with kept_in(options.references):
                problem = entry.make()
        for visit in missing:
            job = Job(entry.name, "default", problem.sizes[0], visit.seed)
            run(table, job, problem, draws, family=entry.family)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing and write the tables."""
    parser = quick_parser("trust", __doc__)
    parser.add_argument("--set", choices=("zoo", "sizes"), default="zoo", help="which problems")
    parser.add_argument("--problem", nargs="*", default=[], metavar="NAME", help="only these")
    parser.add_argument("--family", nargs="*", default=[], help="of the zoo, only these")
    parser.add_argument("--construction", nargs="*", default=[], help="of the sizes, only these")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--references", type=Path, help="folder in which truths are kept; the sizes have one beside the table"
    )
    parser.add_argument("--data", type=Path, help="the folder with poisson_reg.csv; otherwise it is downloaded")
    parser.add_argument("--out", type=Path, default=Path("trust"), help="folder of the table")
    parser.add_argument("--page", type=Path, help="of the zoo: a page with marks between which its summary goes")
    parser.add_argument("--table", action="store_true", help="only write the tables")
    options = parser.parse_args(arguments)
    draws = QUICK_DRAWS if options.quick else DRAWS
    is_zoo = options.set == "zoo"
    if not options.table:
        (run_zoo if is_zoo else run_sizes)(options, draws)
    if is_zoo:
        write_zoo(options.out, options.page)
        draw_zoo(options.out)
    else:
        write_page(options.out, options.out / "trust.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
