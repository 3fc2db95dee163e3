"""Whether reference chains agree, and how far the Laplace approximation is from their draws."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from arviz_stats.base.array import array_stats
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.status import Status
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import Uniform
from coreset_mcmc.diagnostics.metrics import bulk_ess, two_moment_kl, two_moment_kl_floor
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.newton import LaplaceApproximation, NewtonSearch, approximation_at, find_mode
from coreset_mcmc.posterior.problem import make_problem
from coreset_mcmc_benchmarks.draws import Draws, flattened
from coreset_mcmc_benchmarks.references.problems import ReferenceProblem
from coreset_mcmc_benchmarks.references.sampling import Reference, log_density_function

NUM_LAPLACE_DRAWS = 20_000
NUM_WEIGHTS = 4_000
"""Laplace draws that are weighted."""


class Convergence(NamedTuple):
    """Whether the chains agree, over all symmetry-invariant functions."""

    rhat: float
    ess: float


def convergence(problem: ReferenceProblem, draws: Draws) -> Convergence:
    """The largest R-hat and the smallest bulk ESS."""
    folded = problem.fold(draws)
    values = flattened({**folded, **problem.identified(folded)})
    rhats = np.asarray(array_stats.rhat(values, chain_axis=0, draw_axis=1, method="rank"))
    return Convergence(float(rhats.max()), float(bulk_ess(values).min()))


class LaplaceDistance(NamedTuple):
    """How far the Gaussian at the mode is from the posterior."""

    kl: float
    """Two-moment KL to the reference."""
    folded_kl: float
    """The same after folding both onto one copy: what is left if the symmetry were known."""
    floor: float
    """What draws of the reference itself would score."""
    surviving: float
    """Share of its draws that importance weighting leaves."""
    worst_shift: float
    """Largest distance of a folded mean from its true place, in posterior standard deviations."""


def mode_near(model: Model, data: Any, position: Any) -> LaplaceApproximation | None:
    """The package's own Laplace approximation, searched from a position; None if it finds no peak."""
    arrays = to_array_data(data)
    starts = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], position)
    selected = Uniform().select(np.random.default_rng(0), data, arrays.size, 1)
    search = jax.jit(lambda problem: find_mode(problem, NewtonSearch()))
    state, info = search(make_problem(model, arrays, selected, starts))
    return approximation_at(state) if int(info.status) == Status.OK.value else None


def laplace_distance(
    problem: ReferenceProblem, model: Model, data: Any, reference: Reference, ess: float
) -> LaplaceDistance | None:
    """Compare with the Gaussian at the mode reached from the best draw; None if there is no such mode."""
    best = np.unravel_index(int(np.argmax(reference.log_density)), reference.log_density.shape)
    highest = {name: values[best] for name, values in reference.draws.items()}
    approximation = mode_near(model, data, highest)
    if approximation is None:
        return None
    unravel = ravel_pytree(jax.tree.map(jnp.asarray, highest))[1]
    noise = np.random.default_rng(1).normal(size=(NUM_LAPLACE_DRAWS, approximation.mean.size))
    flat = approximation.draws(jnp.asarray(noise))
    theirs = jax.tree.map(lambda leaf: np.asarray(leaf)[None], jax.vmap(unravel)(flat))

    def kl(of: Draws, to: Draws) -> float:
        pooled = flattened(to).reshape(-1, flat.shape[1])
        return two_moment_kl(flattened(of), pooled.mean(axis=0), np.cov(pooled, rowvar=False))

    ours_folded, theirs_folded = flattened(problem.fold(reference.draws)), flattened(problem.fold(theirs))
    shifts = (theirs_folded.mean(axis=(0, 1)) - ours_folded.mean(axis=(0, 1))) / ours_folded.std(axis=(0, 1))
    log_density = log_density_function(model, data)
    log_target = jax.jit(lambda chosen: jax.lax.map(lambda at: log_density(unravel(at)), chosen, batch_size=20))
    log_weights = np.asarray(log_target(flat[:NUM_WEIGHTS])) + 0.5 * np.sum(noise[:NUM_WEIGHTS] ** 2, axis=1)
    weights = np.exp(log_weights - log_weights.max())
    return LaplaceDistance(
        kl=kl(theirs, reference.draws),
        folded_kl=kl(problem.fold(theirs), problem.fold(reference.draws)),
        floor=two_moment_kl_floor(flat.shape[1], min(ess, NUM_LAPLACE_DRAWS)),
        surviving=float(weights.sum() ** 2 / (weights @ weights) / NUM_WEIGHTS),
        worst_shift=float(np.abs(shifts).max()),
    )
