"""Which rows should enter a coreset: uniform ones, ones by outcome, or those that matter.

    python benchmarks/selection.py --data DIRECTORY

Trains the default method on the paper's regressions with each selection and writes two-moment KLs to
docs/benchmarks/selection.csv; runs that are in the table are not repeated. ``--table`` prints medians as Markdown.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from pathlib import Path

import pandas as pd

import coreset_mcmc as cm
from coreset_mcmc.diagnostics import metrics
from coreset_mcmc_benchmarks.paper.cases import CASES
from coreset_mcmc_benchmarks.paper.references import continuous, draws_of, reference

TABLE = Path("docs/benchmarks/selection.csv")
REFERENCES = Path("docs/paper/references")
FIELDS = ["experiment", "selection", "coreset_size", "seed", "kl", "kl_estimate", "training_seconds"]
SELECTIONS = {
    "influence (default)": None,
    "uniform": cm.selection.Uniform(),
    "by outcome": cm.selection.Stratified("y"),
}
SIZES, NUM_SEEDS, REFERENCE_DRAWS = (100, 500), 5, 12_000


def runs(data: Path) -> None:
    """What has no row yet."""
    done = {tuple(row) for row in pd.read_csv(TABLE)[FIELDS[:4]].astype(str).to_numpy()} if TABLE.exists() else set()
    for name in ("logistic", "linear", "poisson"):
        case = CASES[name](data, None)
        target = reference(case, REFERENCE_DRAWS, REFERENCES)
        for seed in range(1, NUM_SEEDS + 1):
            for label, selection in SELECTIONS.items():
                for size in SIZES:
                    key = (name, label, str(size), str(seed))
                    if key in done or (label == "by outcome" and name != "logistic"):
                        continue
                    fitted = cm.fit(
                        case.model, case.data, coreset_size=size, selection=selection, random_seed=seed,
                        draws=2_500, progressbar=False,
                    )  # fmt: skip
                    kl = metrics.two_moment_kl(continuous(draws_of(fitted)), target.mean, target.covariance)
                    append([*key, f"{kl:.4g}", f"{fitted.kl_estimate:.4g}", f"{fitted.training.seconds:.3g}"])


def append(row: list[str]) -> None:
    """One row to the table and to the terminal."""
    is_new = not TABLE.exists()
    with TABLE.open("a", newline="") as file:
        writer = csv.writer(file)
        if is_new:
            writer.writerow(FIELDS)
        writer.writerow(row)
    print(*row, flush=True)


def table() -> str:
    """Medians, and the largest value in brackets."""
    values = pd.read_csv(TABLE).groupby(["experiment", "coreset_size", "selection"])["kl"]
    cells = values.agg(lambda kl: f"{kl.median():.2g} ({kl.max():.2g})").unstack()[list(SELECTIONS)].fillna("")
    lines = ["| experiment | M | " + " | ".join(cells.columns) + " |", "|---" * (2 + len(cells.columns)) + "|"]
    rows = zip(cells.index, cells.to_numpy(), strict=True)
    lines += [f"| {name} | {size} | " + " | ".join(row) + " |" for (name, size), row in rows]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with poisson_reg.csv")
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if not options.table:
        warnings.simplefilter("ignore", UserWarning)
        runs(options.data)
    print(table())
