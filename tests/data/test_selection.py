"""Which rows are chosen, how often, with which weights, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.data.selection import Given, SelectedRows, Selection, Stratified, Uniform, equal_shares

FALSE_ALARM = 1e-5
"""Probability that a statistical test of this file fails although the code is right, for one seed."""

PROPERTY = settings(deadline=None, max_examples=200, derandomize=True)

NUM_FLIGHTS, NUM_CANCELLED = 98_673, 57


def inclusion_counts(
    selection: Selection, rng: np.random.Generator, size: int, count: int, repeats: int
) -> tuple[np.ndarray, np.ndarray]:
    """How often each row (N,), and each pair of rows (N, N), is chosen together."""
    chosen = np.zeros((repeats, size))
    for member in chosen:
        member[selection.select(rng, None, size, count).indices] = 1.0
    return chosen.sum(axis=0), chosen.T @ chosen


def corrected_p_value(counts: np.ndarray, repeats: int, probability: np.ndarray | float) -> float:
    """Smallest exact two-sided binomial tail, times the number of counts."""
    binomial = stats.binom(repeats, probability)
    return 2.0 * counts.size * float(np.minimum(binomial.cdf(counts), binomial.sf(counts - 1)).min())


class TestUniform:
    @pytest.mark.parametrize("count", [1, 7, 50])
    def test_distinct_rows_with_weights_that_sum_to_n(self, rng: np.random.Generator, count: int) -> None:
        selected = Uniform().select(rng, None, 50, count)
        assert isinstance(selected, SelectedRows)
        assert len(np.unique(selected.indices)) == count
        assert selected.indices.min() >= 0
        assert selected.indices.max() < 50
        np.testing.assert_array_equal(selected.weights, np.full(count, 50 / count))

    @pytest.mark.statistical
    def test_every_row_and_every_pair_is_equally_likely(self, rng: np.random.Generator) -> None:
        size, count, repeats = 20, 6, 4_000
        singles, pairs = inclusion_counts(Uniform(), rng, size, count, repeats)
        pairs = pairs[np.triu_indices(size, 1)]
        assert corrected_p_value(singles, repeats, count / size) > FALSE_ALARM / 2
        together = count * (count - 1) / (size * (size - 1))
        assert corrected_p_value(pairs, repeats, together) > FALSE_ALARM / 2


class TestStratified:
    @pytest.mark.parametrize(
        ("count", "positives"), [(10, 5), (15, 8), (20, 10), (50, 25), (100, 50), (200, 57), (500, 57)]
    )
    @pytest.mark.parametrize("weights", ["stratum", "uniform"])
    def test_cancelled_flights(self, rng: np.random.Generator, count: int, positives: int, weights: str) -> None:
        """min(ceil(M/2), all) rare rows, as in the paper; its weights are N/M, ours make the strata weigh N_g."""
        labels = np.zeros(NUM_FLIGHTS, int)
        labels[rng.choice(NUM_FLIGHTS, NUM_CANCELLED, replace=False)] = 1
        selected = Stratified("y", weights=weights).select(rng, {"y": labels}, NUM_FLIGHTS, count)
        is_positive = labels[selected.indices] == 1
        assert len(np.unique(selected.indices)) == count
        assert is_positive.sum() == positives
        if weights == "uniform":
            np.testing.assert_array_equal(selected.weights, NUM_FLIGHTS / count)
        else:
            assert selected.weights.sum() == pytest.approx(NUM_FLIGHTS, rel=1e-12)
            np.testing.assert_allclose(selected.weights[is_positive], NUM_CANCELLED / positives, rtol=1e-14)

    def test_weights_of_each_stratum_sum_to_its_size(self, rng: np.random.Generator) -> None:
        labels = rng.permutation(np.repeat(["low", "mid", "high", "rare"], [500, 300, 40, 3]))
        selected = Stratified(labels).select(rng, None, 843, 50)
        chosen = labels[selected.indices]
        assert (chosen == "rare").sum() == 3
        for name, size in {"low": 500, "mid": 300, "high": 40, "rare": 3}.items():
            assert selected.weights[chosen == name].sum() == pytest.approx(size, rel=1e-12)
        others = [int((chosen == name).sum()) for name in ("low", "mid", "high")]
        assert sorted(others) == [15, 16, 16]

    @pytest.mark.parametrize(
        "by",
        [
            "label",
            lambda batch: batch["score"] > 0.5,
            [True, False] * 30,
            np.tile(["a", "b"], 30),
            pd.Series([1.0, 2.0] * 30, index=range(100, 160)),
            pd.Categorical(["x", "y"] * 30),
            pd.Series(pd.Categorical(["x", "y"] * 30)),
        ],
        ids=["key", "function", "list", "array", "series", "categorical", "categorical-series"],
    )
    def test_ways_to_name_the_strata(self, rng: np.random.Generator, by: Any) -> None:
        batch = {"label": np.tile([0, 1], 30), "score": np.tile([0.2, 0.9], 30)}
        selected = Stratified(by).select(rng, batch, 60, 10)
        np.testing.assert_array_equal(np.bincount(selected.indices % 2), [5, 5])

    @pytest.mark.statistical
    def test_rows_of_a_stratum_are_equally_likely(self, rng: np.random.Generator) -> None:
        labels, repeats = np.repeat([0, 1, 2], [12, 6, 2]), 4_000
        singles, _ = inclusion_counts(Stratified(labels), rng, 20, 10, repeats)
        np.testing.assert_array_equal(singles[labels == 2], repeats)
        assert corrected_p_value(singles[:18], repeats, 4 / np.array([12] * 12 + [6] * 6)) > FALSE_ALARM

    @pytest.mark.parametrize("indirect", [False, True], ids=["categorical", "series"])
    def test_an_empty_category_is_named(self, rng: np.random.Generator, indirect: bool) -> None:
        labels = pd.Categorical(["a", "b"] * 5, categories=["a", "b", "never"])
        with pytest.raises(InputError, match=r"got empty strata \['never'\].*remove_unused_categories"):
            Stratified(pd.Series(labels) if indirect else labels).select(rng, None, 10, 4)

    def test_more_strata_than_rows(self, rng: np.random.Generator) -> None:
        with pytest.raises(InputError, match=r"Stratified: got 5 strata for 4 coreset rows.*group rare strata"):
            Stratified(np.arange(10) % 5).select(rng, None, 10, 4)

    def test_as_many_strata_as_rows(self, rng: np.random.Generator) -> None:
        selected = Stratified(np.arange(10) % 5).select(rng, None, 10, 5)
        np.testing.assert_array_equal(np.sort(selected.indices % 5), np.arange(5))

    @pytest.mark.parametrize(
        ("by", "batch", "message"),
        [
            ("z", {"x": np.ones(4), "y": np.ones(4)}, r"Stratified by: got 'z'; .*\['x', 'y'\].*Name a column"),
            ("z", np.ones(4), r"Stratified by: got 'z'; .*\(ndarray\)"),
            (np.ones(3), None, r"Stratified labels: got shape \(3,\); expected one label for each of the 4 rows"),
            (lambda batch: batch["x"], {"x": np.ones((4, 2))}, r"Stratified labels: got shape \(4, 2\)"),
        ],
        ids=["unknown", "no-keys", "short", "table"],
    )
    def test_bad_labels_are_named(self, rng: np.random.Generator, by: Any, batch: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            Stratified(by).select(rng, batch, 4, 2)

    def test_unknown_weights_are_named(self) -> None:
        with pytest.raises(InputError, match=r"Stratified weights: got 'equal'; expected \"stratum\" or \"uniform\""):
            Stratified("y", weights="equal")


class TestEqualShares:
    @PROPERTY
    @given(sizes=st.lists(st.integers(1, 40), min_size=1, max_size=8), data=st.data())
    def test_as_equal_as_the_sizes_allow(self, sizes: list[int], data: st.DataObject) -> None:
        count = data.draw(st.integers(len(sizes), sum(sizes)))
        shares = equal_shares(np.array(sizes), count)
        assert shares.sum() == count
        assert np.all(shares <= sizes)
        assert shares.min() >= 1
        is_open = shares < sizes
        assert np.all(shares[is_open] >= shares.max() - 1)

    @pytest.mark.parametrize(
        ("sizes", "count", "expected"),
        [
            ([100, 100], 7, [3, 4]),
            ([100, 2], 7, [5, 2]),
            ([9, 9, 9], 8, [2, 3, 3]),
            ([10, 2, 10], 8, [3, 2, 3]),
            ([4, 4], 8, [4, 4]),
        ],
    )
    def test_by_hand(self, sizes: list[int], count: int, expected: list[int]) -> None:
        np.testing.assert_array_equal(equal_shares(np.array(sizes), count), expected)


class TestGiven:
    def test_rows_in_the_order_given(self, rng: np.random.Generator) -> None:
        selected = Given([7, 0, 3]).select(rng, None, 12, None)
        np.testing.assert_array_equal(selected.indices, [7, 0, 3])
        np.testing.assert_array_equal(selected.weights, 4.0)

    def test_weights_as_given(self, rng: np.random.Generator) -> None:
        selected = Given(np.array([1, 2]), [0, 5]).select(rng, None, 12, 2)
        np.testing.assert_array_equal(selected.weights, [0.0, 5.0])
        assert selected.weights.dtype == float

    @pytest.mark.parametrize(
        ("selection", "count", "message"),
        [
            (Given([]), None, r"Given indices: got shape \(0,\)"),
            (Given([[0, 1]]), None, r"Given indices: got shape \(1, 2\)"),
            (Given([0.0, 1.0]), None, r"Given indices: got shape \(2,\), dtype float64; expected a list of whole"),
            (Given(np.ones(5, bool)), None, r"dtype bool; .*numpy\.flatnonzero"),
            (Given([0, 1]), 3, "coreset_size: got 3; expected 2, the number of given rows"),
            (Given([0, -1]), None, "Given indices: got values from -1 to 0; expected row numbers from 0 to 4"),
            (Given([0, 5]), None, "Given indices: got values from 0 to 5; expected row numbers from 0 to 4"),
            (Given([0, 2, 2, 2]), None, "Given indices: got 2 repeated rows.*larger weight"),
            (Given([0, 1], [1.0]), None, r"Given weights: got shape \(1,\), finite: True; expected 2 finite numbers"),
            (Given([0, 1], [1.0, np.inf]), None, "Given weights: .*finite: False"),
            (Given([0, 1], [[1.0, 2.0]]), None, r"Given weights: got shape \(1, 2\)"),
        ],
    )
    def test_bad_rows_are_named(self, rng: np.random.Generator, selection: Given, count: Any, message: str) -> None:
        with pytest.raises(InputError, match=message):
            selection.select(rng, None, 5, count)


@pytest.mark.parametrize("selection", [Uniform(), Stratified([0, 1, 0, 1])], ids=["uniform", "stratified"])
@pytest.mark.parametrize(
    ("count", "message"),
    [
        (5, "coreset_size: got 5; expected at most the 4 rows of the data.*smaller coreset"),
        (0, "coreset_size: got 0; expected a whole number of at least 1"),
        (None, "coreset_size: got None"),
        (2.0, r"coreset_size: got 2\.0"),
        (True, "coreset_size: got True"),
    ],
)
def test_bad_sizes_are_named(rng: np.random.Generator, selection: Selection, count: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        selection.select(rng, None, 4, count)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0.0, np.nan] * 5, "5 missing labels"),
        ([None, "a"] * 5, "5 missing labels"),
        (np.array([1, "a"] * 5, dtype=object), "several types"),
    ],
)
def test_stratified_refuses_labels_that_are_no_labels(labels, message):
    with pytest.raises(InputError, match=message):
        Stratified(labels).select(np.random.default_rng(0), {"x": np.zeros(10)}, 10, 4)


def test_given_refuses_weights_that_are_no_numbers():
    with pytest.raises(InputError, match="dtype"):
        Given([1, 2], weights=["a", "b"]).select(np.random.default_rng(0), None, 10, None)
