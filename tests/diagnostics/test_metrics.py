"""Metrics against closed forms, their invariances, and the Monte Carlo floors that they must reach and not beat."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.spatial.distance import jensenshannon
from scipy.special import digamma

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.diagnostics import metrics

FALSE_ALARM = 1e-5
"""Probability that a statistical test of this file fails although the code is right, for one seed."""

PROPERTY = settings(deadline=None, max_examples=50, derandomize=True)


def draws_with_moments(
    generator: np.random.Generator, num_draws: int, mean: np.ndarray, covariance: np.ndarray
) -> np.ndarray:
    """Draws whose sample mean and unbiased sample covariance are exactly these."""
    raw = generator.normal(size=(num_draws, len(mean)))
    raw -= raw.mean(axis=0)
    white = np.linalg.solve(np.linalg.cholesky(np.atleast_2d(np.cov(raw, rowvar=False))), raw.T).T
    return mean + white @ np.linalg.cholesky(covariance).T


def random_covariance(generator: np.random.Generator, dimension: int) -> np.ndarray:
    root = generator.normal(size=(dimension, 2 * dimension))
    return root @ root.T / dimension


def gaussian_kl(mean: np.ndarray, covariance: np.ndarray, to_mean: np.ndarray, to_covariance: np.ndarray) -> float:
    """The textbook formula, with determinants and an inverse."""
    inverse = np.linalg.inv(to_covariance)
    gap = to_mean - mean
    log_determinants = np.linalg.slogdet(to_covariance)[1] - np.linalg.slogdet(covariance)[1]
    return 0.5 * float(log_determinants - len(mean) + np.trace(inverse @ covariance) + gap @ inverse @ gap)


class TestTwoMomentKL:
    def test_is_zero_for_the_moments_of_the_reference(self, rng: np.random.Generator) -> None:
        covariance = random_covariance(rng, 4)
        draws = draws_with_moments(rng, 30, np.arange(4.0), covariance)
        assert metrics.two_moment_kl(draws, np.arange(4.0), covariance) < 1e-13

    def test_by_hand_in_one_dimension(self) -> None:
        draws = np.array([[-1.0], [1.0]])  # mean 0, variance 2
        assert metrics.two_moment_kl(draws, [1.0], [[3.0]]) == pytest.approx(0.5 * math.log(1.5), rel=1e-14)

    def test_runs_from_the_draws_to_the_reference(self) -> None:
        draws = np.array([[-1.0], [1.0]])
        assert metrics.two_moment_kl(draws, [0.0], [[1.0]]) == pytest.approx(0.5 * (1.0 - math.log(2.0)), rel=1e-14)

    @pytest.mark.parametrize("dimension", [1, 2, 12])
    def test_matches_the_textbook_formula(self, rng: np.random.Generator, dimension: int) -> None:
        mean, to_mean = rng.normal(size=(2, dimension))
        covariance, to_covariance = random_covariance(rng, dimension), random_covariance(rng, dimension)
        draws = draws_with_moments(rng, 5 * dimension + 5, mean, covariance)
        expected = gaussian_kl(mean, covariance, to_mean, to_covariance)
        assert metrics.two_moment_kl(draws, to_mean, to_covariance) == pytest.approx(expected, rel=1e-9)

    def test_coordinates_of_very_different_scale(self, rng: np.random.Generator) -> None:
        scales = np.array([1e-9, 1.0, 1e9])
        draws = rng.normal(size=(50, 3))
        expected = metrics.two_moment_kl(draws, np.ones(3), np.eye(3))
        assert metrics.two_moment_kl(draws * scales, scales, np.diag(scales**2)) == pytest.approx(expected, rel=1e-10)

    def test_pools_chains(self, rng: np.random.Generator) -> None:
        chains = rng.normal(size=(3, 20, 2)) + np.arange(3.0)[:, None, None]
        pooled = metrics.two_moment_kl(chains.reshape(60, 2), np.zeros(2), np.eye(2))
        assert metrics.two_moment_kl(chains, np.zeros(2), np.eye(2)) == pooled

    @PROPERTY
    @given(number=st.integers(0, 2**31), dimension=st.integers(1, 5), scale=st.floats(1e-3, 1e3))
    def test_is_invariant_under_affine_maps(self, number: int, dimension: int, scale: float) -> None:
        generator = np.random.default_rng(number)
        draws = generator.normal(size=(4 * dimension + 4, dimension))
        mean, covariance = generator.normal(size=dimension), random_covariance(generator, dimension)
        rotation = np.linalg.qr(generator.normal(size=(dimension, dimension)))[0]
        matrix = scale * rotation @ np.diag(generator.uniform(0.2, 5.0, dimension))
        shift = scale * generator.normal(size=dimension)
        mapped = metrics.two_moment_kl(draws @ matrix.T + shift, matrix @ mean + shift, matrix @ covariance @ matrix.T)
        assert mapped == pytest.approx(metrics.two_moment_kl(draws, mean, covariance), rel=1e-7, abs=1e-9)

    @PROPERTY
    @given(number=st.integers(0, 2**31), dimension=st.integers(1, 6), distance=st.floats(0.0, 2.0))
    def test_is_not_negative(self, number: int, dimension: int, distance: float) -> None:
        generator = np.random.default_rng(number)
        covariance = random_covariance(generator, dimension)
        draws = draws_with_moments(generator, 3 * dimension + 3, np.zeros(dimension), covariance)
        stretched = covariance * math.exp(distance * 1e-8)
        assert metrics.two_moment_kl(draws, np.zeros(dimension), stretched) >= 0.0

    def test_is_infinite_with_no_more_draws_than_coordinates(self, rng: np.random.Generator) -> None:
        assert metrics.two_moment_kl(rng.normal(size=(4, 4)), np.zeros(4), np.eye(4)) == math.inf
        assert metrics.two_moment_kl(rng.normal(size=(5, 4)), np.zeros(4), np.eye(4)) < math.inf

    def test_is_infinite_if_a_coordinate_never_moved(self, rng: np.random.Generator) -> None:
        draws = np.column_stack([rng.normal(size=50), np.full(50, 0.1)])
        assert metrics.two_moment_kl(draws, np.zeros(2), np.eye(2)) == math.inf

    def test_is_infinite_for_collinear_draws(self, rng: np.random.Generator) -> None:
        x, y = rng.normal(size=(2, 50))
        draws = np.column_stack([x, y, 0.3 * x - 1.7 * y])
        assert metrics.two_moment_kl(draws, np.zeros(3), random_covariance(rng, 3)) == math.inf

    def test_is_infinite_when_squares_overflow(self) -> None:
        draws = np.array([[1e200], [-1e200], [0.0]])
        assert metrics.two_moment_kl(draws, [0.0], [[1.0]]) == math.inf

    def test_narrow_draws_are_not_mistaken_for_constant_ones(self, rng: np.random.Generator) -> None:
        draws = draws_with_moments(rng, 20, np.ones(2), 1e-16 * np.eye(2))
        expected = gaussian_kl(np.ones(2), 1e-16 * np.eye(2), np.zeros(2), np.eye(2))
        assert metrics.two_moment_kl(draws, np.zeros(2), np.eye(2)) == pytest.approx(expected, rel=1e-6)

    @pytest.mark.full
    @pytest.mark.statistical
    @pytest.mark.parametrize(("dimension", "num_draws"), [(1, 50), (4, 100)])
    def test_draws_of_the_reference_score_its_floor(
        self, rng: np.random.Generator, dimension: int, num_draws: int
    ) -> None:
        """The mean over many samples against E log det of a Wishart matrix, and that against the floor."""
        freedoms = (num_draws - 1.0 - np.arange(dimension)) / 2.0
        exact = 0.5 * (dimension * math.log((num_draws - 1.0) / 2.0) - digamma(freedoms).sum() + dimension / num_draws)
        samples = rng.normal(size=(1_000, num_draws, dimension))
        values = np.array([metrics.two_moment_kl(draws, np.zeros(dimension), np.eye(dimension)) for draws in samples])
        z = (values.mean() - exact) / (values.std(ddof=1) / math.sqrt(len(values)))
        assert abs(z) < stats.norm.isf(FALSE_ALARM / 2.0)
        floor = metrics.two_moment_kl_floor(dimension, num_draws)
        assert abs(floor / exact - 1.0) < (dimension + 1.0) / num_draws  # the next order of the expansion

    def test_floor_of_the_paper(self) -> None:
        assert metrics.two_moment_kl_floor(12, 10_000) == pytest.approx(0.0045)


class TestRelativeErrors:
    def test_mean_error_by_hand(self) -> None:
        draws = np.array([[[3.0, 4.0], [3.0, 6.0]]])
        assert metrics.relative_mean_error(draws, [0.0, 5.0]) == pytest.approx(3.0 / 5.0)

    def test_covariance_error_by_hand(self) -> None:
        draws = np.array([[-1.0, 0.0], [1.0, 0.0]])  # covariance ((2, 0), (0, 0)), with n - 1
        assert metrics.relative_covariance_error(draws, np.diag([2.0, 4.0])) == pytest.approx(4.0 / math.sqrt(20.0))

    def test_covariance_error_in_one_dimension(self) -> None:
        assert metrics.relative_covariance_error([[-1.0], [1.0]], [[4.0]]) == pytest.approx(0.5)

    def test_vanish_for_the_moments_of_the_reference(self, rng: np.random.Generator) -> None:
        mean, covariance = rng.normal(size=3), random_covariance(rng, 3)
        draws = draws_with_moments(rng, 20, mean, covariance)
        assert metrics.relative_mean_error(draws, mean) < 1e-13
        assert metrics.relative_covariance_error(draws, covariance) < 1e-13


patterns = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2)), min_size=1, max_size=30).map(np.array)


class TestJensenShannon:
    def test_is_zero_for_the_same_draws_in_another_order(self, rng: np.random.Generator) -> None:
        draws = rng.integers(0, 2, (100, 3))
        assert metrics.jensen_shannon(draws, rng.permutation(draws)) == 0.0

    def test_is_log_two_for_disjoint_patterns(self) -> None:
        assert metrics.jensen_shannon([[0, 0], [0, 1]], [[1, 0]]) == pytest.approx(math.log(2.0), rel=1e-15)

    def test_compares_patterns_and_not_marginals(self) -> None:
        same, opposite = np.array([[0, 0], [1, 1]]), np.array([[0, 1], [1, 0]])
        np.testing.assert_array_equal(same.mean(axis=0), opposite.mean(axis=0))
        assert metrics.jensen_shannon(same, opposite) == pytest.approx(math.log(2.0), rel=1e-15)

    def test_matches_scipy_on_the_table_of_patterns(self, rng: np.random.Generator) -> None:
        p, q = rng.dirichlet(np.ones(8), 2)
        first, second = rng.choice(8, 300, p=p), rng.choice(8, 500, p=q)
        bits = (np.arange(8)[:, None] >> np.arange(3)) & 1
        expected = jensenshannon(np.bincount(first, minlength=8), np.bincount(second, minlength=8)) ** 2
        assert metrics.jensen_shannon(bits[first], bits[second]) == pytest.approx(expected, rel=1e-10)

    def test_pools_chains_and_takes_booleans(self, rng: np.random.Generator) -> None:
        chains, reference = rng.integers(0, 2, (4, 25, 2)), rng.integers(0, 2, (60, 2))
        expected = metrics.jensen_shannon(chains.reshape(100, 2), reference)
        assert metrics.jensen_shannon(chains.astype(bool), reference) == expected

    @PROPERTY
    @given(first=patterns, second=patterns)
    def test_is_symmetric_and_bounded(self, first: np.ndarray, second: np.ndarray) -> None:
        value = metrics.jensen_shannon(first, second)
        assert 0.0 <= value <= math.log(2.0)
        assert metrics.jensen_shannon(second, first) == pytest.approx(value, abs=1e-14)

    @PROPERTY
    @given(first=patterns, second=patterns)
    def test_sees_at_least_what_each_marginal_sees(self, first: np.ndarray, second: np.ndarray) -> None:
        """Dropping a coordinate cannot raise the divergence."""
        marginals = [metrics.jensen_shannon(first[:, [i]], second[:, [i]]) for i in range(2)]
        assert max(marginals) <= metrics.jensen_shannon(first, second) + 1e-14

    @pytest.mark.statistical
    def test_two_samples_of_one_distribution_score_the_floor(self, rng: np.random.Generator) -> None:
        """The expansion behind the floor has a next term of relative size (number of patterns) / (draws)."""
        num_draws, num_reference, repeats = 1_000, 2_000, 300
        values = np.array(
            [
                metrics.jensen_shannon(rng.integers(0, 2, (num_draws, 3)), rng.integers(0, 2, (num_reference, 3)))
                for _ in range(repeats)
            ]
        )
        floor = metrics.jensen_shannon_floor(8, num_draws, num_reference)
        noise = values.std(ddof=1) / math.sqrt(repeats)
        assert abs(values.mean() - floor) < stats.norm.isf(FALSE_ALARM / 2.0) * noise + floor * 8 / num_draws

    def test_floor_by_hand(self) -> None:
        assert metrics.jensen_shannon_floor(9, 10, 20) == pytest.approx(0.15)


def autoregression(generator: np.random.Generator, shape: tuple[int, int, int], correlation: float) -> np.ndarray:
    """Stationary AR(1) chains (chain, draw, d) with unit variance."""
    num_chains, num_draws, dimension = shape
    noise = generator.normal(size=(num_draws, num_chains, dimension))
    values = np.empty_like(noise)
    values[0] = noise[0]
    for index in range(1, num_draws):
        values[index] = correlation * values[index - 1] + math.sqrt(1.0 - correlation**2) * noise[index]
    return values.transpose(1, 0, 2)


def transcribed_bulk_ess(chains: np.ndarray) -> float:
    """Bulk effective sample size of one coordinate (chain, draw), written from the definition."""
    num_draws = chains.shape[1] // 2
    halves = np.concatenate([chains[:, :num_draws], chains[:, -num_draws:]])
    ranks = stats.rankdata(halves).reshape(halves.shape)
    z = stats.norm.ppf((ranks - 0.375) / (halves.size + 0.25))
    centred = z - z.mean(axis=1, keepdims=True)
    autocovariance = np.array(
        [
            np.mean(np.sum(centred[:, lag:] * centred[:, : num_draws - lag], axis=1)) / num_draws
            for lag in range(num_draws)
        ]
    )
    within = autocovariance[0] * num_draws / (num_draws - 1.0)
    total = autocovariance[0] + np.var(z.mean(axis=1), ddof=1)
    correlation = 1.0 - (within - autocovariance) / total
    correlation[0] = 1.0
    pairs = correlation[0 : num_draws - 1 : 2] + correlation[1:num_draws:2]
    assert pairs.min() <= 0.0, "the sum over pairs must end before the chain does"
    stop = int(np.argmax(pairs <= 0.0))
    length = 2.0 * np.minimum.accumulate(pairs[:stop]).sum() - 1.0 + max(0.0, correlation[2 * stop])
    return z.size * min(1.0 / length, math.log10(z.size))


class TestEffectiveSampleSize:
    @pytest.mark.parametrize("correlation", [0.0, 0.7, -0.4])
    def test_matches_the_definition(self, rng: np.random.Generator, correlation: float) -> None:
        chains = autoregression(rng, (2, 2_000, 3), correlation)
        expected = [transcribed_bulk_ess(chains[:, :, i]) for i in range(3)]
        np.testing.assert_allclose(metrics.bulk_ess(chains), expected, rtol=1e-9)

    @pytest.mark.statistical
    @pytest.mark.parametrize("correlation", [0.0, 0.5, 0.8, -0.3])
    def test_of_an_autoregression(self, rng: np.random.Generator, correlation: float) -> None:
        """n (1 - rho) / (1 + rho), within the noise 2 (2 T + 1) / n of a window of T lags (Sokal 1997).

        T: where the correlation rho^T has fallen to a thousandth, below the noise of its estimate, and 20 lags more.
        """
        num_chains, num_draws, dimension = 4, 10_000, 8
        total = num_chains * num_draws
        values = metrics.bulk_ess(autoregression(rng, (num_chains, num_draws, dimension), correlation))
        expected = total * (1.0 - correlation) / (1.0 + correlation)
        window = 20.0 + (math.log(1e-3) / math.log(abs(correlation)) if correlation else 0.0)
        noise = math.sqrt(2.0 * (2.0 * window + 1.0) / total)
        assert np.all(np.abs(expected / values - 1.0) < stats.norm.isf(FALSE_ALARM / 2.0 / dimension) * noise)

    def test_depends_on_ranks_only(self, rng: np.random.Generator) -> None:
        chains = autoregression(rng, (2, 300, 2), 0.6)
        np.testing.assert_allclose(metrics.bulk_ess(np.exp(3.0 * chains)), metrics.bulk_ess(chains), rtol=1e-9)

    def test_chains_that_disagree_are_worth_little(self, rng: np.random.Generator) -> None:
        chains = rng.normal(size=(2, 500, 1)) + np.array([0.0, 20.0])[:, None, None]
        assert metrics.min_bulk_ess(chains) < 10.0

    def test_a_constant_coordinate_is_nan(self, rng: np.random.Generator) -> None:
        chains = rng.normal(size=(2, 100, 3))
        chains[:, :, 1] = 0.1
        np.testing.assert_array_equal(np.isnan(metrics.bulk_ess(chains)), [False, True, False])
        assert math.isnan(metrics.min_bulk_ess(chains))

    def test_minimum_is_that_of_the_slowest_coordinate(self, rng: np.random.Generator) -> None:
        chains = np.concatenate([autoregression(rng, (2, 1_000, 1), rho) for rho in (0.0, 0.9, 0.5)], axis=2)
        assert metrics.min_bulk_ess(chains) == metrics.bulk_ess(chains)[1]

    def test_per_second(self, rng: np.random.Generator) -> None:
        chains = rng.normal(size=(2, 100, 2))
        assert metrics.ess_per_second(chains, 4.0) == metrics.min_bulk_ess(chains) / 4.0


DRAWS = np.arange(12.0).reshape(6, 2) ** 2
NOT_A_NUMBER = np.where(np.arange(12).reshape(6, 2) == 5, np.nan, DRAWS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.two_moment_kl(DRAWS[:, 0], [0.0], [[1.0]]), r"draws: got shape \(6,\).*add an axis"),
        (lambda: metrics.two_moment_kl(DRAWS[None, None], [0.0], [[1.0]]), r"draws: got shape \(1, 1, 6, 2\)"),
        (lambda: metrics.two_moment_kl(np.empty((0, 2)), np.zeros(2), np.eye(2)), r"draws: got shape \(0, 2\)"),
        (lambda: metrics.two_moment_kl(NOT_A_NUMBER, np.zeros(2), np.eye(2)), r"draws: got NaN .* \(1 of 12\)"),
        (lambda: metrics.two_moment_kl([["a", "b"]], np.zeros(2), np.eye(2)), "draws: .*expected an array of numbers"),
        (lambda: metrics.two_moment_kl(DRAWS, np.zeros(3), np.eye(2)), r"reference_mean: got shape \(3,\)"),
        (lambda: metrics.two_moment_kl(DRAWS, [np.nan, 0.0], np.eye(2)), "reference_mean: got NaN"),
        (lambda: metrics.two_moment_kl(DRAWS, np.zeros(2), np.ones(2)), r"reference_covariance: got shape \(2,\)"),
        (lambda: metrics.two_moment_kl(DRAWS, np.zeros(2), np.ones((2, 2))), "not positive definite"),
        (lambda: metrics.two_moment_kl(DRAWS, np.zeros(2), np.tri(2)), "asymmetric"),
        (lambda: metrics.two_moment_kl_floor(0, 10), "dimension: got 0"),
        (lambda: metrics.two_moment_kl_floor(2, math.nan), "num_draws: got nan"),
        (lambda: metrics.relative_mean_error(DRAWS, np.zeros(2)), "reference_mean: got zero"),
        (lambda: metrics.relative_covariance_error(DRAWS[:1], np.eye(2)), "draws: got a single draw"),
        (lambda: metrics.relative_covariance_error(DRAWS, np.zeros((2, 2))), "reference_covariance: got zero"),
        (lambda: metrics.jensen_shannon(DRAWS + 0.5, DRAWS), "draws: got values that are not whole numbers"),
        (lambda: metrics.jensen_shannon(DRAWS, DRAWS[:, :1]), "reference_draws: got 1 coordinates; expected 2"),
        (lambda: metrics.jensen_shannon_floor(0, 10, 10), "num_patterns: got 0"),
        (lambda: metrics.bulk_ess(DRAWS), r"draws: got shape \(6, 2\).*draws\[None\]"),
        (lambda: metrics.bulk_ess(DRAWS[None, :3]), "at least 4 draws"),
        (lambda: metrics.min_bulk_ess(NOT_A_NUMBER[None]), "draws: got NaN"),
        (lambda: metrics.ess_per_second(DRAWS[None], 0.0), "seconds: got 0.0"),
    ],
)
def test_bad_input_is_named(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
