"""Who competes: our default, the published algorithm, and the best that full data or other approximations offer.

A contestant gets the data in memory and returns draws with an account of its time. All work in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from coreset_mcmc_benchmarks.speed.problems import PROBLEMS, Problem

MOST_ROWS_FOR_SUBSAMPLING, MOST_ROWS_FOR_PYMC = 500_000, 100_000
OTHER_LIBRARIES = ("poisson", "linear", "logistic", "flights")
"""Problems on which samplers of further libraries are worth their time."""


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
        run: from the kind of the model, data, effort and a seed to draws, as ``module:function`` of this package.
        libraries: what a person would import; the clock runs while they load.
        suits: whether it can, and is worth to, run on the problem.
        most_repeats: seeds at most, where a run is long and its time no close call.
        num_devices: that JAX is told of, one for each chain.
        has_workers: whether it starts processes, whose memory counts, too.
    """

    title: str
    run: str
    libraries: tuple[str, ...]
    suits: Callable[[str], bool]
    most_repeats: int | None = None
    num_devices: int = 1
    has_workers: bool = False


def _everywhere(name: str) -> bool:
    del name
    return True


def _published(name: str) -> bool:
    return PROBLEMS[name].case is not None


def _is_continuous(name: str) -> bool:
    return PROBLEMS[name].has_peer


def _for_subsampling(name: str) -> bool:
    """What Taylor proxies were made for, with few enough rows to hold their derivatives."""
    problem: Problem = PROBLEMS[name]
    return problem.kind == "logistic" and problem.rows <= MOST_ROWS_FOR_SUBSAMPLING and not problem.is_large


def _for_others(name: str) -> bool:
    return name in OTHER_LIBRARIES


def _for_pymc(name: str) -> bool:
    return _for_others(name) and PROBLEMS[name].rows <= MOST_ROWS_FOR_PYMC


CONTESTANTS: dict[str, Contestant] = {
    "ours": Contestant("cm.fit", "ours:run_ours", ("coreset_mcmc",), _everywhere),
    "published": Contestant(
        "Coreset MCMC as published", "published:run_published", ("coreset_mcmc",), _published, most_repeats=1
    ),
    "nuts": Contestant(
        "NumPyro NUTS", "numpyro_peers:run_nuts", ("jax", "numpyro"), _is_continuous, num_devices=2
    ),
    "blackjax": Contestant(
        "BlackJAX NUTS", "blackjax_peers:run_blackjax_nuts", ("jax", "blackjax"), _for_others, num_devices=2
    ),
    "nutpie": Contestant("nutpie, Numba", "pymc_peers:run_nutpie_numba", ("pymc", "nutpie"), _for_pymc),
    "nutpie-jax": Contestant(
        "nutpie, JAX", "pymc_peers:run_nutpie_jax", ("jax", "pymc", "nutpie"), _for_others
    ),
    "pymc": Contestant(
        "PyMC NUTS", "pymc_peers:run_pymc", ("pymc",), _for_pymc, most_repeats=1, has_workers=True
    ),
    "hmcecs": Contestant(
        "NumPyro HMCECS", "numpyro_peers:run_hmcecs", ("jax", "numpyro"), _for_subsampling, most_repeats=1,
        num_devices=2,
    ),
    "laplace": Contestant("Laplace + PSIS", "ours:run_laplace", ("coreset_mcmc",), _is_continuous),
    "pathfinder": Contestant("Pathfinder", "blackjax_peers:run_pathfinder", ("jax", "blackjax"), _is_continuous),
    "advi": Contestant("Mean-field ADVI", "numpyro_peers:run_advi", ("jax", "numpyro"), _for_others),
    "statsmodels": Contestant(
        "statsmodels GLM", "point_estimate:run_statsmodels", ("statsmodels.api",), _for_others
    ),
}  # fmt: skip
QUICK_OTHERS = ("simulated-1e5",)
"""Where further libraries run on few rows."""


def all_jobs(problems: Sequence[str], contestants: Sequence[str], repeats: int, is_quick: bool = False) -> list[Job]:
    """Problem by problem, one seed of everyone before the next seed of anyone."""
    return [
        Job(problem, name, seed)
        for problem in PROBLEMS
        if problem in problems
        for seed in range(1, repeats + 1)
        for name, contestant in CONTESTANTS.items()
        if name in contestants and _runs(name, problem, is_quick)
        if seed <= min(contestant.most_repeats or repeats, PROBLEMS[problem].most_repeats or repeats)
    ]


def _runs(name: str, problem: str, is_quick: bool) -> bool:
    suits = CONTESTANTS[name].suits
    return suits(problem) or (is_quick and suits in (_for_others, _for_pymc) and problem in QUICK_OTHERS)
