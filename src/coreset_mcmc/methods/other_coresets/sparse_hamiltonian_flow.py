"""Sparse Hamiltonian flows (Chen, Xu and Campbell 2022), with the settings of appendix C of the paper.

Weights of the coreset, leapfrog step sizes and quasi-refreshments of a flow
(:mod:`coreset_mcmc.methods.other_coresets.flow`) are trained together: each step draws one start of the flow and a
fresh minibatch, differentiates the estimate of the evidence lower bound through the whole flow, and lets Adam move all
parameters at once. Sampling is pushing fresh starts through the trained flow, so draws are independent and there is
nothing to burn in.

Refreshments divide momenta by their *standard deviation*, as the authors of the flow do. The experiments of the paper
began with the variance in its place, ``warm_start="variance"``, and left it to training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from coreset_mcmc.core.errors import InputError, require, require_count, require_positive
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Key, pytree, static
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.data.shuffle import without_replacement
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.methods.contract import Method, Needs, Trained
from coreset_mcmc.methods.law import Law
from coreset_mcmc.methods.other_coresets.flow import FlowParameters, SparseFlow, spread
from coreset_mcmc.methods.sampling import IndependentSampler, Memoryless, SamplingInfo
from coreset_mcmc.posterior.problem import Problem


class FlowState(NamedTuple):
    """The parameters of the flow, and what Adam remembers."""

    parameters: FlowParameters
    optimizer: Any
    num_updates: jax.Array
    done: jax.Array


class FlowInfo(NamedTuple):
    """What one Adam step reports."""

    elbo: jax.Array
    """The estimate that was differentiated: one draw, one minibatch, so it is noisy."""
    gradient_norm: jax.Array
    num_evaluations: jax.Array
    """Each gradient on the way through the flow counts one for each coreset row, and so does its derivative on the way
    back; the minibatch is evaluated once."""
    status: jax.Array


@pytree
@dataclass(frozen=True)
class SparseHamiltonianFlow(Method):
    """Train a flow that alternates leapfrog steps on a coreset with affine maps of the momentum.

    ``step_size``, ``initial_location`` and ``initial_scale`` are numbers for all coordinates, or pytrees with a number
    or an array for each part of the position.

    Args:
        num_refreshments: R.
        num_leapfrog: L, leapfrog steps before each refreshment.
        num_iterations: Adam steps.
        learning_rate: of Adam.
        subsample_size: rows of the fresh minibatch in each step.
        step_size: of the leapfrog steps, where training starts from.
        num_particles: particles that set the refreshments before training.
        warm_start: what they divide momenta by at first: their "deviation" or, as the paper's experiments, "variance".
        initial_location, initial_scale: the normal distribution in which the flow starts; standard in the paper. It is
            not trained, so a posterior far away or much narrower asks for a longer training.
    """

    num_refreshments: int = static(default=8)
    num_leapfrog: int = static(default=10)
    num_iterations: int = 50_000
    learning_rate: float = 0.002
    subsample_size: int = static(default=100)
    step_size: Any = 1e-4
    num_particles: int = static(default=100)
    initial_location: Any = 0.0
    initial_scale: Any = 1.0
    warm_start: Literal["deviation", "variance"] = static(default="deviation")

    name = "sparse-hamiltonian-flow"
    needs = Needs(gradient=True, continuous=True)

    def __post_init__(self) -> None:
        require_count("num_refreshments", self.num_refreshments, at_least=1, fix="The paper uses 8.")
        require_count("num_leapfrog", self.num_leapfrog, at_least=1, fix="The paper uses 10.")
        require_count("subsample_size", self.subsample_size, at_least=1, fix="The paper uses 100 rows.")
        require_count("num_particles", self.num_particles, at_least=2, fix="A standard deviation needs two.")
        if isinstance(self.num_iterations, int):
            require_count("num_iterations", self.num_iterations, at_least=1, fix="Pass how many Adam steps to make.")
        require_positive("learning_rate", self.learning_rate)
        require(
            self.warm_start in ("deviation", "variance"),
            "warm_start",
            got=self.warm_start,
            expected='"deviation" or "variance"',
            fix='"variance" is what the experiments of the paper did.',
        )
        require_positive("step_size", self.step_size)
        require_positive("initial_scale", self.initial_scale)

    @property
    def num_chains(self) -> int:
        """Training starts from the flow's own distribution, not from given positions."""
        return 1

    @property
    def max_steps(self) -> int:
        return self.num_iterations

    @property
    def num_steps_in_flow(self) -> int:
        return self.num_refreshments * self.num_leapfrog

    def check(self, problem: Problem) -> None:
        """Raise an InputError if this method cannot work on this problem."""
        size = problem.data.size
        require(
            self.subsample_size <= size,
            "subsample_size",
            got=self.subsample_size,
            expected=f"at most the {size} rows of the data",
            fix="Pass a smaller minibatch.",
        )
        require(
            bool(jnp.all(problem.initial_weights > 0)),
            "initial weights",
            got=f"{int(jnp.sum(problem.initial_weights <= 0))} that are not positive",
            expected="positive weights, because their logarithms are trained",
            fix="Leave rows without weight out of the selection.",
        )
        for name in ("step_size", "initial_scale", "initial_location"):
            values = _checked_spread(name, getattr(self, name), problem)
            require(
                bool(jnp.all(jnp.isfinite(values))) and (name == "initial_location" or bool(jnp.all(values > 0))),
                name,
                got=np.asarray(values),
                expected="finite numbers" if name == "initial_location" else "positive finite numbers",
                fix="Pass one number, or one for each part of the position.",
            )

    def flow(self, problem: Problem) -> SparseFlow:
        """The map on this problem, with the parameters left open."""
        return SparseFlow(
            rows=problem.rows,
            position=problem.position,
            location=spread(self.initial_location, problem.position),
            scale=spread(self.initial_scale, problem.position),
            model=problem.model,
            num_leapfrog=self.num_leapfrog,
        )

    def init_evaluations(self, problem: Problem) -> int:
        return self.num_particles * (self.num_steps_in_flow + 1) * problem.coreset_size

    def init(self, key: Key, problem: Problem) -> FlowState:
        step_sizes = spread(self.step_size, problem.position)
        zeros = jnp.zeros((self.num_refreshments, *step_sizes.shape), step_sizes.dtype)
        untrained = FlowParameters(jnp.log(problem.initial_weights), jnp.log(step_sizes), zeros, zeros)
        parameters = self.flow(problem).warm_start(
            key, untrained, self.num_particles, power=2 if self.warm_start == "variance" else 1
        )
        return FlowState(
            parameters=parameters,
            optimizer=optax.adam(self.learning_rate).init(parameters),
            num_updates=jnp.zeros((), jnp.int32),
            done=jnp.array(False),
        )

    def step(self, key: Key, state: FlowState, problem: Problem) -> tuple[FlowState, FlowInfo]:
        start_key, batch_key = jax.random.split(key)
        flow, size = self.flow(problem), problem.data.size
        position, momentum = flow.start(start_key)
        batch = problem.data.take(without_replacement(batch_key, size, self.subsample_size))

        def loss(parameters: FlowParameters) -> jax.Array:
            return -flow.elbo(parameters, position, momentum, batch, size)

        value, gradient = jax.value_and_grad(loss)(state.parameters)
        updates, optimizer = optax.adam(self.learning_rate).update(gradient, state.optimizer)
        norm = optax.tree.norm(gradient)
        num_updates = state.num_updates + 1
        moved = FlowState(
            parameters=optax.apply_updates(state.parameters, updates),
            optimizer=optimizer,
            num_updates=num_updates,
            done=state.done | (num_updates >= self.num_iterations),
        )
        status = jnp.where(jnp.isfinite(norm), Status.OK.value, Status.GRADIENT_NOT_FINITE.value)
        num_rows = (2 * self.num_steps_in_flow + 1) * problem.coreset_size + self.subsample_size
        return moved, FlowInfo(-value, norm, jnp.asarray(num_rows, jnp.int64), status.astype(jnp.int32))

    def describe(self, info: FlowInfo) -> str:
        return f"ELBO {info.elbo.mean():.5g}"

    def finish(self, state: FlowState, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        del kernel
        coreset = SelectedRows(np.asarray(problem.indices), np.exp(np.asarray(state.parameters.log_weights)))
        frozen = FlowSamplingProblem(self.flow(problem), state.parameters)
        return Trained(FlowSampling(num_chains), frozen, coreset, Law.APPROXIMATE)


@pytree
@dataclass(frozen=True)
class FlowSamplingProblem:
    """A trained flow."""

    flow: SparseFlow
    parameters: FlowParameters


@pytree
@dataclass(frozen=True)
class FlowSampling(IndependentSampler):
    """Independent draws of a trained flow, ``num_chains`` in each step.

    ``diverging`` marks a draw whose leapfrog steps ran off to where the coreset log-density is not finite.
    """

    num_chains: int = static()

    name = "flow-sampling"

    def step(self, key: Key, state: Memoryless, problem: FlowSamplingProblem) -> tuple[Memoryless, SamplingInfo]:
        flow, parameters = problem.flow, problem.parameters
        positions, momenta = jax.vmap(flow.start)(jax.random.split(key, self.num_chains))
        ends = jax.vmap(lambda position, momentum: flow.push(parameters, position, momentum))(positions, momenta)
        num_steps = parameters.means.shape[0] * flow.num_leapfrog
        num_rows = self.num_chains * (num_steps + 1) * parameters.log_weights.shape[0]
        info = SamplingInfo(
            position=jax.vmap(flow.unflatten)(ends.position),
            log_density=ends.log_density,
            acceptance_rate=jnp.ones_like(ends.log_density),
            diverging=~jnp.isfinite(ends.log_density),
            num_steps=jnp.full(self.num_chains, num_steps, jnp.int32),
            num_evaluations=jnp.asarray(num_rows, jnp.int64),
            status=jnp.asarray(Status.OK.value, jnp.int32),
        )
        return state, info

    def describe(self, info: SamplingInfo) -> str:
        count = int(info.diverging.sum())
        return f"{count} divergent draws" if count else f"log density {info.log_density[-1].mean():.4g}"


def _checked_spread(name: str, value: Any, problem: Problem) -> jax.Array:
    try:
        return spread(value, problem.position)
    except (ValueError, TypeError) as error:
        raise InputError(
            name,
            got=value,
            expected=f"a number, or a pytree that matches {jax.tree.structure(problem.position)}",
            fix="Pass one number, or one for each part of the position.",
        ) from error
