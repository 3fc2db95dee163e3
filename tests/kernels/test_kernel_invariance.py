"""Exact draws of a coreset posterior must still be draws of it after some steps of a kernel."""

from __future__ import annotations

import jax
import pytest

from coreset_mcmc.kernels import HitAndRunSlice, UnivariateSlice
from tests.helpers.catalogue import Entry, all_kernels, entry
from tests.helpers.exact_targets import BIMODAL, GAUSSIAN, NORMAL_GAMMA, PARETO
from tests.helpers.kernel_checks import assert_plausible, invariance_p_values


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize("tested", all_kernels(of_many_models=True), ids=str)
def test_invariant_on_a_skewed_target(tested: Entry, key: jax.Array) -> None:
    """A vector and a scalar leaf that depend on each other."""
    kernel = tested.make(NORMAL_GAMMA.dim, 1.0)
    assert_plausible(invariance_p_values(key, NORMAL_GAMMA, kernel, num_steps=3))


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["hit_and_run", "autoregression"])
def test_invariant_on_gaussian_location(name: str, key: jax.Array) -> None:
    kernel = entry(name).make(GAUSSIAN.dim, 1.0)
    assert_plausible(invariance_p_values(key, GAUSSIAN, kernel, num_steps=3))


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["hit_and_run", "random_walk"])
def test_invariant_next_to_a_hard_edge(name: str, key: jax.Array) -> None:
    """Rows of weight zero and likelihood zero, a density that ends abruptly and a heavy tail."""
    kernel = entry(name).make(PARETO.dim, 1.0)
    assert_plausible(invariance_p_values(key, PARETO, kernel, num_steps=5))


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize(("kernel_class", "max_doublings"), [(HitAndRunSlice, 2), (UnivariateSlice, 20)])
def test_slice_invariant_on_two_modes(kernel_class: type, max_doublings: int, key: jax.Array) -> None:
    """Initial brackets much narrower than a mode, wide enough to bridge both when capped, and far too wide."""
    for number, width in enumerate((0.05, 2.0, 500.0)):
        kernel = kernel_class(width=width, max_doublings=max_doublings)
        assert_plausible(invariance_p_values(jax.random.fold_in(key, number), BIMODAL, kernel, num_steps=8))
