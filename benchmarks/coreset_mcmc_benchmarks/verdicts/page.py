"""The recorded numbers under the rules as they are now, as tables of a page."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

from coreset_mcmc.diagnostics.mixing import SamplingQuality
from coreset_mcmc.posterior.distance import NEGLIGIBLE
from coreset_mcmc.verdict import BAD, CARE, GOOD, Finding, rules
from coreset_mcmc.verdict.verdict import worst
from coreset_mcmc_benchmarks.markdown import table_lines
from coreset_mcmc_benchmarks.verdicts.table import CHAINS, DRAWS, verdicts_table

BEGIN, END = "<!-- tables of coreset-mcmc bench trust begin -->", "<!-- tables of coreset-mcmc bench trust end -->"
TRUE_GOOD, TRUE_BAD = 0.1, 1.0
"""Nats: the limits that the verdict itself has for the estimated KL, see :mod:`coreset_mcmc.verdict.rules`."""
BANDS = {GOOD: f"below {TRUE_GOOD:g}", CARE: f"{TRUE_GOOD:g} to {TRUE_BAD:g}", BAD: f"above {TRUE_BAD:g}"}
SHOWN = {
    "true_kl": "true KL", "half_variance": "half variance", "kl_estimate": "KL estimate", "pareto_k": "k-hat",
    "rhat_across_coresets": "R-hat", "effective_rows": "rows", "size_sensitivity": "half",
}  # fmt: skip
"""Columns of the page and their headings."""

HEAD = (
    "# Verdicts from too few rows to plenty", "",
    "`coreset-mcmc bench trust --set sizes` fits problems with too few rows, just enough and plenty, compares with "
    'long references on all rows and adds a row to [trust.csv](trust.csv) for each. "random-rows" is the default '
    'method on uniform rows, "uniform" has equal weights, "tripled" the weights of "random-rows" times three; '
    '"default" is `fit` as it comes. The recorded numbers are judged by the rules as they are now.', "",
)  # fmt: skip
"""What the page begins with."""

Row = dict[str, str]


def number(row: Row, name: str) -> float:
    """A number of the file; NaN if it is missing."""
    return float(row[name]) if row.get(name) else math.nan


def findings_of(row: Row) -> list[Finding]:
    """The recorded numbers under the rules as they are now."""
    value = partial(number, row)
    estimate, num_draws = value("kl_estimate"), int(value("num_draws"))
    quality = SamplingQuality(CHAINS, DRAWS, value("ess"), "", value("rhat"), "", int(value("num_diverging")))
    is_relevant = not estimate <= NEGLIGIBLE
    return [
        rules.distance(estimate, num_draws),
        rules.tails(value("pareto_k"), value("effective_draws"), num_draws, matters=is_relevant),
        rules.agreement(
            value("rhat_across_coresets"),
            value("largest_shift"),
            "",
            2,
            "a failed fit",
            kl_of_others=value("kl_of_others"),
        ),
        rules.rows(value("effective_rows"), int(value("dimension")), int(value("rows"))),
        rules.reserve(value("size_sensitivity"), int(row["coreset_size"]) // 2, "a failed fit", matters=is_relevant),
        rules.sampling(quality),
    ]


def true_level(row: Row) -> str:
    """The level that the true distance deserves."""
    distance = number(row, "true_kl")
    return GOOD if distance < TRUE_GOOD else CARE if distance <= TRUE_BAD else BAD


def confusion(rows: list[Row], levels: list[str]) -> list[list[str]]:
    """Counts of verdicts, one line for each band of true distances."""
    pairs = [(true_level(row), level) for row, level in zip(rows, levels, strict=True)]
    return [[band, *(str(pairs.count((true, said))) for said in BANDS)] for true, band in BANDS.items()]


def tables(rows: list[Row]) -> list[str]:
    """The confusion table of the verdict, what each finding alone would have said, and the runs themselves."""
    judged = [findings_of(row) for row in rows]
    verdicts = [worst(finding.level for finding in findings) for findings in judged]
    lines = [f"{len(rows)} runs. True KL in nats against the verdict:", ""]
    lines += table_lines(["true KL", *BANDS], confusion(rows, verdicts))
    lines += ["", "What each finding would have said alone, as counts of good / care / do not use:", ""]
    alone = []
    for findings in zip(*judged, strict=True):
        counts = confusion(rows, [finding.level for finding in findings])
        alone.append([findings[0].name, *(" / ".join(line[1:]) for line in counts)])
    lines += table_lines(["finding", *(f"true KL {band}" for band in BANDS.values())], alone)
    lines += ["", "The runs ([trust.csv](trust.csv) has all numbers):", ""]
    cells = [
        [
            *(row[name] for name in ("problem", "construction", "coreset_size")),
            *(f"{number(row, name):.2g}" for name in SHOWN),
            verdict,
        ]
        for row, verdict in zip(rows, verdicts, strict=True)
    ]
    return [*lines, *table_lines(["problem", "coreset", "M", *SHOWN.values(), "verdict"], cells)]


def write_page(folder: Path, page: Path) -> Path:
    """The page beside the table."""
    rows = [row for row in verdicts_table(folder).rows() if not row["failure"]]
    page.write_text("\n".join([*HEAD, *tables(rows), ""]))
    return page
