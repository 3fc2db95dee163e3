"""The uniform coreset: the rows as selected, with their initial weights, and nothing trained.

Section 4 of the paper compares with it. M rows that each stand for N/M of the data give a posterior of about the right
width in the wrong place: for a well-specified regular model with d parameters the KL divergence between Gaussian
approximations is about d N / (2 M) (Section 3.4, whose formula lacks the factor d).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.kernels.slice import kernel_or_default
from coreset_mcmc.method import Needs, Trained
from coreset_mcmc.problem import Problem
from coreset_mcmc.sampling import sample_coreset
from coreset_mcmc.selection import SelectedRows
from coreset_mcmc.status import Status
from coreset_mcmc.types import Key, pytree


class UniformState(NamedTuple):
    """There is nothing to prepare."""

    done: jax.Array


class UniformInfo(NamedTuple):
    """What a step would report, if there were one."""

    num_evaluations: jax.Array
    status: jax.Array


@pytree
@dataclass(frozen=True)
class Uniform:
    """Sample with the selected rows and the weights that the selection gave them.

    With a uniform selection of rows all weights are N/M; with a stratified one N_g / M_g in stratum g.

    Args:
        kernel: moves each chain. ``None`` is a hit-and-run slice kernel, which ``fit`` shapes in a pilot run.
    """

    kernel: Kernel | None = None

    name = "uniform"
    needs = Needs()
    uses_coreset_rows = True
    num_chains = 1
    max_steps = 0

    def check(self, problem: Problem) -> None:
        kernel_or_default(self.kernel).check(problem.position, problem.target(problem.initial_weights))

    def init_evaluations(self, problem: Problem) -> int:
        del problem
        return 0

    def init(self, key: Key, problem: Problem) -> UniformState:
        del key, problem
        return UniformState(jnp.array(True))

    def step(self, key: Key, state: UniformState, problem: Problem) -> tuple[UniformState, UniformInfo]:
        del key, problem
        return state, UniformInfo(jnp.zeros((), jnp.int64), jnp.asarray(Status.OK.value, jnp.int32))

    def describe(self, info: UniformInfo) -> str:
        del info
        return "nothing to train"

    def finish(self, state: UniformState, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        del state
        coreset = SelectedRows(np.asarray(problem.indices), np.asarray(problem.initial_weights))
        chosen = kernel or kernel_or_default(self.kernel)
        return sample_coreset(problem, coreset, problem.initial_positions, chosen, num_chains)
