"""Kernels whose transition law is known in closed form: means, covariances and correlations by z-tests."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.kernels import GaussianAutoregression, HitAndRunSlice, RandomWalk
from coreset_mcmc.models.gaussian_location import coreset_posterior
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.target import CoresetTarget
from tests.helpers.exact_targets import GAUSSIAN
from tests.helpers.kernel_checks import NUM_CHAINS, QUICK_COMPILATION, advance, assert_plausible, normal_p_values


def moment_scores(draws: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """z-scores of the mean and of every second moment of independent Gaussian draws."""
    count, dim = draws.shape
    variances = np.diag(covariance)
    mean_scores = (draws.mean(axis=0) - mean) / np.sqrt(variances / count)
    centred = draws - mean
    errors = centred.T @ centred / count - covariance
    spread = np.sqrt((np.outer(variances, variances) + covariance**2) / count)
    return np.concatenate([mean_scores, (errors / spread)[np.triu_indices(dim)]])


def correlation_score(before: np.ndarray, after: np.ndarray, expected: float) -> float:
    """z-score of a correlation of Gaussian pairs, by Fisher's transform."""
    observed = np.corrcoef(before, after)[0, 1]
    return float((np.arctanh(observed) - np.arctanh(expected)) * np.sqrt(before.size - 3))


@pytest.mark.statistical
@pytest.mark.parametrize("beta", [0.0, 0.36, 0.9])
def test_autoregression_has_the_stated_moments(beta: float, key: jax.Array) -> None:
    start_key, step_key = jax.random.split(key)
    target = GAUSSIAN.target()
    start = GAUSSIAN.draw(start_key, NUM_CHAINS)
    states, _ = advance(GaussianAutoregression(beta), target, step_key, start, 1)
    before, after = np.asarray(start["theta"]), np.asarray(states.position["theta"])
    mean, variance = coreset_posterior(target.rows, target.weights)
    scores = moment_scores(after, np.asarray(mean), float(variance) * np.eye(GAUSSIAN.dim))
    correlations = [correlation_score(before[:, i], after[:, i], np.sqrt(beta)) for i in range(GAUSSIAN.dim)]
    assert_plausible(normal_p_values(np.concatenate([scores, correlations])))


FLAT = Model(lambda position: jnp.zeros(()), lambda position, batch: jnp.zeros(batch.shape), name="flat")
FACTOR = np.array([[0.5, 0.0, 0.0], [1.2, 0.3, 0.0], [-0.4, 0.9, 2.0]])


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("scale", "factor"),
    [(0.3, 0.3 * np.eye(3)), (np.array([0.1, 1.0, 7.0]), np.diag([0.1, 1.0, 7.0])), (FACTOR, FACTOR)],
    ids=["number", "vector", "matrix"],
)
def test_random_walk_proposes_with_the_stated_covariance(scale: object, factor: np.ndarray, key: jax.Array) -> None:
    """On a flat target every proposal is accepted, so the displacement is the proposal's."""
    target = CoresetTarget(jnp.zeros(1), jnp.ones(1), FLAT)
    start = {"first": jnp.full((NUM_CHAINS, 2), 5.0), "second": jnp.full(NUM_CHAINS, -3.0)}
    states, info = advance(RandomWalk(scale), target, key, start, 1)
    moved = np.column_stack([states.position["first"], states.position["second"]]) - np.array([5.0, 5.0, -3.0])
    assert np.all(np.asarray(info.acceptance_rate) == 1.0)
    assert_plausible(normal_p_values(moment_scores(moved, np.zeros(3), factor @ factor.T)))


@pytest.mark.full
def test_hit_and_run_with_a_scale_moves_as_on_the_whitened_target() -> None:
    """With the same key, a step from L z is L times the step from z on the target whitened by the factor L."""
    inverse = np.linalg.inv(FACTOR)
    whitened = Model(lambda position: -jnp.sum(position["theta"] ** 4), FLAT.log_likelihood, name="whitened")
    stretched = Model(
        lambda position: -jnp.sum((inverse @ position["theta"]) ** 4), FLAT.log_likelihood, name="stretched"
    )
    start = np.array([0.5, -1.0, 0.2])

    def step(kernel: HitAndRunSlice, model: Model, position: np.ndarray) -> np.ndarray:
        target = CoresetTarget(jnp.zeros(1), jnp.ones(1), model)
        state = kernel.init({"theta": jnp.asarray(position)}, target)
        run = jax.jit(kernel.step, compiler_options=QUICK_COMPILATION)
        return np.asarray(run(jax.random.key(4), state, target)[0].position["theta"])

    expected = FACTOR @ step(HitAndRunSlice(width=0.5, num_directions=2), whitened, start)
    moved = step(HitAndRunSlice(width=0.5, num_directions=2, scale=FACTOR), stretched, FACTOR @ start)
    assert not np.allclose(moved, FACTOR @ start)
    np.testing.assert_allclose(moved, expected, rtol=1e-8)
