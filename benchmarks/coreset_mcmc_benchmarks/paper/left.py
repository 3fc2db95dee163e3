"""Which runs the comparison wants in the end, and which of them the table does not have yet."""

from __future__ import annotations

from collections import defaultdict

import pandas as pd

from coreset_mcmc_benchmarks.paper.budget import FULL
from coreset_mcmc_benchmarks.paper.cases import CASES
from coreset_mcmc_benchmarks.paper.diagnostics import METHODS
from coreset_mcmc_benchmarks.paper.jobs import Job, all_jobs, expected_seconds
from coreset_mcmc_benchmarks.paper.settings import CONTESTANTS

MANY_SEEDS = ("coreset-mcmc", "quasi-newton", "sparse-hamiltonian-flow", "least-squares")
MANY_SEEDS_AT = (50, 100, 500)
MANY, FEW = 10, 3


def is_wanted(job: Job) -> bool:
    """Ten seeds of what the paper is about and of methods without a coreset, three of everything else."""
    if not METHODS[job.method].has_coreset:
        return job.seed <= MANY
    has_many = job.method in MANY_SEEDS and job.coreset_size in MANY_SEEDS_AT
    return job.seed <= (MANY if has_many else FEW)


def wanted_jobs() -> list[Job]:
    """Everything but Figure 1, which has been run."""
    return [job for job in all_jobs(list(CASES), list(CONTESTANTS), FULL.coreset_sizes, MANY) if is_wanted(job)]


def left_section(runs: pd.DataFrame) -> list[str]:
    """By method how many runs there are of how many, and what the rest would take."""
    sizes = runs["coreset_size"].map(lambda size: "" if pd.isna(size) else str(int(size)))
    done = set(zip(runs["experiment"], runs["method"], sizes, runs["seed"].astype(str), strict=True))
    by_method: dict[str, list[Job]] = defaultdict(list)
    for job in wanted_jobs():
        by_method[job.method].append(job)
    lines = [
        "## What has not been run",
        "",
        f"Wanted are {FEW} seeds of every coreset method at every size, {MANY} of Coreset MCMC, QNC, SHF and the",
        f"default of `fit` at M = {', '.join(map(str, MANY_SEEDS_AT))}, and {MANY} of every method without a coreset.",
        "Hours are of one core, predicted with an error of a factor of two; `coreset-mcmc bench paper` runs what has",
        "no row.",
        "",
        "| method | runs wanted | of them left | core-hours left |",
        "|---|---|---|---|",
    ]
    all_left: list[Job] = []
    for method, jobs in by_method.items():
        left = [job for job in jobs if job.key[:4] not in done]
        all_left += left
        hours = expected_seconds(left, FULL) / 3_600.0
        lines.append(f"| {CONTESTANTS[method].title} | {len(jobs)} | {len(left)} | {hours:.1f} |")
    total = sum(map(len, by_method.values()))
    lines.append(f"| **all** | {total} | {len(all_left)} | {expected_seconds(all_left, FULL) / 3_600.0:.0f} |")
    return [*lines, ""]
