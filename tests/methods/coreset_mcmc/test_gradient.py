"""The gradient estimate against closed forms: unbiasedness, the exact-coreset identity and the subsampling variance."""

from __future__ import annotations

from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from coreset_mcmc.data import ArrayData
from coreset_mcmc.methods.coreset_mcmc.gradient import estimate_gradient
from coreset_mcmc.methods.coreset_mcmc.minibatch import RandomOrderScan, WithoutReplacement
from coreset_mcmc.methods.sums import DataSums, centred, full_data_sums, log_likelihood_matrix, minibatch_sums
from coreset_mcmc.models import gaussian_location, logistic_regression
from coreset_mcmc.models.gaussian_location import coreset_kl, coreset_kl_gradient, coreset_posterior
from coreset_mcmc.models.model import Model

SIZE, DIM, CORESET, CHAINS, SUBSAMPLE = 40, 2, 6, 3, 10
FALSE_ALARM = 1e-4


@pytest.fixture(scope="module")
def gaussian():
    rng = np.random.default_rng(5)
    data = rng.normal(1.0, 1.0, size=(SIZE, DIM))
    weights = rng.gamma(2.0, 0.5 * SIZE / CORESET, size=CORESET)
    return data, weights


def iid_positions(key, data, weights):
    mean, variance = coreset_posterior(data[:CORESET], weights)
    return {"theta": mean + jnp.sqrt(variance) * jax.random.normal(key, (CHAINS, DIM))}


def unbiased_indices(key):
    return WithoutReplacement().next(key, (), SIZE, SUBSAMPLE)[1]


def scan_indices(key):
    """The third block of a scan, so that the cursor and the remembered permutation matter."""
    scan, state, rows = RandomOrderScan(), RandomOrderScan().init(key), None
    for number in range(3):
        state, rows = scan.next(jax.random.fold_in(key, number), state, SIZE, SUBSAMPLE)
    return rows


def biased_indices(key):
    """The published code's subset: all coreset points, always, among the S rows that share the factor N/S."""
    others = CORESET + WithoutReplacement().next(key, (), SIZE - CORESET, SUBSAMPLE - CORESET)[1]
    return jnp.concatenate([jnp.arange(CORESET), others])


def gradient_z_scores(key, gaussian, choose_rows, repeats=40_000):
    """z-scores of the mean estimate, coordinate by coordinate, against the closed-form gradient."""
    data, weights = (jnp.asarray(array) for array in gaussian)
    model = gaussian_location(DIM)

    def one(key):
        draw_key, row_key = jax.random.split(key)
        positions = iid_positions(draw_key, data, weights)
        values = log_likelihood_matrix(model, positions, data[:CORESET])
        if choose_rows is None:
            sums = full_data_sums(model, positions, ArrayData(data))
        else:
            sums = minibatch_sums(model, positions, data[choose_rows(row_key)], SIZE)
        return estimate_gradient(values, sums, weights).gradient

    estimates = np.asarray(jax.jit(jax.vmap(one))(jax.random.split(key, repeats)))
    truth = np.asarray(coreset_kl_gradient(data[:CORESET], weights, data))
    return (estimates.mean(axis=0) - truth) / (estimates.std(axis=0, ddof=1) / np.sqrt(repeats))


def is_unbiased(z_scores):
    return np.abs(z_scores).max() < stats.norm.isf(FALSE_ALARM / (2 * z_scores.size))


@pytest.mark.full
@pytest.mark.statistical
@pytest.mark.parametrize(
    "choose_rows", [None, unbiased_indices, scan_indices], ids=["full data", "without replacement", "scan"]
)
def test_estimate_is_unbiased(key, gaussian, choose_rows):
    assert is_unbiased(gradient_z_scores(key, gaussian, choose_rows))


@pytest.mark.statistical
def test_published_minibatch_is_recognised_as_biased(key, gaussian):
    assert not is_unbiased(gradient_z_scores(key, gaussian, biased_indices))


def test_closed_form_gradient_is_the_derivative(gaussian):
    data, weights = gaussian
    derivative = jax.grad(lambda w: coreset_kl(data[:CORESET], w, data))(jnp.asarray(weights))
    np.testing.assert_allclose(coreset_kl_gradient(data[:CORESET], weights, data), derivative, rtol=1e-10)


@pytest.fixture(scope="module")
def exact_coreset():
    """Rows with multiplicities: the distinct rows weighted by how often they occur are an exact coreset."""
    rng = np.random.default_rng(7)
    distinct = {"x": rng.normal(size=(8, 3)), "y": (rng.random(8) < 0.5).astype(float)}
    multiplicities = rng.integers(1, 6, size=8)
    data = jax.tree.map(lambda leaf: np.repeat(leaf, multiplicities, axis=0), distinct)
    return distinct, multiplicities.astype(float), data


def test_exact_coreset_identity(exact_coreset, key):
    """g(w, theta, all rows) = G (w - w*) for every theta, however far from the posterior, and g(w*) = 0."""
    distinct, exact, data = exact_coreset
    model = logistic_regression(3)
    positions = {"beta": 5.0 * jax.random.normal(key, (CHAINS, 4))}
    values = log_likelihood_matrix(model, positions, distinct)
    sums = full_data_sums(model, positions, ArrayData(data, rows_per_block=7))
    weights = jnp.linspace(0.0, 10.0, 8)
    matrix = centred(values).T @ centred(values) / (CHAINS - 1)
    scale = float(jnp.abs(matrix).max())
    estimate = estimate_gradient(values, sums, weights)
    np.testing.assert_allclose(estimate.gradient, matrix @ (weights - exact), atol=1e-12 * scale)
    at_optimum = estimate_gradient(values, sums, jnp.asarray(exact))
    np.testing.assert_allclose(at_optimum.gradient, 0.0, atol=1e-12 * scale)
    np.testing.assert_allclose(at_optimum.half_variance, 0.0, atol=1e-12)


def enumerate_subsets():
    rng = np.random.default_rng(11)
    size, count, chains = 7, 3, 4
    data = {"x": rng.normal(size=(size, 2)), "y": (rng.random(size) < 0.5).astype(float)}
    model = logistic_regression(2)
    positions = {"beta": rng.normal(size=(chains, 3))}
    rows = jax.tree.map(lambda leaf: leaf[:4], data)
    values = log_likelihood_matrix(model, positions, rows)
    weights = jnp.asarray(rng.gamma(1.0, size=4))
    full = estimate_gradient(values, full_data_sums(model, positions, ArrayData(data)), weights)
    subsets = [
        estimate_gradient(
            values, minibatch_sums(model, positions, jax.tree.map(lambda leaf, s=s: leaf[list(s)], data), size), weights
        )
        for s in combinations(range(size), count)
    ]
    everything = np.asarray(centred(log_likelihood_matrix(model, positions, data)))
    return size, count, np.asarray(centred(values)), everything, full, subsets


@pytest.fixture(scope="module")
def enumeration():
    """All 35 subsets of 3 of 7 rows, with the estimates that they give."""
    with jax.enable_x64(True):
        return enumerate_subsets()


@pytest.mark.full
def test_without_replacement_variance_is_exact(enumeration):
    """E ||H (1 - s)||^2 = N^2 M (N - S) / (S (N - 1)) V, by full enumeration."""
    size, count, coreset_values, everything, full, subsets = enumeration
    chains, num_rows = coreset_values.shape
    noise = [np.sum((np.asarray(s.gradient) - np.asarray(full.gradient)) ** 2) for s in subsets]
    deviation = everything - everything.mean(axis=1, keepdims=True)
    products = coreset_values.T @ deviation / (chains - 1)
    spread = np.sum(products**2) / (num_rows * size)
    expected = size**2 * num_rows * (size - count) / (count * (size - 1)) * spread
    np.testing.assert_allclose(np.mean(noise), expected, rtol=1e-10)


def test_half_variance_is_unbiased_under_subsampling(enumeration):
    *_, full, subsets = enumeration
    np.testing.assert_allclose(np.mean([s.half_variance for s in subsets]), full.half_variance, rtol=1e-10)


def test_minibatch_of_all_rows_is_the_full_sum(exact_coreset, key):
    _, _, data = exact_coreset
    model = logistic_regression(3)
    positions = {"beta": jax.random.normal(key, (CHAINS, 4))}
    size = data["y"].size
    whole = full_data_sums(model, positions, ArrayData(data, rows_per_block=5))
    batch = minibatch_sums(model, positions, data, size)
    np.testing.assert_allclose(batch.total, whole.total, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(batch.variance, 0.0, atol=1e-12)


def test_centring_before_summing_keeps_the_digits():
    """Sums of 1e9 with differences of order one: centring the sums themselves would lose them in single precision."""
    model = Model(lambda theta: 0.0, lambda theta, batch: -0.5 * (batch[:, 0] - theta["theta"][0]) ** 2)
    with jax.enable_x64(False):
        data = jnp.full((1_000, 1), 1_000.0, jnp.float32)
        positions = {"theta": jnp.asarray([[0.0], [2.0**-10]], jnp.float32)}
        total = full_data_sums(model, positions, ArrayData(data)).total
        naive = jnp.sum(log_likelihood_matrix(model, positions, data), axis=1)
    exact = 1_000.0 * (1_000.0 * 2.0**-10 - 0.5 * 2.0**-20)
    assert float(total[1] - total[0]) == pytest.approx(exact, rel=0.1)
    assert abs(float(naive[1] - naive[0]) - exact) > abs(float(total[1] - total[0]) - exact)


@pytest.mark.full
def test_two_chains_reduce_to_the_difference_form(exact_coreset, key):
    """For K = 2, g = a (a'w - A) / 2 with a and A the differences between the two chains."""
    distinct, _, data = exact_coreset
    model = logistic_regression(3)
    positions = {"beta": jax.random.normal(key, (2, 4))}
    values = log_likelihood_matrix(model, positions, distinct)
    everything = log_likelihood_matrix(model, positions, data)
    weights = jnp.arange(8.0)
    difference, total = values[0] - values[1], jnp.sum(everything[0] - everything[1])
    estimate = estimate_gradient(values, full_data_sums(model, positions, ArrayData(data)), weights)
    np.testing.assert_allclose(estimate.gradient, 0.5 * difference * (difference @ weights - total), rtol=1e-10)


def test_sums_are_chunked(exact_coreset, key):
    """No intermediate of the compiled full-data sum is as long as the data."""
    model = logistic_regression(2)
    size, block = 5_000, 250
    data = ArrayData({"x": jnp.zeros((size, 2)), "y": jnp.zeros(size)}, rows_per_block=block)
    positions = {"beta": jnp.zeros((CHAINS, 3))}
    compiled = jax.jit(lambda positions, data: full_data_sums(model, positions, data)).lower(positions, data).compile()
    memory = compiled.memory_analysis()
    assert memory.temp_size_in_bytes < 20 * 8 * block * CHAINS


def test_data_sums_is_a_pair():
    sums = DataSums(total=jnp.ones(2), variance=jnp.zeros(2))
    assert estimate_gradient(jnp.ones((2, 3)), sums, jnp.ones(3)).gradient.shape == (3,)
