"""What every kernel promises, checked for every kernel in the catalogue."""

from __future__ import annotations

import inspect
from dataclasses import Field, field, fields, make_dataclass, replace
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc import kernels
from coreset_mcmc.core.types import Position, pytree
from coreset_mcmc.kernels import HitAndRunSlice, KernelInfo, UnivariateSlice, init_chains, step_chains
from tests.helpers.catalogue import CATALOGUE, Entry, all_kernels, entry
from tests.helpers.exact_targets import GAUSSIAN, NORMAL_GAMMA, ExactTarget
from tests.helpers.kernel_checks import NUM_CHAINS, QUICK_COMPILATION, advance

pytestmark = pytest.mark.full

every_kernel = pytest.mark.parametrize("tested", all_kernels(), ids=str)


def target_for(tested: Entry) -> ExactTarget:
    """A target whose position has a vector and a scalar leaf, unless the kernel is made for another."""
    return GAUSSIAN if tested.only_model == GAUSSIAN.model.name else NORMAL_GAMMA


def one_position(exact: ExactTarget) -> Position:
    """A position of the right shapes, in the precision of the test."""
    rows, weights = jnp.asarray(exact.rows), jnp.asarray(exact.weights)
    shapes = jax.eval_shape(lambda key: exact.draw_one(key, rows, weights), jax.random.key(0))
    return jax.tree.map(lambda leaf: jnp.full(leaf.shape, 0.3, leaf.dtype), shapes)


def step_from_one_point(tested: Entry, exact: ExactTarget, factor: float) -> tuple[Any, KernelInfo]:
    """One step of many chains that all start at the same point."""
    start = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (NUM_CHAINS, *leaf.shape)), one_position(exact))
    return advance(tested.make(exact.dim, factor), exact.target(), jax.random.key(1), start, 1)


@cache
def one_step(tested: Entry) -> tuple[Any, KernelInfo]:
    return step_from_one_point(tested, target_for(tested), 1.0)


def flatten(positions: Position) -> np.ndarray:
    """A row for each chain."""
    return np.concatenate([np.reshape(leaf, (NUM_CHAINS, -1)) for leaf in jax.tree.leaves(positions)], axis=1)


def test_catalogue_covers_every_exported_kernel() -> None:
    exported = {getattr(kernels, name) for name in kernels.__all__} - {kernels.Kernel}
    classes = {item for item in exported if inspect.isclass(item) and hasattr(item, "step")}
    assert classes
    for_one_model_only = {kernels.SpikeAndSlabGibbs}  # with tests of its own: test_gibbs.py
    assert classes == {type(one.make(2, 1.0)) for one in CATALOGUE} | for_one_model_only


def copy_of(item: Field) -> Any:
    return field(default=item.default, metadata=item.metadata)


def test_kernels_of_different_classes_have_different_structures() -> None:
    """Compiled programs are found by structure: equal ones would let a kernel run the program of another."""
    structures = {type(kernel): jax.tree.structure(kernel) for kernel in (one.make(2, 1.0) for one in CATALOGUE)}
    twin = pytree(make_dataclass("Twin", [(item.name, Any, copy_of(item)) for item in fields(UnivariateSlice)]))
    structures[twin] = jax.tree.structure(twin())
    assert len(set(structures.values())) == len(structures)


@every_kernel
def test_describes_itself_and_accepts_its_target(tested: Entry) -> None:
    exact = target_for(tested)
    kernel = tested.make(exact.dim, 1.0)
    assert isinstance(kernel.has_data_dependent_loops, bool)
    assert isinstance(kernel.caches_gradient, bool)
    kernel.check(one_position(exact), exact.target())


@every_kernel
def test_new_weights_rows_and_numbers_do_not_compile_again(tested: Entry) -> None:
    """What does not compile again must still take effect."""
    exact = target_for(tested)
    first = flatten(one_step(tested)[0].position)
    num_compiled = advance._cache_size()
    changed = replace(exact, rows=exact.rows + 1.0, weights=exact.weights[::-1])
    other_target = step_from_one_point(tested, changed, 1.0)
    other_numbers = step_from_one_point(tested, exact, 1.2)
    assert advance._cache_size() == num_compiled
    assert not np.array_equal(first, flatten(other_target[0].position))
    assert np.array_equal(first, flatten(other_numbers[0].position)) != tested.has_numbers


@every_kernel
def test_chains_have_streams_of_their_own(tested: Entry) -> None:
    """From one start, chains that moved are all in different places."""
    moved = flatten(one_step(tested)[0].position)
    moved = moved[np.any(moved != 0.3, axis=1)]
    assert len(np.unique(moved, axis=0)) == len(moved) > 1


@every_kernel
def test_structure_info_and_cached_log_density(tested: Entry) -> None:
    states, info = one_step(tested)
    target = target_for(tested).target()
    assert jax.tree.structure(states.position) == jax.tree.structure(one_position(target_for(tested)))
    np.testing.assert_allclose(states.log_density, jax.vmap(target.log_density)(states.position), rtol=1e-10)
    rates = np.asarray(info.acceptance_rate)
    assert rates.shape == info.num_evaluations.shape == info.diverging.shape == (NUM_CHAINS,)
    assert np.all((rates >= 0) & (rates <= 1))
    assert np.all(np.asarray(info.num_evaluations) >= 1)
    assert not np.any(info.diverging)


def assert_types_are_kept(tested: Entry, dtype: str) -> None:
    """A step maps states to states of the same types, so that it can be a loop's body."""
    exact = target_for(tested)
    kernel, target = tested.make(exact.dim, 1.0), exact.target()
    start = jax.eval_shape(lambda position: kernel.init(position, target), one_position(exact))
    after, info = jax.eval_shape(lambda state: kernel.step(jax.random.key(1), state, target), start)
    assert after == start
    assert {str(leaf.dtype) for leaf in jax.tree.leaves(after)} == {dtype}
    assert jnp.issubdtype(info.acceptance_rate.dtype, jnp.floating)
    assert (info.num_evaluations.dtype, info.diverging.dtype) == ("int32", "bool")


@every_kernel
def test_double_precision_is_kept(tested: Entry) -> None:
    assert_types_are_kept(tested, "float64")


@every_kernel
@pytest.mark.usefixtures("single_precision")
def test_single_precision_is_kept(tested: Entry) -> None:
    assert_types_are_kept(tested, "float32")


@every_kernel
def test_chains_can_be_vectorised(tested: Entry) -> None:
    exact = target_for(tested)
    kernel, target = tested.make(exact.dim, 1.0), exact.target()

    def step(key: jax.Array, position: Position) -> tuple[Any, KernelInfo]:
        return kernel.step(key, kernel.init(position, target), target)

    one, many = one_position(exact), jax.tree.map(lambda leaf: jnp.stack([leaf] * 4), one_position(exact))
    alone = jax.eval_shape(step, jax.random.key(0), one)
    together = jax.eval_shape(jax.vmap(step), jax.random.split(jax.random.key(0), 4), many)
    assert jax.tree.map(lambda leaf: (4, *leaf.shape), alone) == jax.tree.map(lambda leaf: leaf.shape, together)


@pytest.mark.parametrize("name", ["hit_and_run", "random_walk"])
def test_a_chain_moves_as_it_would_alone(name: str) -> None:
    """Whether chains run one after the other or vectorised, each follows its own key."""
    kernel, target = entry(name).make(GAUSSIAN.dim, 1.0), GAUSSIAN.target()
    positions = jax.tree.map(lambda leaf: leaf[:4], GAUSSIAN.draw(jax.random.key(0), NUM_CHAINS))

    @partial(jax.jit, compiler_options=QUICK_COMPILATION)
    def step_in_two_ways(key: jax.Array) -> tuple[Any, Any]:
        states = init_chains(kernel, positions, target)
        chains = (jax.random.split(key, 4), states)
        in_turn = jax.lax.map(lambda chain: kernel.step(*chain, target), chains)
        vectorised = jax.vmap(lambda *chain: kernel.step(*chain, target))(*chains)
        return step_chains(kernel, key, states, target), (vectorised if kernel.has_data_dependent_loops else in_turn)

    ours, other = step_in_two_ways(jax.random.key(5))
    for one, two in zip(jax.tree.leaves(ours), jax.tree.leaves(other), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-9)


@pytest.mark.parametrize("kernel", [HitAndRunSlice(1e9, max_shrinkages=3), UnivariateSlice(1e9, max_shrinkages=3)])
def test_a_stuck_slice_stays_and_is_flagged(kernel: HitAndRunSlice | UnivariateSlice) -> None:
    """Three proposals in a bracket a billion times too wide all miss: probability below 1e-7."""
    num_lines = 1 if isinstance(kernel, HitAndRunSlice) else GAUSSIAN.dim
    start = {"theta": jnp.array([[0.5, 0.1], [0.3, 0.4]])}

    @partial(jax.jit, compiler_options=QUICK_COMPILATION)
    def step(key: jax.Array) -> tuple[Any, KernelInfo]:
        return step_chains(kernel, key, init_chains(kernel, start, GAUSSIAN.target()), GAUSSIAN.target())

    states, info = step(jax.random.key(0))
    np.testing.assert_array_equal(states.position["theta"], start["theta"])
    np.testing.assert_allclose(states.log_density, jax.vmap(GAUSSIAN.target().log_density)(start))
    np.testing.assert_array_equal(info.diverging, [True, True])
    np.testing.assert_array_equal(info.acceptance_rate, [0.0, 0.0])
    np.testing.assert_array_equal(info.num_evaluations, [5 * num_lines, 5 * num_lines])
