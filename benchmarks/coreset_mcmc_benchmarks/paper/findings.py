"""The page of findings: what the paper says, what was measured here, and whether the two agree by a stated rule."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from coreset_mcmc_benchmarks.paper.finding import Finding, Judged, Tables
from coreset_mcmc_benchmarks.paper.findings_gaussian import GAUSSIAN
from coreset_mcmc_benchmarks.paper.findings_quality import QUALITY
from coreset_mcmc_benchmarks.paper.findings_speed import SPEED
from coreset_mcmc_benchmarks.paper.reasons import OPEN
from coreset_mcmc_benchmarks.paper.table import read_curves, read_runs

PAGE = "findings.md"
FINDINGS: tuple[Finding, ...] = (*QUALITY, *SPEED, *GAUSSIAN)


def write_findings(folder: Path) -> Path:
    """Write the page beside the tables."""
    tables = Tables(read_runs(folder), read_curves(folder))
    judged = [(finding, finding.judge(tables)) for finding in FINDINGS]
    counts = Counter(one.agrees for _, one in judged)
    lines = [
        "# Findings of the paper",
        "",
        "Numbers are medians over runs, of two-moment KL in nats unless said, from [runs.csv](runs.csv); the page is",
        "made by `coreset-mcmc bench paper --figures-only`. [summary.md](summary.md) has the number of runs behind",
        "each, [baselines.md](baselines.md) every number beside the authors'. *Agrees* and *differs* follow from the",
        "rule in the fourth column; the last tells what was measured about the reason. Seconds are of a machine that",
        "had other work to do.",
        "",
        f"{counts[True]} agree, {counts[False]} differ, of {counts[None]} not enough has been run.",
        "",
        "| the paper says | measured here | | by the rule | reason |",
        "|---|---|---|---|---|",
    ]
    lines += [_line(finding, one, finding.reason(tables)) for finding, one in judged]
    path = folder / PAGE
    path.write_text("\n".join(lines) + "\n")
    return path


def _line(finding: Finding, judged: Judged, reason: str) -> str:
    verdict = {True: "agrees", False: "**differs**", None: "not enough runs"}[judged.agrees]
    reason = reason or (OPEN if judged.agrees is False else "")
    return f"| {finding.claim} | {judged.numbers} | {verdict} | {finding.rule} | {reason} |"
