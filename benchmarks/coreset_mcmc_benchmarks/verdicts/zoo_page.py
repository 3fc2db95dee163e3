"""What the runs of the zoo say: who was right, who was wrong and called good, and how far off the estimates were."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

from coreset_mcmc.verdict import BAD, CARE, GOOD
from coreset_mcmc_benchmarks.markdown import table_lines
from coreset_mcmc_benchmarks.verdicts.measure import CRASHED, REFUSED
from coreset_mcmc_benchmarks.verdicts.page import BANDS, BEGIN, END, Row, number, true_level
from coreset_mcmc_benchmarks.verdicts.table import zoo_table

SAID = (GOOD, CARE, BAD, REFUSED, CRASHED)
OPTIMISTIC = 10.0
"""An estimate that is this much smaller than a true KL that matters."""


def has_draws(row: Row) -> bool:
    """Whether there is a result that can be right or wrong."""
    return row["verdict"] not in (REFUSED, CRASHED)


def is_right(row: Row) -> bool:
    """Within a tenth of a nat of the full posterior."""
    return has_draws(row) and true_level(row) == GOOD


def is_optimistic(row: Row) -> bool:
    """Wrong, with an estimate that is too small by a factor of ten and more."""
    return has_draws(row) and not is_right(row) and number(row, "true_kl") > OPTIMISTIC * number(row, "kl_estimate")


def confusion(rows: list[Row]) -> list[str]:
    """True KL against what was said."""
    lines = [
        [band, *(str(sum(has_draws(row) and true_level(row) == true and row["verdict"] == said for row in rows))
                 for said in SAID[:3])]
        for true, band in BANDS.items()
    ]  # fmt: skip
    without = [str(sum(row["verdict"] == said for row in rows)) for said in (REFUSED, CRASHED)]
    table = table_lines(["true KL", *SAID[:3]], lines)
    return [*table, "", f"No result: {without[0]} refused in words, {without[1]} crashed."]


def goals(rows: list[Row]) -> list[str]:
    """The three numbers that matter."""
    right = [row for row in rows if is_right(row)]
    good = sum(row["verdict"] == GOOD for row in right)
    wrong = [row for row in rows if has_draws(row) and not is_right(row) and row["verdict"] == GOOD]
    optimistic = [row for row in rows if is_optimistic(row)]
    not_flagged = sum(row["verdict"] == GOOD for row in optimistic)
    share = 100 * good / max(len(right), 1)
    seconds = sum(number(row, "cpu_seconds") for row in rows)
    return [
        f"- Wrong (true KL above 0.1) and called good: {len(wrong)} of {len(rows)} runs{named(wrong)}.",
        f"- Right (true KL below 0.1) and called good: {good} of {len(right)}, {share:.0f} %.",
        f"- Wrong with an estimate ten times too small: {len(optimistic)}{named(optimistic)}; "
        f"{not_flagged} of them called good.",
        f"- {seconds:.0f} CPU-seconds in all, {seconds / max(len(rows), 1):.1f} a run with its verdict.",
    ]


def named(rows: Iterable[Row]) -> str:
    """Names in brackets, if there are any."""
    names = sorted({row["problem"] for row in rows})
    return f" ({', '.join(names)})" if names else ""


def by_family(rows: list[Row]) -> list[str]:
    """One line for each family."""
    lines = []
    for family in dict.fromkeys(row["family"] for row in rows):
        some = [row for row in rows if row["family"] == family]
        right = [row for row in some if is_right(row)]
        wrong = [row for row in some if has_draws(row) and not is_right(row)]
        counts = [
            len(some), len(right), sum(row["verdict"] == GOOD for row in right), len(wrong),
            sum(row["verdict"] == GOOD for row in wrong), len(some) - len(right) - len(wrong),
        ]  # fmt: skip
        lines.append([family, *map(str, counts), f"{sum(number(row, 'cpu_seconds') for row in some):.0f}"])
    heads = ["family", "runs", "right", "and good", "wrong", "and good", "no result", "CPU-seconds"]
    return table_lines(heads, lines)


SHOWN = {
    "true_kl": "true KL", "kl_estimate": "KL estimate", "mean_error": "mean off, sd", "sd_error": "log sd off",
    "pareto_k": "k-hat", "rhat_across_coresets": "R-hat across", "ess": "ESS", "cpu_seconds": "CPU-s",
}  # fmt: skip


def all_runs(rows: list[Row]) -> list[str]:
    """One line for each run."""
    cells = [
        [
            row["problem"], row["seed"], row["coreset_size"],
            *("" if math.isnan(number(row, name)) else f"{number(row, name):.2g}" for name in SHOWN),
            row["verdict"],
        ]
        for row in rows
    ]  # fmt: skip
    return table_lines(["problem", "seed", "M", *SHOWN.values(), "verdict"], cells)


def not_good(rows: list[Row]) -> list[str]:
    """Right results that were not called good, and why; and what gave no result."""
    lines = [
        [row["problem"], row["seed"], row["verdict"], (row["failure"] or row["reason"]).replace("|", "/")]
        for row in rows
        if not has_draws(row) or (is_right(row) and row["verdict"] != GOOD)
    ]
    return table_lines(["problem", "seed", "verdict", "why"], lines)


def summary_lines(rows: list[Row]) -> list[str]:
    """What the page about trust shows."""
    return [
        f"{len(rows)} runs of {len({row['problem'] for row in rows})} problems. True KL in nats against the verdict:",
        "", *confusion(rows), "", *goals(rows), "", *by_family(rows),
    ]  # fmt: skip


def write_zoo(folder: Path, page: Path | None) -> Path:
    """The page of all runs beside the table, its picture, and the summary between the marks of a page."""
    rows = zoo_table(folder).rows()
    whole = folder / "trust_zoo.md"
    text = [
        "# The zoo: verdicts against the truth", "",
        "`coreset-mcmc bench trust` fits every problem of `benchmarks/coreset_mcmc_benchmarks/zoo` by default settings "
        "(but for the size M of the coreset), asks `fit.trust()` and compares the draws with the exact posterior.", "",
        *summary_lines(rows), "", "![true against estimated KL](trust_zoo.png)", "",
        "## Right but not called good, or no result", "", *not_good(rows), "",
        "## All runs", "", *all_runs(rows), "",
    ]  # fmt: skip
    whole.write_text("\n".join(text))
    if page is not None:
        old = page.read_text()
        before, _, rest = old.partition(BEGIN)
        page.write_text(before + "\n".join([BEGIN, "", *summary_lines(rows), "", END]) + rest.partition(END)[2])
    return whole
