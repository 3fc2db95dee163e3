"""Rows by a score in one pass: distinct, with the chances that are claimed, the same wherever the rows lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from coreset_mcmc.data.engine import Local
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.one_pass_sample import UNIFORM_SHARE, hashed, places_by_score, sample_by_scores
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.source import ArraySource
from tests.helpers.streams import Stream
from tests.helpers.trees import leaves_equal

SIZE = 400
RARE = np.random.default_rng(0).random(1_000) < 0.02


@dataclass(frozen=True)
class Columns:
    """Scores that are columns of the data: two at once."""

    def __call__(self, batch, weights):
        del weights
        return batch["one"], batch["other"]


def table(size=SIZE):
    """Scores of one size, and scores that differ by a factor of 60 000, of which some are sure; and values to sum."""
    generator = np.random.default_rng(1)
    return {
        "one": np.linspace(0.1, 5.0, size),
        "other": np.exp(np.linspace(-8.0, 3.0, size)),
        "value": generator.normal(size=size),
    }


def draw(data, counts=(40, 150), seed=0, rows=None, uniform_rows=None):
    rows = rows or Rows(ArraySource(data))
    known = rows.resident.rows if uniform_rows is None else uniform_rows
    return sample_by_scores(rows, Columns(), (), counts, seed=seed, uniform_rows=known, description="rows")


def test_rows_are_distinct_sorted_and_those_of_their_numbers():
    data = table()
    for sample, count in zip(draw(data), (40, 150), strict=True):
        assert len(sample.indices) == len(sample.probabilities) == count
        assert (np.diff(sample.indices) > 0).all()
        assert sample.indices.dtype == np.int64
        assert ((sample.probabilities > 0) & (sample.probabilities <= 1)).all()
        for name, column in sample.rows.items():
            np.testing.assert_array_equal(column, data[name][sample.indices])


def test_another_seed_draws_other_rows_and_the_same_seed_the_same():
    one, same, other = (draw(table(), seed=seed) for seed in (5, 5, 6))
    assert leaves_equal(one, same)
    assert not np.array_equal(one[0].indices, other[0].indices)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("leaf_rows", [256, 1_024])
def test_the_same_rows_however_the_data_are_divided(leaf_rows, threads):
    data = table(5_000)
    expected = draw(data)
    for source in (ArraySource(data), Stream(data)):
        assert leaves_equal(draw(data, rows=Rows(source, Local(threads), Layout(5_000, leaf_rows))), expected)


@pytest.fixture(scope="module")
def repeats():
    """For 600 seeds, the chance of each row if it was drawn and zero otherwise: (2, repeat, row)."""
    data, chances = table(), np.zeros((2, 600, SIZE))
    rows = Rows(ArraySource(data), Local(1))
    for seed in range(chances.shape[1]):
        for which, sample in enumerate(draw(data, seed=seed, rows=rows)):
            chances[which, seed, sample.indices] = sample.probabilities
    return data, chances


def discrepancy(chances):
    """Over rows, the sum of squared distances of the mean of 1 / chance from one, in standard errors.

    A row that is drawn with a chance that depends on the other rows only counts 1 / chance when it is drawn: one on
    average, with a variance of the mean of (1 - chance) / chance^2; different rows are uncorrelated (Duffield, Lund and
    Thorup 2007, theorem 2). Nearly a chi-square with a degree of freedom for each row that is not sure.
    """
    is_in = chances > 0
    factors = np.where(is_in, 1.0 / np.where(is_in, chances, 1.0), 0.0)
    variances = np.mean(np.where(is_in, factors * (factors - 1.0), 0.0), axis=0)
    is_open = variances > 0
    squares = (factors.mean(axis=0)[is_open] - 1.0) ** 2 / (variances[is_open] / len(chances))
    return float(squares.sum()), int(is_open.sum())


@pytest.mark.statistical
@pytest.mark.parametrize("which", [0, 1])
def test_rows_are_as_frequent_as_their_chances(repeats, which):
    """A chi-square whose false alarms have a rate of 1e-6; chances that are wrong by a tenth are found out."""
    chances = repeats[1][which]
    square, freedom = discrepancy(chances)
    assert freedom > 200
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], freedom)
    assert low < square < high
    wrong, _ = discrepancy(np.where(chances < 0.9, 1.1 * chances, chances))
    assert wrong > high


@pytest.mark.statistical
def test_a_naive_chance_is_found_out(repeats):
    """The broken twin of the threshold: the number of rows times what a row wants, cut at one.

    It is too small where some rows are sure, which leave the others fewer rows to want.
    """
    data, chances = repeats
    score = data["other"]
    wanted = (UNIFORM_SHARE + (1 - UNIFORM_SHARE) * score / score.mean()) / SIZE
    naive = np.minimum(1.0, 150 * wanted)
    square, freedom = discrepancy(np.where(chances[1] > 0, naive, 0.0))
    assert square > stats.chi2.ppf(1 - 5e-7, freedom)


@pytest.mark.statistical
@pytest.mark.parametrize("which", [0, 1])
def test_sums_are_unbiased(repeats, which):
    """Horvitz and Thompson: the mean of 600 estimates of a sum is within 5 standard errors (rate 6e-7)."""
    data, chances = repeats
    factors = np.where(chances[which] > 0, 1.0 / np.maximum(chances[which], 1e-300), 0.0)
    sums = factors @ data["value"]
    assert abs(sums.mean() - data["value"].sum()) < 5 * sums.std(ddof=1) / np.sqrt(len(sums))


@pytest.mark.statistical
def test_sums_without_chances_are_biased(repeats):
    """The broken twin: every row drawn stands for as many, though rows with high scores are drawn more often."""
    data, chances = repeats
    sums = (chances[0] > 0) @ data["one"] * SIZE / 40
    assert sums.mean() - data["one"].sum() > 50 * sums.std(ddof=1) / np.sqrt(len(sums))


def test_rows_that_are_sure_add_no_error(repeats):
    """The largest scores are in every sample with a chance of exactly one, so their sum is never off."""
    data, chances = repeats
    is_sure = (chances[1] == 1.0).all(axis=0)
    assert is_sure.sum() > 10
    assert is_sure[-10:].all()
    values = np.where(is_sure, data["value"], 0.0)
    factors = np.where(chances[1] > 0, 1.0 / np.maximum(chances[1], 1e-300), 0.0)
    np.testing.assert_allclose(factors @ values, values.sum(), rtol=1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_no_numbers_are_surely_in(bad):
    """Such a row cannot be done without, even where the sample that tells the scale has none."""
    data = table(1_000)
    data["one"] = np.where(RARE, bad, data["one"])
    ordinary = {name: column[~RARE] for name, column in data.items()}
    for known in (data, ordinary):
        for seed in range(20):
            sample = draw(data, seed=seed, uniform_rows=known)[0]
            is_rare = RARE[sample.indices]
            assert is_rare.sum() == RARE.sum() < 40
            assert (sample.probabilities[is_rare] == 1.0).all()
            assert (sample.probabilities[~is_rare] < 1.0).all()


def test_more_sure_rows_than_places_share_them():
    """Forty places among 100 rows that cannot be done without: drawn evenly, and honest about it."""
    data = table(1_000)
    data["one"][:100] = np.nan
    counts = np.zeros(100)
    for seed in range(100):
        sample = draw(data, seed=seed)[0]
        assert (sample.indices < 100).all()
        counts[sample.indices] += 1.0 / sample.probabilities
    variance = 40 * 100 * 99 / 39 - 100**2  # of 40 over the 41st of 100 uniform numbers
    assert abs(counts.sum() / 100 - 100) < 5 * np.sqrt(variance / 100)


@pytest.mark.parametrize("count", [SIZE, SIZE + 7])
def test_all_rows_are_taken_when_all_are_asked_for(count):
    one, other = draw(table(), counts=(count, 3))
    np.testing.assert_array_equal(one.indices, np.arange(SIZE))
    assert (one.probabilities == 1.0).all()
    assert len(other.indices) == 3


def test_scores_of_nothing_are_uniform():
    data = {**table(), "one": np.zeros(SIZE)}
    sample = draw(data)[0]
    assert len(set(sample.probabilities)) == 1
    assert 0.05 < sample.probabilities[0] < 0.2, "a tenth of the rows"


def by_hand(scores, known, count, seed):
    """Of all rows at once, with the scale that ``known`` scores tell: numbers and chances."""
    wanted = (UNIFORM_SHARE + (1 - UNIFORM_SHARE) * scores / known.mean()) / len(scores)
    priority = hashed(np.uint64(seed), np.arange(len(scores))) / wanted
    order = np.argsort(priority)
    chosen = np.sort(order[:count])
    return chosen, np.minimum(1.0, wanted[chosen] * priority[order[count]])


def test_the_cut_leaves_no_mark():
    """It only bounds what is kept in memory: rows and chances are those of a look at all rows at once."""
    data = table(20_000)
    known = {name: column[::2] for name, column in data.items()}
    source = Stream(data)
    sample = draw(data, counts=(64, 64), rows=Rows(source), uniform_rows=known)[0]
    indices, chances = by_hand(data["one"], known["one"], 64, seed=0)
    np.testing.assert_array_equal(sample.indices, indices)
    np.testing.assert_allclose(sample.probabilities, chances)
    assert source.num_read == 20_000, "one pass"


def test_rows_that_are_all_known_need_no_pass():
    data = table()
    source = Stream(data)
    sample = draw(data, rows=Rows(source), uniform_rows=data)[0]
    indices, chances = by_hand(data["one"], data["one"], 40, seed=0)
    np.testing.assert_array_equal(sample.indices, indices)
    np.testing.assert_allclose(sample.probabilities, chances)
    assert source.num_read == 0


def test_a_misleading_sample_costs_another_pass_and_nothing_else():
    """Scores of the sample that tells the scale are a million times too large, so too few rows are kept at first."""
    data = table()
    known = {name: 1e6 * column[1:] for name, column in data.items()}
    source = Stream(data)
    found = draw(data, rows=Rows(source), uniform_rows=known)
    for sample, name, count in zip(found, ("one", "other"), (40, 150), strict=True):
        indices, chances = by_hand(data[name], known[name], count, seed=0)
        np.testing.assert_array_equal(sample.indices, indices)
        np.testing.assert_allclose(sample.probabilities, chances)
    assert source.num_read == 2 * SIZE


def test_places_of_an_array_are_drawn_in_the_same_way():
    data = table()
    np.testing.assert_array_equal(places_by_score(data["one"], 40, seed=3), draw(data, seed=3)[0].indices)


@pytest.mark.statistical
def test_hashed_numbers_are_uniform_for_every_salt():
    """Kolmogorov and Smirnov over neighbouring rows and over neighbouring salts; rate 1e-6 each."""
    by_row = hashed(np.uint64(7), np.arange(20_000))
    by_salt = np.array([hashed(np.uint64(salt), np.array([11]))[0] for salt in range(2_000)])
    for values in (by_row, by_salt):
        assert stats.kstest(values, "uniform").pvalue > 1e-6
        assert abs(stats.pearsonr(values[:-1], values[1:]).statistic) < 5 / np.sqrt(len(values))
    assert ((by_row > 0) & (by_row < 1)).all()
