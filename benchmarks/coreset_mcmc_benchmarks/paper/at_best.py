"""Every baseline as a careful user would run it, without knowing the true posterior.

Such a user looks for the mode with all rows first, and takes steps, shapes and starts from the curvature there. Nothing
else of the methods changes. Numbers that remain:

- SGLD and SGHMC move in coordinates whitened by the curvature, at step sizes that keep both biases small: that of the
  step itself, and that of the noise of the gradient, which is measured at draws of the Laplace approximation.
- Austerity stops at a tail probability such that all looks together are wrong at most once in a hundred decisions.
- Random walks, for Austerity and Confidence, have the shape of the posterior and the usual 2.38^2 / d.
- The flow starts at the Laplace approximation, one coordinate at a time, with gradients of all rows.
- QNC goes on until its own estimate no longer falls, three times with rows of its own; the smallest estimate counts.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.errors import RunError
from coreset_mcmc.core.status import Status
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.methods import SparseHamiltonianFlow
from coreset_mcmc.methods.subsampling import SGHMC, SGLD, AusterityMH, ConfidenceMH, GaussianProposal, ModeSearch
from coreset_mcmc.posterior.by_passes import FullPosterior, flat_position
from coreset_mcmc.posterior.newton import LaplaceApproximation, NewtonSearch, approximation_at
from coreset_mcmc_benchmarks.paper.budget import Budget
from coreset_mcmc_benchmarks.paper.cases import Case
from coreset_mcmc_benchmarks.paper.patient_quasi_newton import PatientQuasiNewton
from coreset_mcmc_benchmarks.paper.plan import BEST, Plan, one_chain

AT_THE_MODE = ModeSearch(max_iterations=0)
WRONG_DECISIONS = 0.01
"""Of Austerity, all looks together."""
BIAS = 0.05
"""Share by which a step size may change variances."""
NUM_PROBES = 20
ROWS_IN_GRADIENT = 500
"""As in the paper."""
RANDOM_WALK = 2.38**2
FLOW_STEP = 0.1
"""Of the leapfrog steps, in conditional standard deviations; training goes on from there."""
LONG_RUN = 4
"""Times the published number of iterations, at most."""
NUM_RESTARTS = 3
MOST_NEWTON_STEPS = 2_000


def curvature_of(case: Case) -> LaplaceApproximation:
    """The Laplace approximation of all rows."""
    posterior = FullPosterior(case.model, to_rows(case.data), jax.tree.map(jnp.asarray, case.start))
    found, info = posterior.find_mode(NewtonSearch(MOST_NEWTON_STEPS), flat_position(posterior.position))
    if int(info.status) != Status.OK.value:
        raise RunError(f"No mode of {case.name} was found: {Status(int(info.status)).message}")
    return approximation_at(found)


def position_at(case: Case, flat: np.ndarray) -> Any:
    """A flat position in the shape of the model's."""
    return jax.tree.map(np.asarray, ravel_pytree(jax.tree.map(jnp.asarray, case.start))[1](jnp.asarray(flat)))


def gradient_noise(case: Case, at: LaplaceApproximation) -> float:
    """The variance of a control-variate gradient in whitened coordinates, the mean over these and over Laplace draws.

    (N^2 / S) times the variance among rows of their own gradient minus that at the mode.
    """
    size, rng = case.size, np.random.default_rng(0)
    rows = rng.choice(size, min(size, 5_000), replace=False)
    batch = jax.tree.map(lambda leaf: jnp.asarray(leaf[rows]), case.data)
    unravel = ravel_pytree(jax.tree.map(jnp.asarray, case.start))[1]
    scale, centre = jnp.asarray(at.scale_factor), jnp.asarray(at.mean)

    def row_gradients(flat: jax.Array) -> jax.Array:
        def one(row: Any) -> jax.Array:
            def value(at_flat: jax.Array) -> jax.Array:
                alone = jax.tree.map(lambda leaf: leaf[None], row)
                return jnp.sum(case.model.log_likelihood(unravel(at_flat), alone))

            gradient: jax.Array = jax.grad(value)(flat)
            return gradient

        return jax.vmap(one)(batch) @ scale

    probe = jax.jit(lambda flat: jnp.mean(jnp.var(row_gradients(flat) - row_gradients(centre), axis=0)))
    draws = np.asarray(at.draws(jnp.asarray(rng.normal(size=(NUM_PROBES, at.mean.size)))))
    count = min(ROWS_IN_GRADIENT, size)
    return float(np.mean([probe(jnp.asarray(draw)) for draw in draws])) * size**2 / count * (1.0 - count / size)


def langevin_step(noise: float) -> float:
    """In whitened coordinates the step h adds h / 4 to a variance of 1, and noise of variance V adds h V / 4."""
    return 4.0 * BIAS / (1.0 + noise)


def friction_settings(noise: float) -> tuple[float, float]:
    """Step size e and friction C: noise adds e V / (2 C) to the kinetic energy, Euler's scheme about e (1 + C) / 2."""
    friction = max(1.0, np.sqrt(noise))
    return float(min(BIAS * 2.0 * friction / max(noise, 1e-12), 2.0 * BIAS / (1.0 + friction))), float(friction)


def sgld(case: Case, budget: Budget, coreset_size: int, seed: int) -> Plan:
    """Whitened Langevin steps."""
    del coreset_size, seed
    at = curvature_of(case)
    step = langevin_step(gradient_noise(case, at))
    method = SGLD(step_size=step, subsample_size=ROWS_IN_GRADIENT, mode=AT_THE_MODE, scale=np.asarray(at.scale_factor))
    return _from_mode(case, budget, at, method)


def sghmc(case: Case, budget: Budget, coreset_size: int, seed: int) -> Plan:
    """Whitened trajectories with friction."""
    del coreset_size, seed
    at = curvature_of(case)
    step, friction = friction_settings(gradient_noise(case, at))
    method = SGHMC(
        step_size=step,
        friction=friction,
        num_leapfrog=30,
        subsample_size=ROWS_IN_GRADIENT,
        mode=AT_THE_MODE,
        scale=np.asarray(at.scale_factor),
    )
    return _from_mode(case, budget, at, method)


def austerity(case: Case, budget: Budget, coreset_size: int, seed: int) -> Plan:
    """A walk of the right shape, and an error that is stated."""
    del coreset_size, seed
    at, batch_size = curvature_of(case), 100
    error = WRONG_DECISIONS / max(case.size // batch_size, 1)
    return _from_mode(case, budget, at, AusterityMH(_walk(at), batch_size=batch_size, error=error, num_chains=1))


def confidence(case: Case, budget: Budget, coreset_size: int, seed: int) -> Plan:
    """A walk of the right shape."""
    del coreset_size, seed
    at = curvature_of(case)
    return _from_mode(case, budget, at, ConfidenceMH(_walk(at), num_chains=1))


def flow(case: Case, budget: Budget, coreset_size: int, seed: int) -> Plan:
    """At the Laplace approximation without its correlations, which the flow cannot start with."""
    del seed
    at = curvature_of(case)
    precision = np.linalg.inv(np.asarray(at.scale_factor) @ np.asarray(at.scale_factor).T)
    width = position_at(case, 1.0 / np.sqrt(np.diag(precision)))
    method = SparseHamiltonianFlow(
        num_iterations=budget.steps(50_000),
        subsample_size=case.size,
        step_size=jax.tree.map(lambda leaf: FLOW_STEP * leaf, width),
        initial_location=position_at(case, np.asarray(at.mean)),
        initial_scale=width,
    )
    arguments = one_chain(case, budget, method, coreset_size=coreset_size, selection=case.selection)
    return Plan(BEST, arguments | {"tune": 0})


def quasi_newton(case: Case, budget: Budget, coreset_size: int, seed: int) -> Plan:
    """Each restart takes rows of its own; the one whose own estimate is smallest counts."""
    published = budget.steps(100 if case.name == "poisson" else 50)
    method = PatientQuasiNewton(
        kernel=case.kernel,
        num_draws=max(round(budget.kept / 10), 20),
        num_iterations=LONG_RUN * published,
        num_at_least=published,
        num_line_searches=LONG_RUN * published,
        max_trials=50,
        discard=0.1,
    )
    arguments = one_chain(case, budget, method, coreset_size=coreset_size, selection=case.selection)
    return Plan(BEST, arguments, seeds=tuple(1_000 * number + seed for number in range(NUM_RESTARTS)))


def _walk(at: LaplaceApproximation) -> GaussianProposal:
    return GaussianProposal(RANDOM_WALK / at.mean.size, np.asarray(at.scale_factor))


def _from_mode(case: Case, budget: Budget, at: LaplaceApproximation, method: Any) -> Plan:
    return Plan(BEST, one_chain(case, budget, method) | {"initvals": position_at(case, np.asarray(at.mean))})
