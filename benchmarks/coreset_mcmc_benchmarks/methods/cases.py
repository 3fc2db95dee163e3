"""Models with data, a reference each, and settings of methods that the paper gives for them.

References are exact (Gaussian location), Gibbs sampling on all rows (sparse regression) or NUTS on all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import coreset_mcmc as cm
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.datasets import bike_share_counts
from coreset_mcmc.driver.run import run
from coreset_mcmc.kernels import SpikeAndSlabGibbs, UnivariateSlice
from coreset_mcmc.methods.sampling import sample_coreset
from coreset_mcmc.methods.subsampling import GaussianProposal, ModeSearch, SpikeAndSlabProposal
from coreset_mcmc.models.gaussian_location import coreset_posterior
from coreset_mcmc.posterior.problem import make_problem, starting_positions
from coreset_mcmc_benchmarks.draws import Draws, continuous, draws_of
from coreset_mcmc_benchmarks.references.problems import PROBLEMS
from coreset_mcmc_benchmarks.references.sampling import Settings, reference_draws
from coreset_mcmc_benchmarks.symmetries import unchanged

CHAINS = 4
Overrides = dict[str, Callable[[], Any]]


@dataclass(frozen=True)
class Reference:
    """Moments of the continuous coordinates of the full posterior, and its patterns of discrete ones."""

    mean: np.ndarray
    covariance: np.ndarray
    patterns: np.ndarray | None = None


@dataclass(frozen=True)
class Case:
    """A model, its data and its reference."""

    model: cm.Model
    data: Any
    reference: Callable[[], Reference]
    overrides: Overrides
    """Settings of methods that the paper gives for this model."""
    initvals: Any = None
    fold: Callable[[Draws], Draws] = unchanged
    """Maps every draw to one representative of its symmetric copies; KL and ESS are those of the folded draws."""


def moments(draws: np.ndarray, patterns: np.ndarray | None = None) -> Reference:
    """A reference from long draws (chain, draw, d)."""
    pooled = draws.reshape(-1, draws.shape[-1])
    return Reference(pooled.mean(axis=0), np.cov(pooled, rowvar=False), patterns)


def nuts_reference(model: cm.Model, data: Any) -> Reference:
    """NUTS on all rows; its warnings are not suppressed."""
    fit = cm.fit(model, data, method=cm.NUTS(), draws=2_500, tune=0, chains=4, random_seed=99, progressbar=False)
    return moments(continuous(draws_of(fit)))


def gaussian(num_rows: int = 10_000) -> Case:
    """Gaussian location, d = 10."""
    data = np.random.default_rng(0).normal(size=(num_rows, 10))
    mean, variance = coreset_posterior(jnp.asarray(data), jnp.ones(num_rows))
    reference = Reference(np.asarray(mean), float(variance) * np.eye(10))
    return Case(cm.models.gaussian_location(10), data, lambda: reference, random_walk_overrides(3e-5))


def logistic() -> Case:
    """Logistic regression on synthetic rows, p = 5, N = 20 000."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 5))
    eta = -1.0 + x @ np.array([1.0, -1.0, 0.5, 0.0, 0.25])
    data = {"x": x, "y": (rng.random(len(x)) < 1 / (1 + np.exp(-eta))).astype(float)}
    model = cm.models.logistic_regression(5)
    return Case(model, data, lambda: nuts_reference(model, data), random_walk_overrides(3e-4))


def linear() -> Case:
    """Linear regression with unknown noise on synthetic rows, p = 5, N = 20 000."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20_000, 5))
    data = {"x": x, "y": 1.0 + x @ np.array([1.0, -1.0, 0.5, 0.0, 0.25]) + 2.0 * rng.normal(size=len(x))}
    model = cm.models.linear_regression(5)
    return Case(model, data, lambda: nuts_reference(model, data), random_walk_overrides(1e-4))


def poisson(directory: Path) -> Case:
    """The paper's bike-share counts, N = 15 641, d = 9."""
    counts = bike_share_counts(directory)
    data = {"x": counts.x, "y": counts.y}
    model = cm.models.poisson_regression(8)
    mode = ModeSearch(subsample_size=1_000, tolerance=1e-4, max_iterations=200_000)
    paper: Overrides = {
        "quasi-newton": lambda: cm.QuasiNewton(kernel=UnivariateSlice(), num_iterations=100, max_trials=50),
        "austerity-mh": lambda: cm.AusterityMH(GaussianProposal(0.01)),
        "confidence-mh": lambda: cm.ConfidenceMH(GaussianProposal(0.01)),
        "sgld": lambda: cm.SGLD(step_size=2e-4, mode=mode),
        "sghmc": lambda: cm.SGHMC(mode=mode),
    }
    return Case(model, data, lambda: nuts_reference(model, data), paper)


def sparse() -> Case:
    """The paper's synthetic spike-and-slab regression, N = 50 000, ten coefficients of which five are null."""
    data = cm.models.sparse_regression_data(np.random.default_rng(0), 50_000)
    model = cm.models.sparse_regression(10)
    start = cm.models.least_squares_start(data)

    def gibbs_reference() -> Reference:
        with jax.enable_x64(True):
            rows = to_array_data(data)
            every_row = SelectedRows(np.arange(rows.size), np.ones(rows.size))
            problem = make_problem(model, rows, every_row, starting_positions(model, jax.random.key(0), CHAINS, start))
            trained = sample_coreset(problem, every_row, problem.initial_positions, SpikeAndSlabGibbs(), CHAINS)
            draws = run(trained.sampler, trained.problem, jax.random.key(1), num_steps=6_000).history.position
        kept = {name: np.swapaxes(np.asarray(values)[1_000:], 0, 1) for name, values in draws.items()}
        return moments(continuous(kept), kept["gamma"].reshape(-1, 10))

    fair: Overrides = {
        "austerity-mh": lambda: cm.AusterityMH(SpikeAndSlabProposal()),
        "confidence-mh": lambda: cm.ConfidenceMH(SpikeAndSlabProposal()),
    }
    return Case(model, data, gibbs_reference, fair, start)


def beyond_laplace(name: str, folder: Path) -> Case:
    """A problem of ``coreset-mcmc bench references``, folded onto one of its symmetric copies."""
    problem = PROBLEMS[name]
    model, data = problem.make()

    def reference() -> Reference:
        settings = Settings(target_accept=problem.target_accept)
        return moments(continuous(problem.fold(reference_draws(name, settings, folder).draws)))

    return Case(model, data, reference, random_walk_overrides(1e-3), fold=problem.fold)


def random_walk_overrides(variance: float) -> Overrides:
    """Proposals of about 2.4 posterior standard deviations over root d, which the paper's would be at its own data."""
    return {
        "austerity-mh": lambda: cm.AusterityMH(GaussianProposal(variance)),
        "confidence-mh": lambda: cm.ConfidenceMH(GaussianProposal(variance)),
    }


def all_cases(data: Path | None, references: Path | None) -> dict[str, Callable[[], Case]]:
    """Those that can be made: Poisson needs its data, and the problems beyond Laplace a folder for their references."""
    cases: dict[str, Callable[[], Case]] = {
        "gaussian": gaussian,
        "logistic": logistic,
        "linear": linear,
        "sparse": sparse,
    }
    if data is not None:
        cases["poisson"] = partial(poisson, data)
    if references is not None:
        cases |= {name: partial(beyond_laplace, name, references) for name in PROBLEMS}
    return cases
