"""The page of the comparison: what it is, a summary, and a line for each model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from coreset_mcmc_benchmarks.interop.libraries.agreement import ERRORS, LARGEST_RHAT, TOLERANCE
from coreset_mcmc_benchmarks.markdown import table_lines

INTRODUCTION = f"""# Models of other libraries: ours beside their own NUTS

Models of the [catalogue](gallery.md) on simulated rows, fitted by `cm.fit` with all its defaults (four chains of 1 000
draws) and by the NUTS of the library on all rows, in double precision (two chains, one after the other). Each side has
a process of its own, which is stopped after a limit by the clock, on a machine that does other work as well;
[libraries.csv](libraries.csv) says how many rows, draws and seconds. Seconds here are those of the processor,
over all cores, without importing, with making the model and compiling;
other work on the machine changes them little. "Agrees" is yes if every mean and every standard deviation of every
parameter differs by at most {ERRORS:g} Monte Carlo errors of both sides together plus {TOLERANCE:g} standard
deviations of the posterior, and the chains of each side agree among themselves (R-hat up to {LARGEST_RHAT}).
Otherwise it names the worst parameter, and says "unclear" if it is the chains of NUTS that disagree. Shifts and
ratios of standard deviations are the largest of a model.

`coreset-mcmc bench libraries --out docs/benchmarks`
"""
HEADINGS = (
    "library", "model", "d", "agrees", "estimated KL", "largest shift (sd)", "(MC errors)", "sd ratio",
    "CPU s: ours", "NUTS", "smallest ESS: ours", "NUTS", "divergences: ours", "NUTS", "largest R-hat: ours", "NUTS",
)  # fmt: skip

Row = Mapping[str, str]


def written_page(rows: Sequence[Row]) -> str:
    """All of it."""
    return "\n".join([INTRODUCTION, *_summary(rows), "", *table_lines(HEADINGS, [_cells(row) for row in rows]), ""])


def _summary(rows: Sequence[Row]) -> list[str]:
    both = [row for row in rows if not row["ours_failure"] and not row["nuts_failure"]]
    agreeing = sum(row["agrees"] == "yes" for row in rows)
    ratios = [float(row["nuts_processor_seconds"]) / float(row["ours_processor_seconds"]) for row in both]
    others = sum(row["glm"] == "no" for row in rows)
    lines = [
        f"{len(rows)} models, {others} of them not generalised linear. Both sides ended in {len(both)}, of which "
        f"{agreeing} agree. Not done or failed: ours {_failed(rows, 'ours')}, NUTS {_failed(rows, 'nuts')}."
    ]
    if ratios:
        faster = sum(ratio > 1.0 for ratio in ratios)
        lines.append(
            f"Ours took fewer seconds of the processor in {faster} of {len(both)}; NUTS took "
            f"{np.median(ratios):.2g} times as many in the median ({min(ratios):.2g} to {max(ratios):.2g})."
        )
    return lines


def _failed(rows: Sequence[Row], side: str) -> int:
    return sum(bool(row[f"{side}_failure"]) for row in rows)


def _number(row: Row, name: str, form: str) -> str:
    return f"{float(row[name]):{form}}" if row[name] else ""


def _cells(row: Row) -> list[str]:
    failures = [f"{side}: {row[f'{side}_failure']}" for side in ("ours", "nuts") if row[f"{side}_failure"]]
    ratio = f"{_number(row, 'smallest_deviation_ratio', '.2f')} to {_number(row, 'largest_deviation_ratio', '.2f')}"
    return [
        row["library"],
        row["model"],
        row["parameters"],
        "; ".join(failures).replace("|", "/") or row["agrees"],
        _number(row, "kl_estimate", ".2g"),
        _number(row, "largest_shift", ".3f"),
        _number(row, "largest_shift_in_errors", ".1f"),
        "" if failures else ratio,
        *(_number(row, f"{side}_processor_seconds", ".0f") for side in ("ours", "nuts")),
        *(_number(row, f"{side}_min_ess", ".0f") for side in ("ours", "nuts")),
        *(row[f"{side}_divergences"] for side in ("ours", "nuts")),
        *(_number(row, f"{side}_max_rhat", ".3f") for side in ("ours", "nuts")),
    ]
