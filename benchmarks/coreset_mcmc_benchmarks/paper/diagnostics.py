"""Experiments that explain a difference: one property of the published code is put back, everything else stays.

None of these is a contestant. They stand in the table of runs beside the others, and :mod:`.reasons` names them.

- QNC: the direction is 1 000 times too long, since the gradient is a sum over the draws and the matrix a mean. A step
  of 1 along it is one of 1 000 along ours; a search that fails takes its last step untested.
- QNC: after each iteration the chain goes back to where that began, and takes one step from there.
- Confidence: the test ends when the next look would be at all rows, so the decision is forced with rows still unseen.
- SGLD and SGHMC: sampling begins where the search for the mode began, instead of where it ended.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.types import Key, pytree
from coreset_mcmc.kernels.base import Kernel, restart_chains
from coreset_mcmc.methods import QuasiNewton
from coreset_mcmc.methods.contract import Trained
from coreset_mcmc.methods.draws import collect_draws
from coreset_mcmc.methods.other_coresets.quasi_newton import QuasiNewtonInfo, QuasiNewtonState, line_search
from coreset_mcmc.methods.subsampling import SGHMC, SGLD, ConfidenceMH
from coreset_mcmc.methods.subsampling.confidence import EmpiricalBernstein
from coreset_mcmc.methods.subsampling.control_variates import fresh_estimate
from coreset_mcmc.methods.subsampling.gradient_sampling import Estimate, GradientSampling, GradientSamplingState
from coreset_mcmc.methods.subsampling.sequential import Evidence
from coreset_mcmc.posterior.problem import Problem
from coreset_mcmc_benchmarks.paper.budget import Budget
from coreset_mcmc_benchmarks.paper.cases import Case
from coreset_mcmc_benchmarks.paper.plan import Contestant, Plan
from coreset_mcmc_benchmarks.paper.settings import CONTESTANTS

DIAGNOSTIC = "experiment"
TOO_LONG = 1_000.0


@pytree
@dataclass(frozen=True)
class LongDirection(QuasiNewton):
    """A search that begins a thousand times too far out, and takes what it ends with."""

    def _step_size(self, state: QuasiNewtonState, line: Any) -> tuple[jax.Array, jax.Array]:
        found, _ = line_search(line, jnp.full((), TOO_LONG, state.weights.dtype), self.max_trials)
        applied = jnp.where(state.iteration < self.num_line_searches, found, state.step_size)
        return applied, applied


@pytree
@dataclass(frozen=True)
class GoingBack(QuasiNewton):
    """Draws of the next iteration begin a single step after where those of this one began."""

    def step(self, key: Key, state: QuasiNewtonState, problem: Problem) -> tuple[QuasiNewtonState, QuasiNewtonInfo]:
        made, info = QuasiNewton.step(self, key, state, problem)
        target = problem.target(made.weights)
        began = restart_chains(self.moving_kernel, state.chains, target)
        moved = collect_draws(self.moving_kernel, jax.random.fold_in(key, 1), began, target, 1, 0)
        return made._replace(chains=moved.chains), info


@pytree
@dataclass(frozen=True)
class LongAndBack(GoingBack, LongDirection):
    """Both."""


@pytree
@dataclass(frozen=True)
class ForcedBernstein(EmpiricalBernstein):
    """The last look is the one before all rows."""

    def is_enough(self, evidence: Evidence, threshold: jax.Array, bound: jax.Array, size: int) -> jax.Array:
        is_sure = EmpiricalBernstein.is_enough(self, evidence, threshold, bound, size)
        return is_sure | (self.growth * evidence.num_rows >= size)


@pytree
@dataclass(frozen=True)
class ForcedConfidence(ConfidenceMH):
    """Decides at the look before all rows at the latest."""

    def finish(self, state: Any, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        trained = ConfidenceMH.finish(self, state, problem, kernel=kernel, num_chains=num_chains)
        test = ForcedBernstein(self.error, self.power, self.growth, self.uses_model_bound(problem.model))
        sampler: Any = trained.sampler
        return trained._replace(sampler=dataclasses.replace(sampler, test=test))


@pytree
@dataclass(frozen=True)
class FromStart(GradientSampling):
    """The control variate is at the mode; chains begin elsewhere."""

    start: Any = None

    def init(self, key: Key, problem: Any) -> GradientSamplingState:
        state = GradientSampling.init(self, key, problem)
        count = min(self.subsample_size, problem.data.size)
        first = fresh_estimate(key, problem.model, problem.data, count, state.control, self.start)
        estimate = Estimate(first.log_density, ravel_pytree(first.gradient)[0])
        everywhere = jax.tree.map(lambda leaf: jnp.stack([leaf] * problem.num_chains), (self.start, estimate))
        return state._replace(position=everywhere[0], estimates=everywhere[1])


def _from_start(method: Any, problem: Problem, trained: Trained) -> Trained:
    start = jax.tree.map(jnp.asarray, problem.position)
    return trained._replace(sampler=FromStart(method.dynamics, method.subsample_size, None, start))


@pytree
@dataclass(frozen=True)
class LangevinFromStart(SGLD):
    """Without a scale."""

    def finish(self, state: Any, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        return _from_start(self, problem, SGLD.finish(self, state, problem, kernel=kernel, num_chains=num_chains))


@pytree
@dataclass(frozen=True)
class FrictionFromStart(SGHMC):
    """Without a scale."""

    def finish(self, state: Any, problem: Problem, *, kernel: Kernel | None, num_chains: int) -> Trained:
        return _from_start(self, problem, SGHMC.finish(self, state, problem, kernel=kernel, num_chains=num_chains))


def _changed(title: str, contestant: str, changed: type) -> Contestant:
    """The contestant as published, with its method made an object of the changed class."""
    original = CONTESTANTS[contestant]

    def plan(case: Case, budget: Budget, coreset_size: int, seed: int) -> Plan:
        made = original.plan(case, budget, coreset_size, seed)
        method = made.arguments["method"]
        settings = {field.name: getattr(method, field.name) for field in dataclasses.fields(method)}
        return Plan(DIAGNOSTIC, made.arguments | {"method": changed(**settings)}, made.seeds)

    return Contestant(title, plan, original.has_coreset, original.needs_gradient)


DIAGNOSTICS: dict[str, Contestant] = {
    "quasi-newton-long": _changed("QNC, direction 1 000 times too long", "quasi-newton", LongDirection),
    "quasi-newton-back": _changed("QNC, chain sent back", "quasi-newton", GoingBack),
    "quasi-newton-both": _changed("QNC, chain sent back and direction too long", "quasi-newton", LongAndBack),
    "confidence-mh-forced": _changed("Confidence, decisions forced", "confidence-mh", ForcedConfidence),
    "sgld-cv-start": _changed("SGLD-CV, from the start", "sgld-cv", LangevinFromStart),
    "sghmc-cv-start": _changed("SGHMC-CV, from the start", "sghmc-cv", FrictionFromStart),
}
"""By name; run only where they are asked for."""
METHODS: dict[str, Contestant] = CONTESTANTS | DIAGNOSTICS
