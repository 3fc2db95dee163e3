"""Kernels that are wrong on purpose must be rejected by the very checks that the right ones pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from coreset_mcmc.core.types import Key, Position, pytree
from coreset_mcmc.kernels import (
    GaussianAutoregression,
    Kernel,
    KernelInfo,
    KernelState,
    RandomWalk,
    UnivariateSlice,
    init_chains,
    line,
    restart_chains,
    step_chains,
)
from coreset_mcmc.models.gaussian_location import coreset_posterior
from coreset_mcmc.posterior.target import CoresetTarget
from tests.helpers.catalogue import entry
from tests.helpers.exact_targets import BIMODAL, GAUSSIAN, NORMAL_GAMMA
from tests.helpers.kernel_checks import (
    QUICK_COMPILATION,
    advance,
    advance_chains,
    compare_draws,
    invariance_p_values,
    is_rejected,
    start_and_reference,
)


def copy_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of its own, which JAX traces anew instead of finding it in its caches."""

    @wraps(function)
    def copied(*arguments: Any) -> Any:
        return function(*arguments)

    return copied


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize("is_broken", [False, True], ids=["right", "broken"])
def test_slice_without_the_acceptance_test_of_figure_6(
    is_broken: bool, key: jax.Array, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = advance
    if is_broken:
        always = (jnp.array(True), jnp.zeros((), jnp.int32))
        monkeypatch.setattr(line, "_acceptable", lambda *arguments: always)
        run = jax.jit(copy_of(advance_chains), compiler_options=QUICK_COMPILATION)
    probabilities = invariance_p_values(key, BIMODAL, UnivariateSlice(width=0.3), 12, run)
    assert is_rejected(probabilities) == is_broken


@pytree
@dataclass(frozen=True)
class AlwaysAccepts(RandomWalk):
    """A random walk that ignores the target."""

    def step(self, key: Key, state: KernelState, target: CoresetTarget) -> tuple[KernelState, KernelInfo]:
        return super().step(key, state._replace(log_density=jnp.full_like(state.log_density, -1e300)), target)


@pytest.mark.statistical
@pytest.mark.parametrize(("kernel_class", "is_broken"), [(RandomWalk, False), (AlwaysAccepts, True)])
def test_random_walk_that_always_accepts(kernel_class: type, is_broken: bool, key: jax.Array) -> None:
    assert is_rejected(invariance_p_values(key, NORMAL_GAMMA, kernel_class(scale=0.6), 3)) == is_broken


@pytree
@dataclass(frozen=True)
class UnitNoise(GaussianAutoregression):
    """The kernel as the paper prints it: noise of variance (1 - beta) I."""

    def step(self, key: Key, state: KernelState, target: CoresetTarget) -> tuple[KernelState, KernelInfo]:
        mean, _ = coreset_posterior(target.rows, target.weights)
        theta = state.position["theta"]
        noise = jax.random.normal(key, theta.shape, theta.dtype)
        moved = {"theta": mean + jnp.sqrt(self.beta) * (theta - mean) + jnp.sqrt(1.0 - self.beta) * noise}
        return KernelState(moved, target.log_density(moved)), super().step(key, state, target)[1]


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize(("kernel_class", "is_broken"), [(GaussianAutoregression, False), (UnitNoise, True)])
def test_autoregression_with_the_noise_of_the_misprint(kernel_class: type, is_broken: bool, key: jax.Array) -> None:
    assert is_rejected(invariance_p_values(key, GAUSSIAN, kernel_class(0.8), 3)) == is_broken


@partial(jax.jit, compiler_options=QUICK_COMPILATION)
def step_after_a_change(
    kernel: Kernel, old: CoresetTarget, new: CoresetTarget, key: Key, positions: Position, *, is_restarted: bool
) -> Position:
    """One step under the new target from states made under the old one."""
    stale = init_chains(kernel, positions, old)
    fresh = restart_chains(kernel, stale, new)
    states = jax.tree.map(lambda restarted, kept: jnp.where(is_restarted, restarted, kept), fresh, stale)
    return step_chains(kernel, key, states, new)[0].position


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize("is_broken", [False, True], ids=["restarted", "stale"])
@pytest.mark.parametrize("name", ["hit_and_run", "mala"])
def test_weights_that_change_without_a_restart(name: str, is_broken: bool, key: jax.Array) -> None:
    """Under heavier weights the cached log-density is too low, so the stale chain takes moves it should refuse."""
    draw_key, step_key = jax.random.split(key)
    start, reference = start_and_reference(draw_key, GAUSSIAN)
    heavier, target = GAUSSIAN.with_weights(3.0 * GAUSSIAN.weights).target(), GAUSSIAN.target()
    kernel = entry(name).make(GAUSSIAN.dim, 1.0)
    moved = step_after_a_change(kernel, heavier, target, step_key, start, is_restarted=not is_broken)
    assert is_rejected(compare_draws(target, moved, reference)) == is_broken
