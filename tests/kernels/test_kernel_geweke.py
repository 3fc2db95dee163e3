"""Geweke's joint-distribution test: integer weights are multiplicities, so data can be drawn given the position.

A design point with n trials and c successes is two coreset rows, y = 1 with weight c and y = 0 with weight n - c. Draw
a position from the prior and counts given the position; then alternate kernel steps given the counts with new counts
given the position. Every pair along the way has the joint law of the first. Chains are independent and start in that
law, so the Kolmogorov-Smirnov tests apply as they stand. Without a restart when the counts change, the same check must
reject.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.core.types import Key
from coreset_mcmc.kernels import Kernel
from coreset_mcmc.models import logistic_regression
from coreset_mcmc.posterior.target import CoresetTarget
from tests.helpers.catalogue import entry
from tests.helpers.kernel_checks import (
    NUM_CHAINS,
    NUM_REFERENCE,
    QUICK_COMPILATION,
    assert_plausible,
    compare_columns,
    is_rejected,
)

DESIGN = np.array([-1.0, 0.4, 2.0])
TRIALS = np.array([8, 5, 12])
NUM_ROUNDS = 8


def target_given(successes: jax.Array) -> CoresetTarget:
    rows = {"x": jnp.tile(DESIGN, 2)[:, None], "y": jnp.repeat(jnp.array([0.0, 1.0]), DESIGN.size)}
    return CoresetTarget(rows, jnp.concatenate([TRIALS - successes, successes]), logistic_regression(1))


def draw_successes(key: Key, beta: jax.Array) -> jax.Array:
    trials = jax.random.uniform(key, (DESIGN.size, TRIALS.max())) < jax.nn.sigmoid(beta[0] + DESIGN * beta[1])[:, None]
    return jnp.sum(trials & (jnp.arange(TRIALS.max()) < TRIALS[:, None]), axis=1).astype(beta.dtype)


def summary(beta: jax.Array, successes: jax.Array) -> jax.Array:
    """The position, the log joint density, and a statistic of position and data together."""
    log_joint = target_given(successes).log_density({"beta": beta})
    return jnp.array([*beta, log_joint, jnp.tanh(beta[1]) + 0.1 * jnp.sum(DESIGN * successes)])


@partial(jax.jit, static_argnums=1, compiler_options=QUICK_COMPILATION)
def draw_jointly(key: Key, count: int) -> jax.Array:
    def draw(one_key: Key) -> jax.Array:
        beta_key, data_key = jax.random.split(one_key)
        beta = jax.random.cauchy(beta_key, (2,))
        return summary(beta, draw_successes(data_key, beta))

    return jax.vmap(draw)(jax.random.split(key, count))


@partial(jax.jit, compiler_options=QUICK_COMPILATION)
def alternate(kernel: Kernel, key: Key, is_restarted: bool) -> jax.Array:
    """Summaries of independent chains after several rounds of data and position."""

    def run_chain(chain_key: Key) -> jax.Array:
        beta_key, data_key, round_key = jax.random.split(chain_key, 3)
        position = {"beta": jax.random.cauchy(beta_key, (2,))}
        successes = draw_successes(data_key, position["beta"])

        def one_round(number: jax.Array, carry: tuple) -> tuple:
            kept, successes = carry
            step_key, data_key = jax.random.split(jax.random.fold_in(round_key, number))
            target = target_given(successes)
            fresh = kernel.init(kept.position, target)
            state = jax.tree.map(lambda new, old: jnp.where(is_restarted, new, old), fresh, kept)
            moved, _ = kernel.step(step_key, state, target)
            return moved, draw_successes(data_key, moved.position["beta"])

        start = (kernel.init(position, target_given(successes)), successes)
        state, successes = jax.lax.fori_loop(0, NUM_ROUNDS, one_round, start)
        return summary(state.position["beta"], successes)

    return jax.lax.map(run_chain, jax.random.split(key, NUM_CHAINS))


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize("name", ["hit_and_run", "random_walk", "hmc"])
def test_joint_law_is_kept(name: str, key: jax.Array) -> None:
    chain_key, reference_key = jax.random.split(key)
    moved = alternate(entry(name).make(2, 1.0), chain_key, True)
    assert_plausible(compare_columns(moved, draw_jointly(reference_key, NUM_REFERENCE)))


@pytest.mark.full
@pytest.mark.statistical
def test_joint_law_is_lost_without_restarts(key: jax.Array) -> None:
    chain_key, reference_key = jax.random.split(key)
    moved = alternate(entry("hit_and_run").make(2, 1.0), chain_key, False)
    assert is_rejected(compare_columns(moved, draw_jointly(reference_key, NUM_REFERENCE)))
