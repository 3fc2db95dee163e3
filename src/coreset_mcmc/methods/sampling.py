"""Draws from a fixed target: the chains go on with the weights frozen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Key, Position, pytree
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.kernels.base import Kernel, KernelInfo, init_chains, step_chains
from coreset_mcmc.methods.contract import Sampler, Trained
from coreset_mcmc.methods.law import Law
from coreset_mcmc.posterior.problem import Problem
from coreset_mcmc.posterior.target import CoresetTarget


@pytree
@dataclass(frozen=True)
class SamplingProblem:
    """A target that stays, and where each chain starts."""

    target: CoresetTarget
    initial_positions: Position


class SamplingState(NamedTuple):
    """The chains; sampling is never done before its total."""

    chains: Any
    done: jax.Array


class SamplingInfo(NamedTuple):
    """One draw of each chain, and how it came about."""

    position: Position
    log_density: jax.Array
    acceptance_rate: jax.Array
    diverging: jax.Array
    num_steps: jax.Array
    num_evaluations: jax.Array
    status: jax.Array


def sampling_info(chains: Any, info: KernelInfo, target: CoresetTarget) -> SamplingInfo:
    """From the info of a step of each chain to that of a draw."""
    log_density = chains.log_density
    return SamplingInfo(
        position=chains.position,
        log_density=log_density,
        acceptance_rate=info.acceptance_rate,
        diverging=info.diverging,
        num_steps=info.num_evaluations,
        num_evaluations=target.weights.shape[0] * jnp.sum(info.num_evaluations, dtype=jnp.int64),
        status=jnp.where(jnp.any(log_density == -jnp.inf), Status.CHAIN_LOST.value, Status.OK.value),
    )


class Memoryless(NamedTuple):
    """The state of a sampler whose draws are independent: there is nothing to remember."""

    done: jax.Array


class IndependentSampler(Sampler):
    """What all samplers of independent draws have in common."""

    def init(self, key: Key, problem: Any) -> Memoryless:
        del key, problem
        return Memoryless(jnp.array(False))


class SamplesCoreset(Sampler):
    """What all samplers of a coreset posterior have in common."""

    name = "sampling"

    def init_evaluations(self, problem: SamplingProblem) -> int:
        num_chains = jax.tree.leaves(problem.initial_positions)[0].shape[0]
        return int(num_chains * problem.target.weights.shape[0])

    def describe(self, info: SamplingInfo) -> str:
        """The progress bar shows how sampling goes."""
        count = int(info.diverging.sum())
        return f"{count} divergences" if count else f"log density {info.log_density[-1].mean():.4g}"


@pytree
@dataclass(frozen=True)
class FrozenSampling(SamplesCoreset):
    """Run a kernel on a fixed target, one step for each draw."""

    kernel: Kernel

    def init(self, key: Key, problem: SamplingProblem) -> SamplingState:
        del key
        return SamplingState(init_chains(self.kernel, problem.initial_positions, problem.target), jnp.array(False))

    def step(self, key: Key, state: SamplingState, problem: SamplingProblem) -> tuple[SamplingState, SamplingInfo]:
        chains, info = step_chains(self.kernel, key, state.chains, problem.target)
        return SamplingState(chains, state.done), sampling_info(chains, info, problem.target)


def frozen_problem(problem: Problem, coreset: SelectedRows, positions: Position, num_chains: int) -> SamplingProblem:
    """Freeze the weights and go on from where the training chains ended, each sampling chain with its own stream.

    ``coreset`` may name other rows than ``problem``; ``positions`` has a leading chain axis of any length.
    """
    rows = problem.data.take(np.asarray(coreset.indices))
    weights = jax.device_put(np.asarray(coreset.weights, np.float64))
    target = problem.roomy_target(rows, weights, jax.device_put(coreset.term))
    num_trained = jax.tree.leaves(positions)[0].shape[0]
    places = np.arange(num_chains) % num_trained
    starts = jax.tree.map(lambda leaf: jax.device_put(np.asarray(leaf)[places]), positions)
    return SamplingProblem(target, starts)


def sample_coreset(
    problem: Problem, coreset: SelectedRows, positions: Position, kernel: Kernel, num_chains: int
) -> Trained:
    """Sample the coreset posterior with a kernel as it is."""
    return Trained(
        FrozenSampling(kernel), frozen_problem(problem, coreset, positions, num_chains), coreset, Law.CORESET
    )
