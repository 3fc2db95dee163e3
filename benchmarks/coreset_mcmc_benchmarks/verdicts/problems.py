"""Problems whose full posterior is known well enough to judge a verdict: closed form, NUTS or Gibbs on all rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import coreset_mcmc as cm
from coreset_mcmc.core.errors import RunError
from coreset_mcmc.models.gaussian_location import coreset_posterior
from coreset_mcmc_benchmarks.draws import Draws, continuous
from coreset_mcmc_benchmarks.paper.budget import FULL
from coreset_mcmc_benchmarks.paper.cases import CASES
from coreset_mcmc_benchmarks.paper.references import reference
from coreset_mcmc_benchmarks.references.checks import convergence
from coreset_mcmc_benchmarks.references.problems import DATA_SEED, PROBLEMS
from coreset_mcmc_benchmarks.references.sampling import Settings, sample
from coreset_mcmc_benchmarks.symmetries import unchanged

SMALL = 2_000
"""Rows of the problems beyond Laplace."""


@dataclass(frozen=True)
class Moments:
    """Of the continuous coordinates of the full posterior."""

    mean: np.ndarray
    covariance: np.ndarray
    ess: float


@dataclass(frozen=True)
class Problem:
    """A model, its data, its reference, and the coresets that are made for it."""

    model: cm.Model
    data: Any
    reference: Moments
    sizes: tuple[int, ...]
    fold: Callable[[Draws], Draws] = unchanged
    initvals: Any = None


def gaussian(folder: Path, data: Path | None, num_rows: int = 10_000) -> Problem:
    """Gaussian location, d = 10."""
    del folder, data
    rows = np.random.default_rng(0).normal(size=(num_rows, 10))
    with jax.enable_x64(True):
        mean, variance = coreset_posterior(jnp.asarray(rows), jnp.ones(num_rows))
    exact = Moments(np.asarray(mean), float(variance) * np.eye(10), math.inf)
    return Problem(cm.models.gaussian_location(10), rows, exact, (12, 25, 50, 100))


def of_the_paper(name: str, sizes: tuple[int, ...], folder: Path, data: Path | None) -> Problem:
    """An experiment of the paper on its own number of rows."""
    case = CASES[name](data, None)
    made = reference(case, FULL.reference_draws, folder)
    moments = Moments(made.mean, made.covariance, made.checks["min_ess"])
    return Problem(case.model, case.data, moments, sizes, initvals=case.start)


def small_problem(name: str) -> tuple[cm.Model, Any]:
    """The problems beyond Laplace with fewer rows and parameters."""
    rng = np.random.default_rng(DATA_SEED)
    if name == "hierarchical-logistic-regression":
        data = cm.models.hierarchical_logistic_regression_data(rng, SMALL, num_groups=20)
        return cm.models.hierarchical_logistic_regression(3, 20), data
    if name == "bradley-terry":
        return cm.models.bradley_terry(20), cm.models.bradley_terry_data(rng, SMALL, num_players=20)
    if name == "gaussian-mixture":
        return cm.models.gaussian_mixture(2), cm.models.gaussian_mixture_data(rng, SMALL)
    return cm.models.unidentified_regression(), cm.models.unidentified_regression_data(rng, SMALL)


def beyond_laplace(name: str, sizes: tuple[int, ...], folder: Path, data: Path | None) -> Problem:
    """One of them, folded onto one of its symmetric copies."""
    del data
    problem = replace(PROBLEMS[name], make=partial(small_problem, name))
    with jax.enable_x64(True):
        model, rows = problem.make()
        path = folder / f"trust-{name}-{SMALL}.npz"
        if not path.exists():
            settings = Settings(draws=1_500, tune=700, target_accept=problem.target_accept)
            drawn = sample(problem, model, rows, settings)
            chains = convergence(problem, drawn.draws)
            if chains.rhat > 1.01:
                raise RunError(f"The reference of {name} has R-hat {chains.rhat:.3f}: ask for more draws.")
            values = continuous(problem.fold(drawn.draws))
            pooled = values.reshape(-1, values.shape[-1])
            path.parent.mkdir(parents=True, exist_ok=True)
            np.savez(path, mean=pooled.mean(axis=0), covariance=np.cov(pooled, rowvar=False), ess=chains.ess)
    with np.load(path) as stored:
        moments = Moments(stored["mean"], stored["covariance"], float(stored["ess"]))
    return Problem(model, rows, moments, sizes, fold=problem.fold)


Make = Callable[[Path, Path | None], Problem]

MAKE: dict[str, Make] = {
    "gaussian": gaussian,
    "unidentified-regression": partial(beyond_laplace, "unidentified-regression", (10, 20, 40)),
    "bradley-terry": partial(beyond_laplace, "bradley-terry", (100, 200, 400)),
    "poisson": partial(of_the_paper, "poisson", (50, 100, 200)),
    "sparse": partial(of_the_paper, "sparse", (50, 100)),
    "hierarchical-logistic-regression": partial(beyond_laplace, "hierarchical-logistic-regression", (100, 200, 400)),
    "linear": partial(of_the_paper, "linear", (50, 100)),
    "logistic": partial(of_the_paper, "logistic", (100, 200)),
    "gaussian-mixture": partial(beyond_laplace, "gaussian-mixture", (10, 20, 40)),
}
"""From the folder of references and that of the data to the problem."""


def constructions(problem: Problem) -> Iterator[tuple[str, int]]:
    """What is made of a problem, and with how many rows."""
    for size in problem.sizes:
        yield "default", size
        yield "random-rows", size
    yield "uniform", problem.sizes[-1]
    yield "tripled", problem.sizes[-1]
