"""The table of methods and the page made from it."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from coreset_mcmc_benchmarks.markdown import table_lines
from coreset_mcmc_benchmarks.runs_table import RunsTable

KEYS = ("problem", "method", "seed")
FIELDS = (
    *KEYS, "rows", "coreset_size", "kl", "js", "training_seconds", "sampling_seconds", "min_ess", "ess_per_second",
    "evaluations_per_effective_draw", "failure",
)  # fmt: skip
INTRODUCTION = """# Every method on every model

`coreset-mcmc bench methods --out docs/benchmarks` measures, with `--table` it writes this page from
[methods.csv](methods.csv) alone. Coresets have 200 rows; 4 chains of 1 000 draws each after 500 discarded.
Methods have the paper's settings where it names some (chosen by the authors with the true posterior at
hand), else their defaults; `least-squares` is the default of `fit`, `coreset-mcmc` the paper's algorithm
with Hot DoG in doubling epochs, which needs no learning rate either. Proposal variances of the two
Metropolis-Hastings methods fit the posterior's scale, except on the paper's own data, where they are the
paper's. KL is the two-moment KL to the reference; about d (d + 3) / (4 ESS) of it is Monte Carlo noise.
Evaluations count log-likelihoods of single rows, training included, for one effective draw. Seconds leave
compilation out; the two cores were shared. Sparse VI (20 updates on 1 000 rows for each row added) and flows
(20 000 steps) train for less than their defaults, to end within minutes. Chains start where the model
says, on the Poisson data far from the posterior: Metropolis-Hastings has not arrived after 1 500 steps. The
ESS of Laplace draws is too high, because resampling repeats some of them in random order.
"""


def methods_table(folder: Path) -> RunsTable:
    """One row for each problem, method and seed."""
    return RunsTable(folder / "methods.csv", FIELDS, KEYS, digits=4)


def write_page(folder: Path) -> Path:
    """One Markdown table for each problem, best KL first, failures last."""
    lines = [INTRODUCTION]
    rows = methods_table(folder).rows()
    for problem in dict.fromkeys(row["problem"] for row in rows):
        mine = [row for row in rows if row["problem"] == problem]
        mine.sort(key=lambda row: float(row["kl"]) if row["kl"] else np.inf)
        lines += [f"## {problem} ({int(mine[0]['rows']):,} rows)", "", *_problem_table(mine), ""]
    path = folder / "methods.md"
    path.write_text("\n".join(lines))
    return path


def _problem_table(rows: list[dict[str, str]]) -> list[str]:
    """The column of discrete coordinates is there where the problem has some."""
    has_js = any(row["js"] for row in rows)
    headings = ["method", "KL", *(["JS"] if has_js else []), "training s", "ESS/s", "evaluations / effective draw"]
    cells = []
    for row in rows:
        if row["failure"]:
            is_refusal = "expected" in row["failure"]
            words = "refused: no gradients, or discrete parameters" if is_refusal else row["failure"]
            cells.append([row["method"], words, *[""] * (len(headings) - 2)])
        else:
            numbers = [row["kl"], *([row["js"]] if has_js else []), row["training_seconds"], row["ess_per_second"]]
            cells.append([row["method"], *numbers, f"{float(row['evaluations_per_effective_draw']):,.0f}"])
    return table_lines(headings, cells)
