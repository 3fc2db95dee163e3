"""Checks with a known false-alarm rate, and the compiled functions that all kernel tests share.

A check compares two samples of independent draws by Kolmogorov-Smirnov tests: one for each coordinate, one for the
log-density. It rejects if any p-value falls below ``FALSE_ALARM`` divided by their number, so a correct kernel fails it
with probability at most ``FALSE_ALARM`` whatever the target is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from scipy import stats

from coreset_mcmc.core.types import Key, Position
from coreset_mcmc.kernels import Kernel, KernelInfo, init_chains, step_chains
from coreset_mcmc.posterior.target import CoresetTarget
from tests.helpers.exact_targets import ExactTarget

FALSE_ALARM = 1e-4

NUM_CHAINS = 3000
"""Independent chains in a check. One number for all tests, so that they share compiled programs."""

NUM_REFERENCE = 50_000
"""Exact draws to compare with, so many that the comparison is nearly one with the exact law."""


def advance_chains(
    kernel: Kernel, target: CoresetTarget, key: Key, positions: Position, num_steps: jax.Array | int
) -> tuple[Any, KernelInfo]:
    """States after ``num_steps`` steps of independent chains, and the info of the last step."""

    def one_step(number: jax.Array, carry: tuple[Any, KernelInfo]) -> tuple[Any, KernelInfo]:
        return step_chains(kernel, jax.random.fold_in(key, number), carry[0], target)

    start = init_chains(kernel, positions, target)
    _, info_shapes = jax.eval_shape(lambda states: step_chains(kernel, key, states, target), start)
    no_info = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), info_shapes)
    return jax.lax.fori_loop(0, num_steps, one_step, (start, no_info))


def _supported(options: dict[str, Any]) -> dict[str, Any]:
    """The options, or none if this version of the compiler does not know them."""
    try:
        jax.jit(lambda: 0, compiler_options=options).lower().compile()
    except jax.errors.JaxRuntimeError:
        return {}
    return options


QUICK_COMPILATION = _supported({"xla_backend_optimization_level": 0, "xla_cpu_use_fusion_emitters": False})
"""Compiling these programs takes longer than running them, so it is cut short: to a third of the time."""

advance = jax.jit(advance_chains, compiler_options=QUICK_COMPILATION)


@partial(jax.jit, compiler_options=QUICK_COMPILATION)
def statistics_of(target: CoresetTarget, positions: Position) -> jax.Array:
    """One row per draw: every coordinate, then the log-density."""
    flat = jax.vmap(lambda position: ravel_pytree(position)[0])(positions)
    return jnp.column_stack([flat, jax.vmap(target.log_density)(positions)])


def compare_columns(drawn: np.ndarray | jax.Array, reference: np.ndarray | jax.Array) -> np.ndarray:
    """Two-sample Kolmogorov-Smirnov p-value of each column."""
    columns = zip(np.asarray(drawn).T, np.asarray(reference).T, strict=True)
    return np.array([stats.ks_2samp(ours, theirs, method="asymp").pvalue for ours, theirs in columns])


def compare_draws(target: CoresetTarget, draws: Position, reference: Position) -> np.ndarray:
    """Kolmogorov-Smirnov p-values of every coordinate and of the log-density."""
    together = jax.tree.map(lambda *leaves: np.concatenate(leaves), draws, reference)
    count = jax.tree.leaves(draws)[0].shape[0]
    statistics = np.asarray(statistics_of(target, together))
    return compare_columns(statistics[:count], statistics[count:])


def start_and_reference(key: Key, exact: ExactTarget) -> tuple[Position, Position]:
    """Exact draws: one for each chain to start from, and others to compare with."""
    draws = jax.tree.map(np.asarray, exact.draw(key, NUM_CHAINS + NUM_REFERENCE))
    return jax.tree.map(lambda leaf: leaf[:NUM_CHAINS], draws), jax.tree.map(lambda leaf: leaf[NUM_CHAINS:], draws)


def invariance_p_values(
    key: Key, exact: ExactTarget, kernel: Kernel, num_steps: int, run: Callable[..., Any] = advance
) -> np.ndarray:
    """The check of invariance: move exact draws by the kernel and compare them with others that were not moved."""
    draw_key, step_key = jax.random.split(key)
    start, reference = start_and_reference(draw_key, exact)
    states, _ = run(kernel, exact.target(), step_key, start, num_steps)
    has_moved = jax.tree.map(lambda new, old: bool(np.any(new != old)), states.position, start)
    assert all(jax.tree.leaves(has_moved)), f"the kernel left parts of the position untouched: {has_moved}"
    return compare_draws(exact.target(), states.position, reference)


def is_rejected(probabilities: np.ndarray) -> bool:
    """Whether any of the tests rejects at the shared false-alarm rate (Bonferroni)."""
    assert not np.isnan(probabilities).any()
    return bool(np.min(probabilities) < FALSE_ALARM / np.size(probabilities))


def assert_plausible(probabilities: np.ndarray) -> None:
    assert not is_rejected(probabilities), f"p-values {probabilities}"


def normal_p_values(scores: np.ndarray) -> np.ndarray:
    """Two-sided p-values of z-scores."""
    return 2.0 * stats.norm.sf(np.abs(np.ravel(scores)))
