"""The No-U-Turn sampler on all rows (Hoffman and Gelman 2014): the draws that others are measured against.

Every gradient is a pass over the data, blocks of rows at a time. Two things keep their number down. First the mode is
searched for, which takes a few dozen passes; if there is one, chains start from the Gaussian there and with its
covariance as metric, if not, from the given starts with a unit metric. Then Stan's warm-up windows adapt step size and
metric, with one step size and one metric for all chains, so that every chain's draws help to estimate them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import require, require_count
from coreset_mcmc.core.on_use import on_use
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.types import Key, Position, pytree, static
from coreset_mcmc.kernels.base import Kernel
from coreset_mcmc.methods.contract import Method, Needs, Sampler, Trained
from coreset_mcmc.methods.law import Law
from coreset_mcmc.methods.sampling import SamplingInfo, SamplingState
from coreset_mcmc.posterior.full import full_log_density
from coreset_mcmc.posterior.newton import NewtonSearch, NewtonSearchInfo, NewtonSearchState, approximation_at
from coreset_mcmc.posterior.problem import Problem

if TYPE_CHECKING:
    from blackjax.adaptation.mass_matrix import MassMatrixAdaptationState
    from blackjax.adaptation.step_size import DualAveragingAdaptationState
    from blackjax.mcmc.hmc import HMCState

metrics = on_use("blackjax.adaptation.mass_matrix")
schedules = on_use("blackjax.adaptation.staged_adaptation")
step_sizes = on_use("blackjax.adaptation.step_size")
nuts = on_use("blackjax.mcmc.nuts")

INITIAL_STEP_SIZE = 1.0
"""Of the order of the right one under the right metric; dual averaging is quick to correct it otherwise."""


class Moves(NamedTuple):
    """What a step of each of K chains reports, each (K,)."""

    acceptance_rate: jax.Array
    num_steps: jax.Array
    diverging: jax.Array


def log_density_of_all_rows(problem: Problem) -> Callable[[Position], jax.Array]:
    """What BlackJAX differentiates."""
    return lambda position: full_log_density(problem.model, problem.data, position)


def start_chains(positions: Position, problem: Problem) -> HMCState:
    """One chain after the other, so that only one block of rows is differentiated at a time."""
    return jax.lax.map(lambda position: nuts.init(position, log_density_of_all_rows(problem)), positions)


def move_chains(
    key: Key, chains: HMCState, problem: Problem, step_size: jax.Array, metric: jax.Array, max_doublings: int
) -> tuple[HMCState, Moves]:
    """One NUTS step of each chain: trees differ in size, so on a CPU chains run one after the other."""
    kernel = nuts.build_kernel()
    log_density = log_density_of_all_rows(problem)

    def move(chain: tuple[Key, HMCState]) -> tuple[HMCState, Moves]:
        moved, info = kernel(chain[0], chain[1], log_density, step_size, metric, max_doublings)
        return moved, Moves(info.acceptance_rate, info.num_integration_steps.astype(jnp.int32), info.is_divergent)

    num_chains = chains.logdensity.shape[0]
    pairs = (jax.random.split(key, num_chains), chains)
    moved: tuple[HMCState, Moves] = jax.lax.map(move, pairs) if _is_cpu() else jax.vmap(move)(pairs)
    return moved


def _is_cpu() -> bool:
    return jax.default_backend() == "cpu"


def _status(chains: HMCState) -> jax.Array:
    is_lost = jnp.any(chains.logdensity == -jnp.inf)
    return jnp.where(is_lost, Status.CHAIN_LOST.value, Status.OK.value).astype(jnp.int32)


class Adaptation(NamedTuple):
    """Step size and metric, common to all chains."""

    step_size: DualAveragingAdaptationState
    metric: MassMatrixAdaptationState


class NUTSState(NamedTuple):
    """First the search for the mode, then chains that warm up."""

    search: NewtonSearchState
    chains: HMCState
    adaptation: Adaptation
    is_searching: jax.Array
    num_warmed: jax.Array
    done: jax.Array


class NUTSInfo(NamedTuple):
    """What one training step reports; NaN where it does not apply."""

    newton_decrement: jax.Array
    step_size: jax.Array
    acceptance_rate: jax.Array
    log_density: jax.Array
    """The mean over chains."""
    diverging: jax.Array
    num_evaluations: jax.Array
    status: jax.Array


@pytree
@dataclass(frozen=True)
class NUTS(Method):
    """Full-data NUTS through BlackJAX.

    Args:
        num_warmup: steps of each chain that adapt step size and metric.
        target_acceptance: what the step size aims for; closer to one means smaller steps and fewer divergences.
        dense_mass: adapt all covariances, or variances alone.
        num_chains: chains that warm up together.
        max_mode_iterations: most Newton steps in the search for the mode; 0 starts from the given starts.
        max_doublings: at most 2^max_doublings - 1 gradients for one draw.
    """

    num_warmup: int = static(default=1_000)
    target_acceptance: float = 0.8
    dense_mass: bool = static(default=True)
    num_chains: int = static(default=4)
    max_mode_iterations: int = 50
    max_doublings: int = static(default=10)

    name = "nuts"
    needs = Needs(gradient=True, continuous=True)
    uses_coreset_rows = False

    def __post_init__(self) -> None:
        require_count("num_warmup", self.num_warmup, at_least=20, fix="A few hundred steps are the least for a metric.")
        require_count("num_chains", self.num_chains, at_least=1, fix="Four chains adapt better than one.")
        require_count("max_doublings", self.max_doublings, at_least=1, fix="Leave it out for 10.")
        if isinstance(self.max_mode_iterations, int):
            require_count("max_mode_iterations", self.max_mode_iterations, at_least=0, fix="Leave it out for 50.")
        if isinstance(self.target_acceptance, float):
            require(
                0.0 < self.target_acceptance < 1.0,
                "target_acceptance",
                got=self.target_acceptance,
                expected="a number between 0 and 1",
                fix="0.8 suits most posteriors; use 0.95 against divergences.",
            )

    @property
    def max_steps(self) -> int:
        return self.max_mode_iterations + self.num_warmup

    def init_evaluations(self, problem: Problem) -> int:
        return self.num_chains * problem.data.size

    def init(self, key: Key, problem: Problem) -> NUTSState:
        del key
        positions = jax.tree.map(lambda leaf: leaf[: self.num_chains], problem.initial_positions)
        search = self._search().init(problem)
        return NUTSState(
            search=search,
            chains=start_chains(positions, problem),
            adaptation=self._adaptation(self._unit_metric(search.position)),
            is_searching=jnp.asarray(self.max_mode_iterations > 0),
            num_warmed=jnp.zeros((), jnp.int32),
            done=jnp.array(False),
        )

    def step(self, key: Key, state: NUTSState, problem: Problem) -> tuple[NUTSState, NUTSInfo]:
        stepped: tuple[NUTSState, NUTSInfo] = jax.lax.cond(
            state.is_searching,
            lambda: self._search_step(key, state, problem),
            lambda: self._warmup_step(key, state, problem),
        )
        return stepped

    def describe(self, info: NUTSInfo) -> str:
        if np.isnan(info.step_size[-1]):
            return f"{info.newton_decrement[-1]:.2g} sd from the mode"
        return f"step size {info.step_size[-1]:.2g}"

    def finish(self, state: NUTSState, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        del kernel
        step_size = jnp.exp(state.adaptation.step_size.log_step_size_avg)
        metric = state.adaptation.metric.inverse_mass_matrix
        starts = jax.tree.map(lambda leaf: leaf[jnp.arange(num_chains) % self.num_chains], state.chains.position)
        frozen = NUTSProblem(problem, starts, step_size, metric)
        return Trained(NUTSSampling(self.max_doublings), frozen, None, Law.FULL)

    def _search_step(self, key: Key, state: NUTSState, problem: Problem) -> tuple[NUTSState, NUTSInfo]:
        """One Newton step; at the mode the chains move to the Gaussian there."""
        search, info = self._search().step(state.search, problem)
        is_over = search.has_converged | (search.iteration >= self.max_mode_iterations)
        chains, adaptation = jax.lax.cond(
            search.has_converged,
            lambda: self._from_gaussian(key, search, problem),
            lambda: (state.chains, state.adaptation),
        )
        num_evaluations = info.num_evaluations + search.has_converged * self.num_chains * problem.data.size
        moved = state._replace(search=search, chains=chains, adaptation=adaptation, is_searching=~is_over)
        return moved, self._searching(info, num_evaluations)

    def _from_gaussian(self, key: Key, search: NewtonSearchState, problem: Problem) -> tuple[HMCState, Adaptation]:
        gaussian = approximation_at(search)
        noise = jax.random.normal(key, (self.num_chains, gaussian.mean.shape[0]), gaussian.mean.dtype)
        positions = jax.vmap(ravel_pytree(problem.position)[1])(gaussian.draws(noise))
        covariance = gaussian.scale_factor @ gaussian.scale_factor.T
        metric = covariance if self.dense_mass else jnp.diag(covariance)
        return start_chains(positions, problem), self._adaptation(metric)

    def _warmup_step(self, key: Key, state: NUTSState, problem: Problem) -> tuple[NUTSState, NUTSInfo]:
        step_size = jnp.exp(state.adaptation.step_size.log_step_size)
        metric = state.adaptation.metric.inverse_mass_matrix
        chains, moves = move_chains(key, state.chains, problem, step_size, metric, self.max_doublings)
        num_warmed = state.num_warmed + 1
        moved = state._replace(
            chains=chains,
            adaptation=self._adapt(state, chains.position, jnp.mean(moves.acceptance_rate)),
            num_warmed=num_warmed,
            done=num_warmed >= self.num_warmup,
        )
        info = NUTSInfo(
            newton_decrement=jnp.full_like(step_size, jnp.nan),
            step_size=step_size,
            acceptance_rate=jnp.mean(moves.acceptance_rate),
            log_density=jnp.mean(chains.logdensity),
            diverging=jnp.sum(moves.diverging),
            num_evaluations=problem.data.size * jnp.sum(moves.num_steps, dtype=jnp.int64),
            status=_status(chains),
        )
        return moved, info

    def _adapt(self, state: NUTSState, positions: Position, acceptance_rate: jax.Array) -> Adaptation:
        """Dual averaging at every step; the metric from the draws of all chains at the end of each window."""
        init_step_size, update_step_size, final_step_size = step_sizes.dual_averaging_adaptation(self.target_acceptance)
        _, update_metric, final_metric = metrics.mass_matrix_adaptation(is_diagonal_matrix=not self.dense_mass)
        is_slow, is_window_end = schedules.build_schedule(self.num_warmup)[state.num_warmed]
        step_size = update_step_size(state.adaptation.step_size, acceptance_rate)

        def observe(metric: MassMatrixAdaptationState) -> MassMatrixAdaptationState:
            return jax.lax.scan(lambda seen, at: (update_metric(seen, at), None), metric, positions)[0]

        metric = jax.lax.cond(is_slow == 1, observe, lambda unchanged: unchanged, state.adaptation.metric)
        adapted: Adaptation = jax.lax.cond(
            is_window_end == 1,
            lambda now: Adaptation(init_step_size(final_step_size(now.step_size)), final_metric(now.metric)),
            lambda now: now,
            Adaptation(step_size, metric),
        )
        return adapted

    def _adaptation(self, metric: jax.Array) -> Adaptation:
        init_step_size = step_sizes.dual_averaging_adaptation(self.target_acceptance)[0]
        init_metric = metrics.mass_matrix_adaptation(is_diagonal_matrix=not self.dense_mass)[0]
        step_size = init_step_size(jnp.asarray(INITIAL_STEP_SIZE, metric.dtype))
        return _strongly_typed(Adaptation(step_size, init_metric(metric.shape[0], metric)), metric.dtype)

    def _unit_metric(self, flat: jax.Array) -> jax.Array:
        return jnp.eye(flat.size, dtype=flat.dtype) if self.dense_mass else jnp.ones_like(flat)

    def _search(self) -> NewtonSearch:
        """Whether it converges is ours to judge: it may not fail by running out of iterations."""
        return NewtonSearch(np.iinfo(np.int32).max)

    def _searching(self, info: NewtonSearchInfo, num_evaluations: jax.Array) -> NUTSInfo:
        nothing = jnp.full_like(info.log_density, jnp.nan)
        return NUTSInfo(
            newton_decrement=info.newton_decrement,
            step_size=nothing,
            acceptance_rate=nothing,
            log_density=info.log_density,
            diverging=jnp.sum(jnp.zeros((), bool)),
            num_evaluations=num_evaluations,
            status=jnp.zeros((), jnp.int32),
        )


def _strongly_typed(adaptation: Adaptation, dtype: Any) -> Adaptation:
    """Python numbers among BlackJAX's first values become arrays, as the later ones are."""
    result: Adaptation = jax.tree.map(
        lambda leaf: jnp.asarray(leaf, jnp.int64 if jnp.issubdtype(jnp.result_type(leaf), jnp.integer) else dtype),
        adaptation,
    )
    return result


@pytree
@dataclass(frozen=True)
class NUTSProblem:
    """The posterior with all rows, starts, and what warm-up has found."""

    problem: Problem
    initial_positions: Position
    step_size: jax.Array
    inverse_mass_matrix: jax.Array


@pytree
@dataclass(frozen=True)
class NUTSSampling(Sampler):
    """One NUTS draw of each chain in every step, with step size and metric frozen."""

    max_doublings: int = static()

    name = "sampling"

    def init(self, key: Key, problem: NUTSProblem) -> SamplingState:
        del key
        return SamplingState(start_chains(problem.initial_positions, problem.problem), jnp.array(False))

    def init_evaluations(self, problem: NUTSProblem) -> int:
        return int(jax.tree.leaves(problem.initial_positions)[0].shape[0] * problem.problem.data.size)

    def step(self, key: Key, state: SamplingState, problem: NUTSProblem) -> tuple[SamplingState, SamplingInfo]:
        chains, moves = move_chains(
            key, state.chains, problem.problem, problem.step_size, problem.inverse_mass_matrix, self.max_doublings
        )
        info = SamplingInfo(
            position=chains.position,
            log_density=chains.logdensity,
            acceptance_rate=moves.acceptance_rate,
            diverging=moves.diverging,
            num_steps=moves.num_steps,
            num_evaluations=problem.problem.data.size * jnp.sum(moves.num_steps, dtype=jnp.int64),
            status=_status(chains),
        )
        return SamplingState(chains, state.done), info

    def describe(self, info: SamplingInfo) -> str:
        count = int(info.diverging.sum())
        return f"{count} divergences" if count else f"{info.num_steps[-1].mean():.3g} gradients a draw"
