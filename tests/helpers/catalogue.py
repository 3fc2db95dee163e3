"""Every kernel and method that the shared tests run. Adding one to the tests means adding one entry.

A kernel's entry builds it for positions with ``dim`` numbers in all. ``factor`` multiplies numeric parameters: with
other numbers nothing may compile again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import blackjax
import numpy as np
import pytest
from blackjax.mcmc.random_walk import normal
from blackjax.mcmc.slice import fixed_order

import coreset_mcmc as cm
from coreset_mcmc.driver.run import Run
from coreset_mcmc.kernels import (
    GaussianAutoregression,
    HitAndRunSlice,
    HMCAndLines,
    Kernel,
    MixedSlice,
    RandomWalk,
    UnivariateSlice,
    WhitenedHMC,
    WhitenedNUTS,
    from_blackjax,
)
from coreset_mcmc.methods.least_squares.width import NUM_PROBES
from coreset_mcmc.methods.subsampling import GaussianProposal
from coreset_mcmc.posterior.at_positions import GROUP


@dataclass(frozen=True)
class Entry:
    """A kernel under test."""

    name: str
    make: Callable[[int, float], Kernel]
    only_model: str | None = None
    """The one model it can sample, or None for any continuous one."""
    has_numbers: bool = True
    """Whether the kernel has numeric parameters that may change without compiling again."""

    def __str__(self) -> str:
        return self.name


def _blackjax(algorithm: str, **parameters: Any) -> Kernel:
    return from_blackjax(getattr(blackjax, algorithm), **parameters)


def _factor(dim: int) -> np.ndarray:
    return np.diag(np.linspace(0.8, 1.2, dim)) + 0.3 * np.tri(dim, k=-1)


_normal_step = normal(0.5)

CATALOGUE = [
    Entry("hit_and_run", lambda dim, factor: HitAndRunSlice(width=2.0 * factor)),
    Entry("hit_and_run_narrow", lambda dim, factor: HitAndRunSlice(width=0.05 * factor)),
    Entry("hit_and_run_three", lambda dim, factor: HitAndRunSlice(width=2.0 * factor, num_directions=3)),
    Entry("hit_and_run_shaped", lambda dim, factor: HitAndRunSlice(width=2.0, scale=factor * _factor(dim))),
    Entry("univariate", lambda dim, factor: UnivariateSlice(width=2.0 * factor)),
    Entry("univariate_wide", lambda dim, factor: UnivariateSlice(width=500.0 * factor)),
    Entry("univariate_narrow", lambda dim, factor: UnivariateSlice(width=0.05 * factor)),
    Entry("mixed_slice", lambda dim, factor: MixedSlice(width=2.0 * factor)),
    Entry("random_walk", lambda dim, factor: RandomWalk(scale=0.6 * factor)),
    Entry("random_walk_vector", lambda dim, factor: RandomWalk(scale=factor * np.linspace(0.4, 0.8, dim))),
    Entry("random_walk_matrix", lambda dim, factor: RandomWalk(scale=0.6 * factor * _factor(dim))),
    Entry("autoregression", lambda dim, factor: GaussianAutoregression(0.8 / factor), only_model="gaussian_location"),
    Entry("nuts", lambda dim, factor: _blackjax("nuts", step_size=0.4 * factor, inverse_mass_matrix=np.ones(dim))),
    Entry(
        "hmc",
        lambda dim, factor: _blackjax(
            "hmc", step_size=0.3 * factor, inverse_mass_matrix=np.ones(dim), num_integration_steps=5
        ),
    ),
    Entry("whitened_hmc", lambda dim, factor: WhitenedHMC(_factor(dim), 0.5 * factor)),
    Entry("whitened_nuts", lambda dim, factor: WhitenedNUTS(_factor(dim), 0.4 * factor)),
    Entry(
        "hmc_and_lines",
        lambda dim, factor: HMCAndLines(_factor(dim), 0.5 * factor, np.arange(dim)[-2:], factor * np.ones(dim)[-2:]),
    ),
    Entry("mala", lambda dim, factor: _blackjax("mala", step_size=0.2 * factor)),
    Entry("barker", lambda dim, factor: _blackjax("barker", step_size=0.7 * factor)),
    Entry(
        "additive_step",
        lambda dim, factor: _blackjax("additive_step_random_walk", random_step=_normal_step),
        has_numbers=False,
    ),
    Entry("slice_sampling", lambda dim, factor: _blackjax("slice_sampling", width=2.0 * factor)),
    Entry(
        "coordinate_slice",
        lambda dim, factor: _blackjax("coordinate_slice", initial_widths=2.0, coordinate_order=fixed_order),
        has_numbers=False,
    ),
]


ALIKE = {"additive_step", "barker", "hit_and_run_three", "mala", "nuts", "random_walk_vector", "slice_sampling"}
"""Kernels that differ from another entry in a number of directions, the form of a scale, or an algorithm of BlackJAX
behind the same adapter: each is a program of its own to compile, which only ``--slow`` does."""


def all_kernels(*, of_many_models: bool = False) -> list[Any]:
    """All entries as parameters of a test, or those that sample any continuous model."""
    chosen = [one for one in CATALOGUE if one.only_model is None or not of_many_models]
    return [pytest.param(one, marks=pytest.mark.slow) if one.name in ALIKE else one for one in chosen]


def entry(name: str) -> Entry:
    """The entry with this name."""
    return next(candidate for candidate in CATALOGUE if candidate.name == name)


@dataclass(frozen=True)
class MethodEntry:
    """A method under test, with settings for a problem of a hundred rows."""

    name: str
    """As in the registry."""
    make: Callable[[float], Any]
    steps: int
    """Steps of training that the tests take; it may finish sooner."""
    draws: int = 12
    difference: Callable[[Run], int] = lambda training: 0
    """How many calls of the likelihood a callback sees in training, beyond those that are counted.

    More where the compiler finds repeated evaluations and makes them once, which a callback prevents: a restart of the
    chains and the gradient look at the same M rows; or where programs have room for more positions than there are. Less
    where Hessians are made, which count as 1 + d evaluations.
    """

    def __str__(self) -> str:
        return self.name


_mode = cm.subsampling.ModeSearch(learning_rate=0.05, subsample_size=20, tolerance=1e-3, max_iterations=200)


def _hessians(training: Run) -> int:
    """The start and three Newton steps find the mode of the contract suite's problem: 100 rows, 3 coordinates."""
    del training
    return -4 * 3 * 100


def _passes(training: Run) -> int:
    """Newton steps, and windows of 40 draws: the first, which judges nothing, and those that do.

    Before the first the Hessian of a sample, here all rows, and 15 draws tell how far the Gaussian goes. Draws come in
    whole groups, and one more position is the reference. So it is for all rows and those of the coreset when a window
    that is good enough is compared with what is around its draws.
    """
    num_newton = np.isfinite(training.history.newton_decrement).sum()
    num_windows = 1 + np.isfinite(training.history.kl_estimate).sum()
    num_positions = -(-40 // GROUP) * GROUP + 1
    num_looks = np.sum(training.history.kl_estimate < 0.01)
    num_beside = num_windows * (num_positions - 40) + -(-(1 + NUM_PROBES) // GROUP) * GROUP + 1 - NUM_PROBES
    return int(-(num_newton + 1) * 3 * 100 + num_beside * 100 + num_looks * (100 + 10))


METHODS = [
    MethodEntry("austerity-mh", lambda factor: cm.AusterityMH(GaussianProposal(0.01 * factor), batch_size=20), 0),
    MethodEntry("confidence-mh", lambda factor: cm.ConfidenceMH(GaussianProposal(0.01 * factor)), 0),
    MethodEntry(
        "coreset-mcmc",
        lambda factor: cm.CoresetMCMC(optimizer=cm.optimizers.Adam(0.1 * factor), subsample_size=30, num_iterations=12),
        12,
        difference=lambda training: training.num_steps * 2 * 10,
    ),
    MethodEntry(
        "hilbert",
        lambda factor: cm.Hilbert(num_projections=20, num_iterations=8, tolerance=1e-6 * factor),
        60,
        difference=_hessians,
    ),
    MethodEntry(
        "importance-sampling", lambda factor: cm.ImportanceSampling(num_projections=20), 60, difference=_hessians
    ),
    MethodEntry("laplace", lambda factor: cm.Laplace(tolerance=1e-5 * factor), 60, difference=_hessians),
    MethodEntry(
        "least-squares",
        lambda factor: cm.LeastSquares(
            num_draws=40, num_chains=2, num_rounds=3, tolerance=0.001 * factor, gaussian_term=False
        ),
        12,
        difference=_passes,
    ),
    MethodEntry(
        "nuts",
        lambda factor: cm.NUTS(num_warmup=30, target_acceptance=0.7 * factor, num_chains=2),
        80,
        difference=_hessians,
    ),
    MethodEntry(
        "quasi-newton", lambda factor: cm.QuasiNewton(num_draws=40, num_iterations=3, regularization=0.01 * factor), 3
    ),
    MethodEntry("sghmc", lambda factor: cm.SGHMC(step_size=0.01 * factor, subsample_size=20, mode=_mode), 200),
    MethodEntry("sgld", lambda factor: cm.SGLD(step_size=0.001 * factor, subsample_size=20, mode=_mode), 200),
    MethodEntry(
        "sparse-hamiltonian-flow",
        lambda factor: cm.SparseHamiltonianFlow(
            num_refreshments=2, num_leapfrog=3, num_iterations=10, subsample_size=20, step_size=0.01 * factor
        ),
        10,
    ),
    MethodEntry(
        "sparse-vi",
        lambda factor: cm.SparseVI(num_draws=20, num_updates=4, learning_rate=0.1 * factor, num_chains=4),
        4,
        difference=lambda training: training.num_steps * 4 * 4 * 10,
    ),
    MethodEntry("uniform", lambda factor: cm.Uniform(), 0),
]
