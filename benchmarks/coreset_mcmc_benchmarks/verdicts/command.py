"""Whether the verdict of ``cm.trust`` can be trusted: verdicts against true distances to the full posterior.

Each run fits a problem, from hopelessly few rows to enough of them, asks ``fit.trust()`` and measures the true
two-moment KL to a long reference: closed form (Gaussian location), NUTS or Gibbs sampling on all rows. What random
draws of the reference would score themselves, d (d + 3) / 4 (1 / ESS + 1 / ESS of the reference), is subtracted.
Constructions:

- ``default``: ``fit`` as it comes;
- ``random-rows``: the same method on rows drawn uniformly, which may miss what is rare;
- ``uniform``: such rows with equal weights, nothing trained;
- ``tripled``: weights of ``random-rows`` times three, a posterior that is too narrow in every direction.

A row of the table holds the numbers behind the verdict. Rows are appended as they come, and a second call makes only
what is missing. The recorded numbers are then judged by the rules as they are now, and the tables of a page are
written between its two marks.

    coreset-mcmc bench trust --out docs/benchmarks --page docs/trust.md --references FOLDER --data DIRECTORY
    coreset-mcmc bench trust --out docs/benchmarks --page docs/trust.md --table
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

from coreset_mcmc_benchmarks.options import quick_parser
from coreset_mcmc_benchmarks.verdicts.measure import measure
from coreset_mcmc_benchmarks.verdicts.page import write_page
from coreset_mcmc_benchmarks.verdicts.problems import MAKE, Problem, constructions, gaussian
from coreset_mcmc_benchmarks.verdicts.table import DRAWS, verdicts_table

QUICK_ROWS, QUICK_DRAWS, QUICK_SIZES = 500, 200, (25,)


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


def run_missing(name: str, problem: Problem, seed: int, wanted: Sequence[str], out: Path, quick: bool) -> None:
    """All constructions of one problem that have no row yet, or the wanted ones of them."""
    table = verdicts_table(out)
    jobs = [Job(name, construction, size, seed) for construction, size in constructions(problem)]
    for job in table.missing(job for job in jobs if not wanted or job.construction in wanted):
        draws = QUICK_DRAWS if quick else DRAWS
        row = job._asdict() | measure(problem, job.construction, job.coreset_size, seed, draws)
        table.append(row)
        print(*job, {key: row.get(key) for key in ("true_kl", "kl_estimate", "failure")}, flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what is missing and write the tables."""
    parser = quick_parser("trust", __doc__)
    parser.add_argument("--problem", nargs="*", choices=list(MAKE), default=[], metavar="NAME", help="only these")
    parser.add_argument("--construction", nargs="*", default=[], help="only these")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--references", type=Path, help="folder of the references; by default one in that of the table")
    parser.add_argument("--data", type=Path, help="the folder with poisson_reg.csv; otherwise it is downloaded")
    parser.add_argument("--out", type=Path, default=Path("trust"), help="folder of the table")
    parser.add_argument("--page", type=Path, help="page that holds the tables; by default trust.md beside the table")
    parser.add_argument("--table", action="store_true", help="only write the tables")
    options = parser.parse_args(arguments)
    if not options.table:
        known = {"gaussian": quick_problem} if options.quick else MAKE
        names = options.problem or list(known)
        made = cache(lambda name: known[name](options.references or options.out / "references", options.data))
        for seed in range(options.seeds):
            for name in names:
                run_missing(name, made(name), seed, options.construction, options.out, options.quick)
    write_page(options.out, options.page or options.out / "trust.md")
    return 0


if __name__ == "__main__":
    sys.exit(main())
