"""A catalogue of models of NumPyro, PyMC and Bambi: which convert as they are, and how exact their densities are.

Each model is made on simulated rows and converted; our log density of all rows and the prior is compared with the
library's own at random positions. What is refused says why.

    coreset-mcmc bench gallery --out docs/benchmarks
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from coreset_mcmc_benchmarks.interop.catalogue.bambi_models import BAMBI
from coreset_mcmc_benchmarks.interop.catalogue.correlated_groups import NUMPYRO_GROUPS, PYMC_GROUPS
from coreset_mcmc_benchmarks.interop.catalogue.entry import Entry
from coreset_mcmc_benchmarks.interop.catalogue.measure import measure
from coreset_mcmc_benchmarks.interop.catalogue.numpyro_models import NUMPYRO
from coreset_mcmc_benchmarks.interop.catalogue.pymc_distributions import DISTRIBUTIONS
from coreset_mcmc_benchmarks.interop.catalogue.some_rows import SOME_ROWS
from coreset_mcmc_benchmarks.interop.models import pymc_gallery
from coreset_mcmc_benchmarks.markdown import table_lines
from coreset_mcmc_benchmarks.options import check_names, quick_parser
from coreset_mcmc_benchmarks.runs_table import RunsTable

KEYS = ("library", "model", "rows")
FIELDS = (*KEYS, "glm", "converts", "density_error", "gradient_free", "refusal")
GALLERY = [
    Entry("PyMC", f"gallery: {name}", make, is_glm=name not in ("mixture", "radon"))
    for name, make in pymc_gallery.MODELS.items()
]
ENTRIES = [
    *NUMPYRO.entries, *NUMPYRO_GROUPS.entries, *GALLERY, *DISTRIBUTIONS.entries, *PYMC_GROUPS.entries,
    *SOME_ROWS.entries, *BAMBI.entries,
]  # fmt: skip
QUICK = ("NumPyro Poisson", "PyMC OrderedLogistic", "Bambi family gamma", "PyMC AR")
ROWS, QUICK_ROWS = 3_000, 60

INTRODUCTION = """# Models as they are

Every family of Bambi, every distribution of PyMC that can be observed row by row, those of NumPyro, and models of the
three galleries, on simulated rows (`benchmarks/coreset_mcmc_benchmarks/interop/catalogue`). The density error is the
largest relative difference between our log density of all rows and the prior and the library's own, at three random
positions. "Without gradient" are models whose derivatives do not exist; they are trained and sampled without.

`coreset-mcmc bench gallery --out docs/benchmarks`
"""


class Job(NamedTuple):
    """One model on a number of rows."""

    entry: Entry
    rows: int

    @property
    def key(self) -> tuple[str, ...]:
        """How the job is found in a table of strings."""
        return (self.entry.library, self.entry.name, str(self.rows))


def named(entry: Entry) -> str:
    """How the options call it."""
    return f"{entry.library} {entry.name}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the models that have no row yet, and write the page."""
    parser = quick_parser("gallery", __doc__)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--models", nargs="*", default=[], help="only these, such as 'PyMC Normal'")
    parser.add_argument("--out", type=Path, default=Path("interop"), help="folder of the table and the page")
    parser.add_argument("--table", action="store_true", help="only write the page")
    options = parser.parse_args(arguments)
    check_names("--models", options.models, [named(entry) for entry in ENTRIES])
    names = options.models or (QUICK if options.quick else [named(entry) for entry in ENTRIES])
    rows = QUICK_ROWS if options.quick else options.rows
    table = RunsTable(options.out / "gallery.csv", FIELDS, KEYS, digits=2)
    jobs = [Job(entry, rows) for entry in ENTRIES if named(entry) in names]
    for job in [] if options.table else table.missing(jobs):
        found = measure(job.entry, rows)
        is_glm = "yes" if job.entry.is_glm else "no"
        table.append({"library": job.entry.library, "model": job.entry.name, "rows": rows, "glm": is_glm, **found})
        print(named(job.entry), found, flush=True)
    (options.out / "gallery.md").write_text("\n".join([INTRODUCTION, *page_lines(table.rows()), ""]))
    return 0


def page_lines(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """A summary and the table."""
    converted = [row for row in rows if row["converts"] == "yes"]
    largest = max((float(row["density_error"]) for row in converted), default=0.0)
    others = sum(row["glm"] == "no" for row in rows)
    headings = (
        "library",
        "model",
        "generalised linear",
        "converts",
        "density error",
        "without gradient",
        "refused, because",
    )
    return [
        f"{len(rows)} models, {others} of them not generalised linear; {len(converted)} convert, with errors of at "
        f"most {largest:.0e}.",
        "",
        *table_lines(
            headings,
            [
                [
                    *(
                        row[name].replace("|", "\\\\|")
                        for name in ("library", "model", "glm", "converts", "density_error")
                    ),
                    row["gradient_free"],
                    row["refusal"].replace("|", "\\\\|"),
                ]
                for row in rows
            ],
        ),
    ]


if __name__ == "__main__":
    sys.exit(main())
