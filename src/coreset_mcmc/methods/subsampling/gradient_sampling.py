"""Chains driven by control-variate gradients, without accept or reject: what SGLD and SGHMC share.

Training searches the mode. Sampling starts every chain there, each with a stream of its own, after one pass over the
data for the gradient at the mode. The two methods differ in how a chain moves, which is a :class:`Dynamics`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Key, Position, pytree, static
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.kernels.shape import check_factor
from coreset_mcmc.methods.contract import Method, Needs, Sampler, Trained, check_needs
from coreset_mcmc.methods.law import Law
from coreset_mcmc.methods.sampling import SamplingInfo
from coreset_mcmc.methods.subsampling.approximate_mh import SubsamplingProblem, subsampling_problem
from coreset_mcmc.methods.subsampling.control_variates import (
    ControlVariate,
    control_variate,
    fresh_estimate,
    posterior_at_centre,
)
from coreset_mcmc.methods.subsampling.mode import ModeSearch, ModeSearchInfo, ModeSearchState
from coreset_mcmc.posterior.problem import Problem


class Estimate(NamedTuple):
    """A posterior estimate with the gradient as one vector."""

    log_density: jax.Array
    gradient: jax.Array


EstimateAt = Callable[[Key, jax.Array], Estimate]
"""An estimate at a flat position, from fresh rows."""


class Dynamics(Protocol):
    """How a chain moves, on flat positions."""

    @property
    def num_gradients(self) -> int:
        """Gradient estimates in each move."""

    def move(self, key: Key, flat: jax.Array, here: Estimate, estimate_at: EstimateAt) -> tuple[jax.Array, Estimate]:
        """The next position, and the estimate there.

        ``here`` is the estimate at ``flat`` from rows that had no part in choosing it.
        """


class GradientSamplingState(NamedTuple):
    """The chains, the estimate at each, and the control variate, which never changes."""

    position: Position
    estimates: Estimate
    control: ControlVariate
    done: jax.Array


@pytree
@dataclass(frozen=True)
class GradientSampling(Sampler):
    """Draws by dynamics with control-variate gradients.

    All chains must start at the mode estimate. ``log_density`` of a draw is the control-variate estimate of the log
    posterior: log prior + log-likelihood at the mode + (N / S) times the summed change of S rows since. ``num_steps``
    is the number of gradient estimates. There is no accept or reject, so ``acceptance_rate`` is 1.

    With a ``scale`` L (d, d) chains move in coordinates z of theta = here + L z, where gradients are L' times those of
    theta: with a factor of a covariance of the posterior all directions are about equally wide there.
    """

    dynamics: Dynamics
    subsample_size: int = static()
    scale: Any = None

    name = "sampling"

    def init(self, key: Key, problem: SubsamplingProblem) -> GradientSamplingState:
        del key
        centre = jax.tree.map(lambda leaf: leaf[0], problem.initial_positions)
        control = control_variate(problem.model, problem.data, centre)
        exact = posterior_at_centre(problem.model, control)
        estimates = jax.tree.map(
            lambda leaf: jnp.stack([leaf] * problem.num_chains),
            Estimate(exact.log_density, self._seen(ravel_pytree(exact.gradient)[0])),
        )
        return GradientSamplingState(problem.initial_positions, estimates, control, jnp.array(False))

    def init_evaluations(self, problem: SubsamplingProblem) -> int:
        return problem.data.size

    def step(
        self, key: Key, state: GradientSamplingState, problem: SubsamplingProblem
    ) -> tuple[GradientSamplingState, SamplingInfo]:
        _, unravel = ravel_pytree(state.control.centre)
        count = min(self.subsample_size, problem.data.size)

        def estimate_at(batch_key: Key, flat: jax.Array) -> Estimate:
            estimate = fresh_estimate(batch_key, problem.model, problem.data, count, state.control, unravel(flat))
            return Estimate(estimate.log_density, self._seen(ravel_pytree(estimate.gradient)[0]))

        def move(chain_key: Key, position: Position, here: Estimate) -> tuple[Position, Estimate]:
            flat = ravel_pytree(position)[0]
            if self.scale is None:
                flat, there = self.dynamics.move(chain_key, flat, here, estimate_at)
                return unravel(flat), there
            step, there = self.dynamics.move(
                chain_key, jnp.zeros_like(flat), here, lambda own, z: estimate_at(own, flat + self.scale @ z)
            )
            return unravel(flat + self.scale @ step), there

        keys = jax.random.split(key, problem.num_chains)
        positions, estimates = jax.vmap(move)(keys, state.position, state.estimates)
        is_finite = jnp.all(jnp.isfinite(estimates.gradient), axis=1) & jnp.isfinite(estimates.log_density)
        num_gradients = jnp.full(problem.num_chains, self.dynamics.num_gradients, jnp.int32)
        info = SamplingInfo(
            position=positions,
            log_density=estimates.log_density,
            acceptance_rate=jnp.ones(problem.num_chains, estimates.log_density.dtype),
            diverging=~is_finite,
            num_steps=num_gradients,
            num_evaluations=2 * count * jnp.sum(num_gradients, dtype=jnp.int64),
            status=jnp.where(jnp.all(is_finite), Status.OK.value, Status.STEP_SIZE_TOO_LARGE.value).astype(jnp.int32),
        )
        return state._replace(position=positions, estimates=estimates), info

    def _seen(self, gradient: jax.Array) -> jax.Array:
        return gradient if self.scale is None else gradient @ self.scale

    def describe(self, info: SamplingInfo) -> str:
        """The progress bar shows whether the chains stay where the posterior is."""
        return f"log density {info.log_density[-1].mean():.4g}"


class TrainsByModeSearch(Method):
    """The training stage of a control-variate method, and what it leaves for sampling."""

    subsample_size: int
    mode: ModeSearch
    scale: Any

    needs = Needs(gradient=True, continuous=True)
    uses_coreset_rows = False

    @property
    @abstractmethod
    def dynamics(self) -> Dynamics:
        """How chains move afterwards."""

    @property
    def max_steps(self) -> int:
        return self.mode.max_iterations

    def check(self, problem: Problem) -> None:
        check_needs(self.name, self.needs, problem)
        if self.scale is not None:
            check_factor(f"{type(self).__name__} scale", self.scale, problem.position)

    def init(self, key: Key, problem: Problem) -> ModeSearchState:
        del key
        return self.mode.init(problem.position)

    def step(self, key: Key, state: ModeSearchState, problem: Problem) -> tuple[ModeSearchState, ModeSearchInfo]:
        return self.mode.step(key, state, problem)

    def shortfall(self, state: ModeSearchState) -> str:
        return self.mode.shortfall(state)

    def finish(self, state: ModeSearchState, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        """Chains at the mode estimate; the kernel, if one was given, has no part in it."""
        del kernel
        mode = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state.position)
        scale = None if self.scale is None else jnp.asarray(self.scale, jnp.float64)
        return Trained(
            GradientSampling(self.dynamics, self.subsample_size, scale),
            subsampling_problem(problem, mode, num_chains),
            None,
            Law.APPROXIMATE,
        )

    def describe(self, info: ModeSearchInfo) -> str:
        """The progress bar shows what decides about the end."""
        return f"largest update {info.update_size[-1]:.2g}"
