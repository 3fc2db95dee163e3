"""Shuffling is a bijection, single places and pairs of places are uniform, and too few rounds are found out."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from coreset_mcmc.data import permuted, shuffle, without_replacement

FALSE_ALARM = 1e-5
"""Probability that a statistical test of this file fails although the code is right, for one seed."""

EXACT_SIZE = 12
FEISTEL_SIZE = 1_048
"""Two values of the grid are outside: the walk back into range is part of what is tested."""


def images(key: jax.Array, size: int, places: list[int], num_keys: int) -> np.ndarray:
    """Where ``num_keys`` permutations send each of ``places``: (num_keys, len(places))."""
    keys = jax.random.split(key, num_keys)
    return np.asarray(jax.jit(jax.vmap(lambda one: permuted(one, size, jnp.asarray(places))))(keys))


def chi_square_p_value(observed: np.ndarray, probabilities: np.ndarray) -> float:
    """Of counts in cells; cells that cannot occur are left out, and must be empty."""
    possible = probabilities > 0.0
    assert observed[~possible].sum() == 0
    return float(stats.chisquare(observed[possible], probabilities[possible] * observed.sum()).pvalue)


def single_p_value(values: np.ndarray, size: int) -> float:
    return chi_square_p_value(np.bincount(values, minlength=size), np.full(size, 1.0 / size))


def pair_p_value(first: np.ndarray, second: np.ndarray, groups: np.ndarray) -> float:
    """Joint distribution of the groups of two images, against two draws without replacement."""
    size, num_groups = len(groups), groups.max() + 1
    counts = np.bincount(groups)
    probabilities = (np.outer(counts, counts) - np.diag(counts)) / (size * (size - 1.0))
    observed = np.bincount(groups[first] * num_groups + groups[second], minlength=num_groups**2)
    return chi_square_p_value(observed, probabilities.ravel())


def difference_p_value(first: np.ndarray, second: np.ndarray, size: int) -> float:
    """The difference of two images modulo ``size`` is uniform on 1..size-1."""
    probabilities = np.full(size, 1.0 / (size - 1.0))
    probabilities[0] = 0.0
    return chi_square_p_value(np.bincount((second - first) % size, minlength=size), probabilities)


def feistel_p_value(key: jax.Array) -> float:
    """The smallest of all tests, corrected for their number."""
    size, columns = FEISTEL_SIZE, shuffle.grid(FEISTEL_SIZE)[1]
    values = images(key, size, [0, 1, columns, size - 1], 60_000)
    number = np.arange(size)
    p_values = [single_p_value(column, size) for column in values.T]
    for other in (1, 2, 3):  # in the row, in the column, and far away
        first, second = values[:, 0], values[:, other]
        p_values += [pair_p_value(first, second, groups) for groups in (number // columns, number % columns)]
        p_values.append(difference_p_value(first, second, size))
    return len(p_values) * min(p_values)


def inclusion_p_value(key: jax.Array, size: int, count: int, num_keys: int) -> float:
    """Each row is in the subset with probability count/size: exact binomial tails, corrected for ``size`` rows."""
    draw = jax.jit(jax.vmap(lambda one: without_replacement(one, size, count)))
    inside = np.bincount(np.asarray(draw(jax.random.split(key, num_keys))).ravel(), minlength=size)
    binomial = stats.binom(num_keys, count / size)
    return 2.0 * size * float(np.minimum(binomial.cdf(inside), binomial.sf(inside - 1)).min())


compiled = jax.jit(permuted, static_argnums=1)
compiled_subset = jax.jit(without_replacement, static_argnums=(1, 2))


class TestBijection:
    @pytest.mark.parametrize("size", [1, 7, 1_024, 1_025, 1_048, 1_089, 1_091, 98_673])
    def test_every_number_once(self, key: jax.Array, size: int) -> None:
        """Around the switch, with full grids (1 025, 1 089) and with values outside of them, and the flights."""
        values = compiled(key, size, jnp.arange(size))
        np.testing.assert_array_equal(np.sort(values), np.arange(size))

    def test_the_sizes_above_cover_both_branches(self) -> None:
        assert shuffle.EXACT_BELOW == 1_024

    @pytest.mark.parametrize("size", [1_025, FEISTEL_SIZE, 98_673, 10**6 + 3, 2**31 - 1])
    def test_grids_are_tight(self, size: int) -> None:
        """Few values are outside, so that hardly ever anything is walked on; both sides fit into 16 bits."""
        height, width = shuffle.grid(size)
        assert size <= height * width <= size + 16
        assert max(height, width) < 2**16

    def test_a_size_with_and_one_without_a_full_grid(self) -> None:
        """The sizes above take both ways."""
        assert shuffle.grid(1_025) == (25, 41)
        assert np.prod(shuffle.grid(FEISTEL_SIZE)) == FEISTEL_SIZE + 2

    @pytest.mark.parametrize("size", [100, 5_000])
    def test_places_are_evaluated_one_by_one(self, key: jax.Array, size: int) -> None:
        """Any part of the permutation is the same as that part of the whole."""
        whole = np.asarray(compiled(key, size, jnp.arange(size)))
        places = np.array([7, 0, 99, 42])
        np.testing.assert_array_equal(compiled(key, size, jnp.asarray(places)), whole[places])

    @pytest.mark.parametrize("size", [100, 5_000])
    def test_depends_on_the_key(self, key: jax.Array, size: int) -> None:
        first, second = jax.random.split(key)
        places = jnp.arange(size)
        assert np.any(np.asarray(compiled(first, size, places)) != np.asarray(compiled(second, size, places)))

    def test_largest_size(self, key: jax.Array) -> None:
        size = 2**31 - 1
        values = np.asarray(compiled_subset(key, size, 1_000))
        assert len(np.unique(values)) == 1_000
        assert values.min() >= 0
        assert values.max() > size // 2  # 2^-1000 otherwise

    def test_beyond_the_largest_size(self, key: jax.Array) -> None:
        with pytest.raises(ValueError, match="at most 2147483647 rows can be shuffled, got 2147483648"):
            without_replacement(key, 2**31, 10)


class TestWithoutReplacement:
    @pytest.mark.parametrize(("size", "count"), [(5, 5), (1_024, 300), (98_673, 5_000)])
    def test_rows_are_distinct_and_in_range(self, key: jax.Array, size: int, count: int) -> None:
        values = np.asarray(compiled_subset(key, size, count))
        assert len(np.unique(values)) == count
        assert values.min() >= 0
        assert values.max() < size

    def test_in_single_precision(self, key: jax.Array, single_precision: None) -> None:
        """As users have JAX by default; 32-bit arithmetic throughout."""
        values = np.asarray(compiled_subset(key, 98_673, 500))
        with jax.enable_x64(True):
            np.testing.assert_array_equal(values, compiled_subset(key, 98_673, 500))


@pytest.mark.statistical
class TestUniformity:
    def test_exact_branch(self, key: jax.Array) -> None:
        """All single places and all ordered pairs of images for some pairs of places."""
        values = images(key, EXACT_SIZE, list(range(EXACT_SIZE)), 20_000)
        p_values = [single_p_value(column, EXACT_SIZE) for column in values.T]
        for first, second in [(0, 1), (0, 11), (4, 7), (10, 11)]:
            p_values.append(pair_p_value(values[:, first], values[:, second], np.arange(EXACT_SIZE)))
        assert len(p_values) * min(p_values) > FALSE_ALARM

    def test_feistel_branch(self, key: jax.Array) -> None:
        assert feistel_p_value(key) > FALSE_ALARM

    def test_two_rounds_are_not_enough(self, key: jax.Array, monkeypatch: pytest.MonkeyPatch) -> None:
        """The tests above can fail: with two rounds, neighbours that meet in a row stay neighbours."""
        monkeypatch.setattr(shuffle, "NUM_ROUNDS", 2)
        assert feistel_p_value(key) < FALSE_ALARM

    @pytest.mark.parametrize(("size", "count"), [(50, 7), (FEISTEL_SIZE, 100)])
    def test_every_row_is_included_equally_often(self, key: jax.Array, size: int, count: int) -> None:
        assert inclusion_p_value(key, size, count, 20_000) > FALSE_ALARM
