"""Who competes: our default, the published algorithm, and the best that full data or other approximations offer.

A contestant gets the data in memory and returns draws with an account of its time. All work in double precision.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from coreset_mcmc.fitting.fit import fit
from coreset_mcmc.methods.full_data import Laplace
from coreset_mcmc.models.sparse import least_squares_start
from coreset_mcmc.results.fit import Fit
from coreset_mcmc_benchmarks.draws import draws_of
from coreset_mcmc_benchmarks.paper.budget import Budget
from coreset_mcmc_benchmarks.paper.cases import CASE_OF
from coreset_mcmc_benchmarks.paper.settings import CONTESTANTS as PUBLISHED
from coreset_mcmc_benchmarks.speed.effort import Effort
from coreset_mcmc_benchmarks.speed.full_data import run_hmcecs, run_nuts, run_pathfinder
from coreset_mcmc_benchmarks.speed.outcome import Outcome
from coreset_mcmc_benchmarks.speed.problems import PROBLEMS, Data, Problem

CORESET_SIZE = 500
NUM_CHAINS = 4


class Job(NamedTuple):
    """One run."""

    problem: str
    contestant: str
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """How the job is found in a table of strings."""
        return (self.problem, self.contestant, str(self.seed))


@dataclass(frozen=True)
class Contestant:
    """A way from data to draws.

    Args:
        title: for tables.
        run: from the problem, its data, the effort and a seed to draws.
        libraries: what a person would import; the clock runs while they load.
        suits: whether it can, and is worth to, run on the problem.
    """

    title: str
    run: Callable[[Problem, Data, Effort, int], Outcome]
    libraries: tuple[str, ...]
    suits: Callable[[Problem], bool]


def _start(problem: Problem, data: Data) -> dict[str, Any]:
    """The prior of the sparse regression is no start."""
    return {"initvals": least_squares_start(data)} if problem.case == "sparse" else {}


def _ours(problem: Problem, data: Data, effort: Effort, seed: int, coreset_size: Any = None) -> Outcome:
    arguments = _start(problem, data)
    size = {"coreset_size": coreset_size} if coreset_size else {}
    return _fitted(problem, data, seed, draws=effort.kept // NUM_CHAINS, chains=NUM_CHAINS, **arguments, **size)


def _ours_auto(problem: Problem, data: Data, effort: Effort, seed: int) -> Outcome:
    return _ours(problem, data, effort, seed, "auto")


def _laplace(problem: Problem, data: Data, effort: Effort, seed: int) -> Outcome:
    draws = effort.weighted_draws(len(next(iter(data.values())))) // NUM_CHAINS
    outcome = _fitted(problem, data, seed, method=Laplace(), chains=NUM_CHAINS, draws=draws, tune=0)
    return outcome._replace(coreset_size=None)


def _published(problem: Problem, data: Data, effort: Effort, seed: int) -> Outcome:
    """Coreset MCMC with gradients of all rows, at the settings the authors chose with the true posterior at hand."""
    assert problem.case is not None
    case = CASE_OF[problem.case](data)
    plan = PUBLISHED["coreset-mcmc"].plan(
        case, Budget(share=effort.share_of_paper, kept=effort.kept), CORESET_SIZE, seed
    )
    return _fitted(problem, data, seed, **plan.arguments)._replace(note=plan.label)


def _fitted(problem: Problem, data: Data, seed: int, **arguments: Any) -> Outcome:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        fitted: Fit = fit(problem.model(data), data, random_seed=seed, progressbar=False, **arguments)
    draws = draws_of(fitted)
    kept = next(iter(draws.values())).shape[1]
    stages = (fitted.pilot, fitted.training, fitted.sampling, fitted.check)
    return Outcome(
        draws=draws,
        training_seconds=fitted.pilot.seconds + fitted.training.seconds,
        training_compile_seconds=fitted.pilot.compile_seconds + fitted.training.compile_seconds,
        sampling_seconds=fitted.sampling.seconds * kept / max(fitted.sampling.num_steps, 1),
        evaluations=sum(stage.num_evaluations for stage in stages),
        coreset_size=fitted.coreset.size if fitted.has_coreset else None,
        kl_estimate=fitted.kl_estimate,
        warnings="; ".join(str(warning.message) for warning in caught),
    )


def _is_continuous(problem: Problem) -> bool:
    return problem.peer is not None


def _is_logistic(problem: Problem) -> bool:
    """What subsampling with Taylor proxies was made for, with few enough rows to hold their derivatives."""
    return problem.peer == "logistic" and problem.rows <= 1_000_000 and not problem.is_large


CONTESTANTS: dict[str, Contestant] = {
    "ours": Contestant("cm.fit", _ours, ("coreset_mcmc",), lambda problem: True),
    "ours-auto": Contestant('cm.fit, size "auto"', _ours_auto, ("coreset_mcmc",), lambda problem: problem.is_large),
    "published": Contestant(
        "Coreset MCMC as published", _published, ("coreset_mcmc",), lambda problem: problem.case is not None
    ),
    "nuts": Contestant("NumPyro NUTS", run_nuts, ("jax", "numpyro"), _is_continuous),
    "hmcecs": Contestant("NumPyro HMCECS", run_hmcecs, ("jax", "numpyro"), _is_logistic),
    "laplace": Contestant("Laplace + PSIS", _laplace, ("coreset_mcmc",), _is_continuous),
    "pathfinder": Contestant("Pathfinder", run_pathfinder, ("jax", "blackjax"), _is_continuous),
}


def all_jobs(problems: Sequence[str], contestants: Sequence[str], repeats: int) -> list[Job]:
    """One seed of everything before the next seed of anything."""
    return [
        Job(problem, name, seed)
        for seed in range(1, repeats + 1)
        for problem in PROBLEMS
        if problem in problems
        for name in CONTESTANTS
        if name in contestants and CONTESTANTS[name].suits(PROBLEMS[problem])
    ]
