"""Coreset MCMC on the Gaussian location model, where theory says exactly what must happen."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from coreset_mcmc import Affine, CoresetMCMC, NonNegative, Simplex
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import Given
from coreset_mcmc.driver.run import run
from coreset_mcmc.kernels import GaussianAutoregression
from coreset_mcmc.methods.coreset_mcmc.optimizers import SGD
from coreset_mcmc.models import gaussian_location
from coreset_mcmc.models.gaussian_location import coreset_kl
from coreset_mcmc.posterior.problem import make_problem, starting_positions


def gaussian_problem(*, size, dim, coreset_size, num_chains, seed):
    data = np.random.default_rng(seed).normal(size=(size, dim))
    selected = Given(np.arange(coreset_size)).select(np.random.default_rng(seed), data, size, None)
    positions = starting_positions(gaussian_location(dim), jax.random.key(seed), num_chains)
    return make_problem(gaussian_location(dim), to_array_data(data), selected, positions)


def train(problem, seed, *, step, alpha=1.0, subsample_size=None, num_iterations, feasible_set, beta=0.0, **options):
    size, coreset_size = problem.data.size, problem.coreset_size
    method = CoresetMCMC(
        kernel=GaussianAutoregression(beta),
        optimizer=SGD(step * size / coreset_size, alpha),
        feasible_set=feasible_set,
        num_chains=jax.tree.leaves(problem.initial_positions)[0].shape[0],
        subsample_size=subsample_size,
        num_iterations=num_iterations,
    )
    return run(method, problem, jax.random.key(seed), num_steps=method.max_steps, **options)


def weights_of(state):
    return state.weights


def weights_and_positions(state):
    return state.weights, state.chains.position["theta"]


def kl_of(problem, weights):
    return np.asarray(jax.vmap(lambda w: coreset_kl(problem.rows, w, problem.data.arrays))(jnp.asarray(weights)))


@pytest.fixture(scope="module")
def small_problem():
    with jax.enable_x64(True):
        return gaussian_problem(size=500, dim=4, coreset_size=12, num_chains=8, seed=3)


@pytest.mark.full
def test_paper_default_reaches_a_millionth_of_the_initial_kl(seed):
    """M = 30, affine set, all rows: the paper's setting with d = 20 and N = 10 000."""
    problem = gaussian_problem(size=10_000, dim=20, coreset_size=30, num_chains=20, seed=seed)
    trained = train(problem, seed, step=0.1, num_iterations=1_500, feasible_set=Affine(), beta=0.8)
    start, end = kl_of(problem, jnp.stack([problem.initial_weights, trained.state.weights]))
    assert end < 1e-6 * start


def test_exact_recursion_with_all_rows(small_problem, seed):
    """Z' = (I - gamma A Q) Z for Z = Yw - X1: estimator and projection to rounding."""
    trained = train(
        small_problem,
        seed,
        step=0.05,
        num_iterations=40,
        feasible_set=Affine(),
        record=weights_and_positions,
    )
    weights, positions = trained.record
    rows = np.asarray(small_problem.rows)
    size, coreset_size = small_problem.data.size, small_problem.coreset_size
    total = np.asarray(small_problem.data.arrays).sum(axis=0)
    centring = np.eye(coreset_size) - 1.0 / coreset_size
    spread = rows.T @ centring @ rows
    residual = weights @ rows - total
    gamma = 0.05 * size / coreset_size
    for step in range(1, 40):
        covariance = np.cov(positions[step], rowvar=False)
        expected = residual[step - 1] - gamma * spread @ covariance @ residual[step - 1]
        np.testing.assert_allclose(residual[step], expected, rtol=1e-9, atol=1e-9 * np.abs(residual[0]).max())


def test_kl_decays_geometrically_with_all_rows(small_problem, seed):
    """A straight line in log KL against the iteration."""
    trained = train(small_problem, seed, step=0.1, num_iterations=600, feasible_set=Affine(), record=weights_of)
    log_kl = np.log(kl_of(small_problem, trained.record))
    window = slice(20, np.flatnonzero(log_kl > np.log(1e-18))[-1])
    fit = stats.linregress(np.arange(log_kl.size)[window], log_kl[window])
    assert fit.slope < 0
    assert fit.rvalue**2 > 0.98
    assert log_kl[-1] < log_kl[0] - np.log(1e6)


@pytest.mark.full
@pytest.mark.statistical
def test_noise_floor_is_proportional_to_a_constant_step(small_problem, seed):
    """With minibatches the KL settles at a level that halves with the step, up to terms of the order of the step.

    Eight seeds at each step; the log ratio of the mean floors is log 2 within its sampling error (3.9 deviations).
    """
    options = {"subsample_size": 50, "num_iterations": 2_000, "feasible_set": Affine()}

    def floors(step):
        runs = [train(small_problem, 100 * seed + s, step=step, record=weights_of, **options) for s in range(8)]
        return np.array([kl_of(small_problem, r.record[1_000:]).mean() for r in runs])

    large, small = floors(0.04), floors(0.02)
    error = np.sqrt(sum((f.std(ddof=1) / f.mean()) ** 2 / f.size for f in (large, small)))
    assert abs(np.log(large.mean() / small.mean() / 2.0)) < 3.9 * error + 0.08


@pytest.mark.full
@pytest.mark.statistical
def test_a_decaying_step_has_no_floor(small_problem, seed):
    """With minibatches and a step of t^(-1/2) the KL goes on falling, like t^(-1/2) itself.

    From updates 250-500 to 1500-2000 that is a factor of 0.46; four runs must show less than 0.8.
    """
    options = {"subsample_size": 50, "num_iterations": 2_000, "feasible_set": Affine(), "alpha": 0.5}
    runs = [train(small_problem, 100 * seed + s, step=0.3, record=weights_of, **options) for s in range(4)]
    curve = np.mean([kl_of(small_problem, r.record) for r in runs], axis=0)
    assert curve[1_500:].mean() < 0.8 * curve[250:500].mean()


@pytest.mark.full
def test_non_negativity_leaves_a_floor_that_the_affine_set_does_not(seed):
    """M = 16 in d = 8: the data mean is outside the hull of these rows, so w >= 0 cannot be exact."""
    problem = gaussian_problem(size=500, dim=8, coreset_size=16, num_chains=10, seed=1)
    affine = train(problem, seed, step=0.1, num_iterations=3_000, feasible_set=Affine())
    simplex = train(problem, seed, step=0.1, num_iterations=3_000, feasible_set=Simplex())
    kl_affine, kl_simplex = kl_of(problem, jnp.stack([affine.state.weights, simplex.state.weights]))
    assert affine.state.weights.min() < 0
    assert simplex.state.weights.min() >= 0
    np.testing.assert_allclose(simplex.state.weights.sum(), 500.0, rtol=1e-12)
    assert kl_affine < 1e-6 < kl_simplex


def test_initial_kl_has_the_factor_d_that_the_paper_lost():
    """E KL at w = N/M is (1 - M/N) d N / (2 M), not N / (2 M): mean over many coresets within 4 standard errors."""
    size, dim, coreset_size, repeats = 2_000, 10, 40, 400
    rng = np.random.default_rng(0)
    data = rng.normal(size=(size, dim))
    weights = np.full(coreset_size, size / coreset_size)
    subsets = [data[rng.choice(size, coreset_size, replace=False)] for _ in range(repeats)]
    values = np.asarray(jax.jit(jax.vmap(lambda rows: coreset_kl(rows, weights, data)))(jnp.asarray(subsets)))
    expected = (1 - coreset_size / size) * dim * size / (2 * coreset_size)
    assert abs(values.mean() - expected) < 4 * values.std(ddof=1) / np.sqrt(repeats) + 0.02 * expected


def test_exact_coreset_stays_exact_under_projection(seed):
    """Starting at w*, every gradient is zero and the weights do not move."""
    rng = np.random.default_rng(seed)
    distinct = rng.normal(size=(6, 2))
    multiplicities = rng.integers(1, 9, size=6)
    data = np.repeat(distinct, multiplicities, axis=0)
    first = np.concatenate([[0], np.cumsum(multiplicities)[:-1]])
    selected = Given(first, multiplicities.astype(float)).select(rng, data, len(data), None)
    positions = starting_positions(gaussian_location(2), jax.random.key(seed), 3)
    problem = make_problem(gaussian_location(2), to_array_data(data), selected, positions)
    trained = train(problem, seed, step=0.1, num_iterations=50, feasible_set=NonNegative())
    np.testing.assert_allclose(trained.state.weights, multiplicities, rtol=1e-12)
    assert trained.history.gradient_norm.max() < 1e-10
