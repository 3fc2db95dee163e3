"""What there is to run: one job for each experiment, method, coreset size and seed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from coreset_mcmc_benchmarks.paper.budget import Budget
from coreset_mcmc_benchmarks.paper.cases import CASES
from coreset_mcmc_benchmarks.paper.diagnostics import METHODS
from coreset_mcmc_benchmarks.paper.gaussian import FEW_VARIANTS, VARIANTS
from coreset_mcmc_benchmarks.paper.settings import MINIBATCH_RATIO, NUM_UPDATES

EXPERIMENTS = ("gaussian", *CASES)

ROWS = {"linear": 98_673, "logistic": 98_673, "poisson": 15_641, "sparse": 50_000}
NANOSECONDS = {"linear": 9.0, "logistic": 16.0, "poisson": 24.0, "sparse": 8.0}
"""Roughly what the log-likelihood of one row takes on one core."""
MICROSECONDS_PER_STEP = {"linear": 200.0, "logistic": 250.0, "poisson": 1_200.0, "sparse": 120.0}
"""Roughly what a kernel step of two chains on 500 rows takes on one core."""


class Job(NamedTuple):
    """One run."""

    experiment: str
    method: str
    coreset_size: int | None
    seed: int
    variant: str = ""
    """The setting of a Gaussian curve."""

    @property
    def key(self) -> tuple[str, ...]:
        """How the job is found in a table of strings."""
        size = "" if self.coreset_size is None else str(self.coreset_size)
        return (self.experiment, self.method, size, str(self.seed), self.variant)


def all_jobs(
    experiments: Sequence[str],
    methods: Sequence[str],
    coreset_sizes: Sequence[int],
    repeats: int,
    *,
    is_complete: bool = True,
) -> list[Job]:
    """Every run that is asked for; one seed of everything before the next seed of anything.

    Without ``is_complete`` there are just enough curves to see every panel of Figure 1, and further rows of a baseline
    (the mode found, at its best) on the first problem alone that they can be run on.
    """
    jobs = []
    if "gaussian" in experiments:
        variants = VARIANTS if is_complete else FEW_VARIANTS
        jobs += [Job("gaussian", "coreset-mcmc", variant.coreset_size, 1, variant.name) for variant in variants]
    shown: set[str] = set()
    for seed in range(1, repeats + 1):
        for experiment in (name for name in CASES if name in experiments):
            for method in methods:
                contestant = METHODS[method]
                if contestant.needs_gradient and experiment == "sparse":
                    continue
                if contestant.is_extra and not is_complete and method in shown:
                    continue
                shown.add(method)
                sizes = coreset_sizes if contestant.has_coreset else (None,)
                jobs += [Job(experiment, method, size, seed) for size in sizes]
    return jobs


def expected_seconds(jobs: Iterable[Job], budget: Budget) -> float:
    """A rough prediction for one core, compilation included."""
    return sum(_expected(job, budget) for job in jobs)


def _expected(job: Job, budget: Budget) -> float:
    compilation = 8.0
    if job.experiment == "gaussian":
        return compilation + budget.gaussian_iterations * 1e-4
    rows = min(ROWS[job.experiment], budget.max_rows or ROWS[job.experiment])
    size = job.coreset_size or 0
    row_seconds = 1e-9 * NANOSECONDS[job.experiment]
    move = 1e-6 * MICROSECONDS_PER_STEP[job.experiment] * (0.1 + 0.9 * size / 500)
    updates = budget.steps(NUM_UPDATES[job.experiment])
    sampling = budget.kept * move
    passes = {
        "coreset-mcmc": 2 * rows,
        "coreset-mcmc-hot-dog": 2 * rows,
        "coreset-mcmc-s": 2 * MINIBATCH_RATIO[job.experiment] * size,
        "coreset-mcmc-s-published": 2 * MINIBATCH_RATIO[job.experiment] * size,
        "quasi-newton": 2 * rows,
    }
    if job.method in passes:
        return compilation + updates * (passes[job.method] * row_seconds + move) + sampling
    own = {
        "least-squares": 2_000 * rows * row_seconds,
        "quasi-newton-best": 6 * updates * 2 * rows * row_seconds,
        "sparse-hamiltonian-flow": budget.steps(50_000) * (5e-4 + 800 * size * row_seconds),
        "sparse-hamiltonian-flow-best": budget.steps(50_000) * (5e-4 + (800 * size + 5 * rows) * row_seconds),
        "austerity-mh": 2 * budget.kept * rows * row_seconds / 20,
        "austerity-mh-best": 10 * budget.kept * rows * row_seconds,
        "confidence-mh": 10 * budget.kept * rows * row_seconds,
        "confidence-mh-best": 10 * budget.kept * rows * row_seconds,
    }
    langevin, friction = 16 * budget.kept * 1_000 * row_seconds, 480 * budget.kept * 1_000 * row_seconds
    own |= dict.fromkeys(("sgld-cv", "sgld-cv-mode", "sgld-cv-best"), langevin)
    own |= dict.fromkeys(("sghmc-cv", "sghmc-cv-mode", "sghmc-cv-best"), friction)
    return compilation + own.get(job.method, 0.0) + sampling
