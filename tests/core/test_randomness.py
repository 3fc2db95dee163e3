"""Keys that are split on the host are JAX's own."""

import jax
import numpy as np
import pytest

from coreset_mcmc.core.randomness import fold_in, generator_of, key_of, split

SEEDS = [0, 1, 7, 2**31 + 5, 2**32 - 1]


def words(keys) -> np.ndarray:
    return np.stack([np.asarray(jax.random.key_data(key)) for key in keys])


@pytest.mark.parametrize("number_of_seed", SEEDS)
def test_keys_are_those_of_jax(number_of_seed):
    theirs, ours = jax.random.key(number_of_seed, impl="threefry2x32"), key_of(number_of_seed)
    np.testing.assert_array_equal(words([theirs]), words([ours]))
    for count in (1, 2, 5):
        np.testing.assert_array_equal(words(jax.random.split(theirs, count)), words(split(ours, count)))
    for number in (0, 1, 2**31):
        np.testing.assert_array_equal(words([jax.random.fold_in(theirs, number)]), words([fold_in(ours, number)]))


def test_a_seed_beyond_32_bits_counts_in_full():
    assert not np.array_equal(words([key_of(2**32 + 3)]), words([key_of(3)]))


def test_keys_of_another_kind_are_left_to_jax():
    key = jax.random.key(3, impl="rbg")
    np.testing.assert_array_equal(words(jax.random.split(key, 3)), words(split(key, 3)))
    np.testing.assert_array_equal(words([jax.random.fold_in(key, 4)]), words([fold_in(key, 4)]))


def test_generators_follow_from_keys():
    assert generator_of(key_of(1)).random() == generator_of(key_of(1)).random() != generator_of(key_of(2)).random()
