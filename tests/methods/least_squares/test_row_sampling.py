"""Rows without replacement by a score: chances that add up, distinct rows, unbiased sums."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coreset_mcmc.methods.least_squares.row_sampling import ALMOST_ONE, inclusion_probabilities, sample_rows

SIZE = 400


@pytest.mark.full
@given(st.integers(1, 300), st.integers(0, 10_000), st.sampled_from([0.0, 1.0, 20.0]))
@settings(max_examples=40, deadline=None)
def test_probabilities_sum_to_the_size_of_the_sample(count, seed, spread):
    scores = np.exp(spread * np.random.default_rng(seed).normal(size=300))
    with jax.enable_x64(True):
        probabilities = np.asarray(inclusion_probabilities(jnp.asarray(scores), count))
    assert (probabilities > 0).all()
    assert (probabilities <= ALMOST_ONE).all()
    np.testing.assert_allclose(probabilities.sum(), count, rtol=1e-6)


def test_scores_that_are_no_numbers_count_as_nothing():
    scores = jnp.asarray([1.0, jnp.nan, jnp.inf, 3.0])
    with jax.enable_x64(True):
        found = np.asarray(inclusion_probabilities(scores, 1))
        expected = np.asarray(inclusion_probabilities(jnp.asarray([1.0, 0.0, 0.0, 3.0]), 1))
    np.testing.assert_allclose(found, expected)


def test_rows_are_distinct_and_as_frequent_as_they_should_be(seed):
    """Two samples of different sizes at once; over many draws each row's frequency is within 6 standard errors."""
    repeats, counts = 2_000, (40, 150)
    with jax.enable_x64(True):
        scores = [jnp.linspace(0.1, 5.0, SIZE), jnp.exp(jnp.linspace(-8.0, 3.0, SIZE))]
        draw = jax.jit(jax.vmap(lambda key: sample_rows(key, scores, counts)))
        samples = draw(jax.random.split(jax.random.key(seed), repeats))
        chances = [np.asarray(inclusion_probabilities(*pair)) for pair in zip(scores, counts, strict=True)]
    for sample, count, probabilities in zip(samples, counts, chances, strict=True):
        indices = np.asarray(sample.indices)
        assert all(len(set(chosen)) == count for chosen in indices)
        frequency = np.bincount(indices.ravel(), minlength=SIZE) / repeats
        error = np.sqrt(probabilities * (1 - probabilities) / repeats)
        assert (np.abs(frequency - probabilities) < 6 * error + 1e-6).all()
        np.testing.assert_allclose(sample.probabilities, probabilities[indices])
    assert (chances[1] > 0.999).sum() > 10, "rows that are sure to be there"


def test_all_rows_are_taken_when_all_are_asked_for():
    with jax.enable_x64(True):
        (sample,) = sample_rows(jax.random.key(0), [jnp.arange(1.0, SIZE + 1)], [SIZE])
    assert set(np.asarray(sample.indices)) == set(range(SIZE))
    np.testing.assert_allclose(sample.probabilities, 1.0, rtol=1e-6)


@pytest.mark.statistical
def test_sums_are_unbiased(seed):
    """Horvitz and Thompson: the mean of 2 000 estimates of a sum is within 5 standard errors (rate 6e-7)."""
    values = np.random.default_rng(1).normal(size=SIZE)
    with jax.enable_x64(True):
        draw = jax.jit(jax.vmap(lambda key: sample_rows(key, [jnp.abs(jnp.asarray(values))], [30])[0]))
        sample = draw(jax.random.split(jax.random.key(seed), 2_000))
    sums = (values[np.asarray(sample.indices)] / np.asarray(sample.probabilities)).sum(axis=1)
    assert abs(sums.mean() - values.sum()) < 5 * sums.std() / np.sqrt(len(sums))
