"""The contract of a Markov kernel, and how several chains take a step.

A kernel leaves the target invariant for every weight vector. ``init(position, target) -> state`` evaluates whatever
the state caches; ``step(key, state, target) -> (state, info)`` moves once. The target is an argument of both: when the
weights move nothing compiles again, but a cached log-density becomes stale, so :func:`restart_chains` must be called
after every change of the target.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.core.types import Key, Position
from coreset_mcmc.posterior.target import CoresetTarget

MAX_WRITTEN_OUT = 2
"""Up to this many chains each have a copy of the kernel in the compiled program; more would compile too long."""


class KernelState(NamedTuple):
    """Where a chain is, and the log-density there under the current target."""

    position: Position
    log_density: jax.Array


class KernelInfo(NamedTuple):
    """What happened in one step of one chain."""

    acceptance_rate: jax.Array
    num_evaluations: jax.Array
    """Evaluations of the log-density, each of which costs one log-likelihood per coreset row."""
    diverging: jax.Array
    """The step could not be completed as intended (a divergent trajectory, a slice search that hit its cap)."""


class Kernel(ABC):
    """Anything that leaves a :class:`~coreset_mcmc.posterior.target.CoresetTarget` invariant.

    States have a ``position`` and its ``log_density``; :class:`KernelState` does where no more is to be remembered.
    """

    has_data_dependent_loops: ClassVar[bool] = False
    """Whether steps of different chains take different numbers of evaluations."""

    reads_log_density: ClassVar[bool] = True
    """Whether the log-density of the target is what it samples; otherwise rows and weights, without a Gaussian term."""

    caches_gradient: bool = False
    """Whether states hold gradients too, so that restarting after a weight update costs an evaluation of its own."""

    @abstractmethod
    def step(self, key: Key, state: Any, target: CoresetTarget) -> tuple[Any, KernelInfo]:
        """One move of one chain."""

    def init(self, position: Position, target: CoresetTarget) -> Any:
        """A state at this position, with whatever is cached evaluated: by default the log-density."""
        return KernelState(position, target.log_density(position))

    def check(self, position: Position, target: CoresetTarget) -> None:
        """Raise an :class:`~coreset_mcmc.core.errors.InputError` if the kernel cannot sample such positions.

        By default those with discrete parts.
        """
        del target
        check_continuous(type(self).__name__, position)


def init_chains(kernel: Kernel, positions: Position, target: CoresetTarget) -> Any:
    """States of K chains from positions with a leading chain axis."""
    return jax.vmap(lambda position: kernel.init(position, target))(positions)


def restart_chains(kernel: Kernel, states: Any, target: CoresetTarget) -> Any:
    """The same positions under a target that has changed: every cached value is evaluated anew."""
    return init_chains(kernel, states.position, target)


def step_chains(kernel: Kernel, key: Key, states: Any, target: CoresetTarget) -> tuple[Any, KernelInfo]:
    """One step of each chain, with a random stream of its own.

    On a CPU, chains whose loops end at different times run one after the other: a vectorised loop runs until the
    slowest chain is done, and the rows of one chain already fill the SIMD lanes. The two chains of the paper are
    written out, which saves the cost of a loop over chains.
    """
    num_chains = jax.tree.leaves(states)[0].shape[0]
    keys = jax.random.split(key, num_chains)
    if kernel.has_data_dependent_loops and jax.default_backend() == "cpu":
        if num_chains > MAX_WRITTEN_OUT:
            result: tuple[Any, KernelInfo] = jax.lax.map(
                lambda chain: kernel.step(chain[0], chain[1], target), (keys, states)
            )
            return result
        steps = [
            kernel.step(keys[number], jax.tree.map(lambda leaf, number=number: leaf[number], states), target)
            for number in range(num_chains)
        ]
        stacked: tuple[Any, KernelInfo] = jax.tree.map(lambda *leaves: jnp.stack(leaves), *steps)
        return stacked
    return jax.vmap(lambda chain_key, state: kernel.step(chain_key, state, target))(keys, states)


WHOLE_NUMBERS = "Use kernel=cm.kernels.MixedSlice(), which moves whole numbers and truth values too."


def check_continuous(kernel_name: str, position: Position, fix: str = WHOLE_NUMBERS) -> None:
    """Refuse positions with discrete parts."""
    for path, leaf in jax.tree_util.tree_leaves_with_path(position):
        if not jnp.issubdtype(jnp.result_type(leaf), jnp.floating):
            raise InputError(
                f"kernel {kernel_name}",
                got=f"position{jax.tree_util.keystr(path)} of type {jnp.result_type(leaf)}",
                expected="continuous (floating point) positions",
                fix=fix,
            )


def check_differentiable(kernel_name: str, target: CoresetTarget) -> None:
    """Refuse models without gradients."""
    if not target.model.differentiable:
        raise InputError(
            f"kernel {kernel_name}",
            got=f"model {target.model.name!r}, which declares itself not differentiable",
            expected="a model with gradients",
            fix="Use a gradient-free kernel such as HitAndRunSlice or RandomWalk.",
        )
