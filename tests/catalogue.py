"""Every kernel that the shared tests run. Adding a kernel to the tests means adding one line.

Each entry builds the kernel for positions with ``dim`` numbers in all. ``factor`` multiplies its numeric parameters: a
kernel with other numbers must not compile again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import blackjax
import numpy as np
from blackjax.mcmc.random_walk import normal
from blackjax.mcmc.slice import fixed_order

from coreset_mcmc.kernels import (
    GaussianAutoregression,
    HitAndRunSlice,
    Kernel,
    RandomWalk,
    UnivariateSlice,
    from_blackjax,
)


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


def entry(name: str) -> Entry:
    """The entry with this name."""
    return next(candidate for candidate in CATALOGUE if candidate.name == name)
