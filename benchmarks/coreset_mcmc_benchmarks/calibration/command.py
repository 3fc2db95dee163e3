"""Simulation-based calibration: are 90 % intervals right in 90 % of all cases, for everything that ``fit`` does?

Each replication draws parameters from the prior and rows from the parameters, fits by default settings with few rows
and draws, and ranks the parameters among the draws. The ranks of a calibrated pipeline are uniform. The same with
weights that are three times too large is not, which shows that the test can fail. Replications are appended as they
come; a second call makes those that are missing.

    coreset-mcmc bench calibration --out docs/benchmarks --replications 100
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import coreset_mcmc as cm
from coreset_mcmc_benchmarks.calibration.models import MODELS
from coreset_mcmc_benchmarks.calibration.page import DEFAULT, draw, ranks_table, write_page
from coreset_mcmc_benchmarks.calibration.ranks import BROKEN, replication
from coreset_mcmc_benchmarks.options import check_names, quick_parser

TWINS = ("logistic", "bounded")
"""Models whose broken twin is calibrated, too."""
QUICK_MODELS, QUICK_REPLICATIONS = ("bounded",), 2


class Job(NamedTuple):
    """One replication."""

    model: str
    construction: str
    replication: int

    @property
    def key(self) -> tuple[str, ...]:
        """As the file holds it."""
        return (self.model, self.construction, str(self.replication))


def run(folder: Path, job: Job) -> None:
    """One replication; an error in words is a row, too."""
    table = ranks_table(folder)
    seed = 1_000 * list(MODELS).index(job.model) + job.replication
    try:
        ranks = replication(MODELS[job.model], seed, broken=job.construction == BROKEN)
    except (cm.InputError, cm.RunError) as error:
        table.append(job._asdict() | {"failure": str(error)[:160]})
        return
    table.append(*(job._asdict() | {"parameter": name, "rank": rank} for name, rank in ranks.items()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what is missing, and the page."""
    parser = quick_parser("calibration", __doc__)
    parser.add_argument("--model", nargs="*", default=[], metavar="NAME", help=f"some of {', '.join(MODELS)}")
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("calibration"), help="folder of the table")
    parser.add_argument("--table", action="store_true", help="only write the page")
    options = parser.parse_args(arguments)
    check_names("--model", options.model, list(MODELS))
    names = options.model or (QUICK_MODELS if options.quick else list(MODELS))
    count = QUICK_REPLICATIONS if options.quick else options.replications
    jobs = [
        Job(name, construction, number)
        for name in names
        for construction in ((DEFAULT, BROKEN) if name in TWINS else (DEFAULT,))
        for number in range(count)
    ]
    if not options.table:
        for job in ranks_table(options.out).missing(jobs):
            run(options.out, job)
            if job.replication + 1 == count:
                print(*job, flush=True)
    write_page(options.out)
    draw(options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
