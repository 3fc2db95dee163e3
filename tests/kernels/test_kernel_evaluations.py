"""``num_evaluations`` is compared with what the log-density itself counted."""

from __future__ import annotations

from functools import partial
from typing import Any

import blackjax
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.core.types import Position
from coreset_mcmc.kernels import Kernel, from_blackjax
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.target import CoresetTarget
from tests.helpers.catalogue import entry
from tests.helpers.exact_targets import GAUSSIAN
from tests.helpers.kernel_checks import QUICK_COMPILATION

NUM_STEPS = 8


class Counter:
    """A Gaussian location model that counts the evaluations of its log-prior when the program runs."""

    def __init__(self) -> None:
        self.count = 0
        self.model = Model(self.log_prior, GAUSSIAN.model.log_likelihood, name="gaussian_location")

    def log_prior(self, position: Position) -> jax.Array:
        jax.debug.callback(self.add, position["theta"][0])
        return GAUSSIAN.model.log_prior(position)

    def add(self, _: np.ndarray) -> None:
        self.count += 1


def count_steps(kernel: Kernel) -> tuple[int, int]:
    """Evaluations in some steps of one chain: as reported, and as counted."""
    counter = Counter()
    target = CoresetTarget(jnp.asarray(GAUSSIAN.rows), jnp.asarray(GAUSSIAN.weights), counter.model)
    start = jax.eval_shape(lambda: kernel.init({"theta": jnp.zeros(GAUSSIAN.dim)}, target))
    state = jax.tree.map(lambda leaf: jnp.full(leaf.shape, 0.1, leaf.dtype), start)

    def one_step(number: jax.Array, carry: tuple) -> tuple:
        state, reported = carry
        state, info = kernel.step(jax.random.fold_in(jax.random.key(0), number), state, target)
        return state, reported + info.num_evaluations

    @partial(jax.jit, compiler_options=QUICK_COMPILATION)
    def run(state: Any) -> jax.Array:
        return jax.lax.fori_loop(0, NUM_STEPS, one_step, (state, jnp.int32(0)))[1]

    reported = int(run(state))
    jax.effects_barrier()
    return reported, counter.count


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    ["hit_and_run_three", "univariate_narrow", "random_walk", "autoregression", "nuts", "whitened_hmc"],
)
def test_reported_evaluations_are_those_made(name: str) -> None:
    reported, counted = count_steps(entry(name).make(GAUSSIAN.dim, 1.0))
    assert reported == counted > 0


@pytest.mark.parametrize(
    "kernel",
    [
        from_blackjax(blackjax.slice_sampling, width=100.0, max_expansions=3),
        from_blackjax(blackjax.coordinate_slice, initial_widths=100.0, max_expansions=3),
    ],
    ids=["slice_sampling", "coordinate_slice"],
)
def test_blackjax_slices_report_all_but_their_acceptance_tests(kernel: Kernel) -> None:
    """With a bracket that need not grow there is no acceptance test to leave out."""
    reported, counted = count_steps(kernel)
    assert reported == counted
