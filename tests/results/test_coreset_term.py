"""The Gaussian term of a coreset goes where the coreset goes: files, merges, tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.posterior.gaussian_term import GaussianTerm
from coreset_mcmc.results.term_table import term_path

NAMES = ("beta[0]", "beta[1]", "log_sigma")


def a_coreset(rng, num_rows=100):
    factor = rng.normal(size=(3, 3))
    term = GaussianTerm(rng.normal(size=3), rng.normal(size=3), factor @ factor.T)
    columns = {"x": rng.normal(size=(4, 2)), "y": rng.normal(size=4)}
    return cm.Coreset(np.array([3, 1, 7, 50]), rng.exponential(size=4), num_rows, columns, term, NAMES)


@pytest.mark.parametrize("name", ["coreset.csv", "coreset.parquet"])
def test_saved_and_loaded_to_the_last_bit(rng, tmp_path, name):
    coreset = a_coreset(rng)
    loaded = cm.Coreset.load(coreset.save(tmp_path / name))
    for one, other in zip(loaded.term.arrays().values(), coreset.term.arrays().values(), strict=True):
        np.testing.assert_array_equal(one, other)
    assert loaded.coordinates == NAMES
    np.testing.assert_array_equal(loaded.columns["x"], coreset.columns["x"])


def test_a_lost_term_is_not_overlooked(rng, tmp_path):
    path = a_coreset(rng).save(tmp_path / "coreset.csv")
    term_path(path).unlink()
    with pytest.raises(cm.InputError, match=r"coreset\.gaussian\.csv"):
        cm.Coreset.load(path)


def test_a_coreset_without_a_term_leaves_none_of_another(rng, tmp_path):
    path = a_coreset(rng).save(tmp_path / "coreset.csv")
    replace(a_coreset(rng), term=None, coordinates=()).save(path)
    assert not term_path(path).exists()
    assert cm.Coreset.load(path).term is None


@pytest.mark.parametrize("disjoint", [True, False])
def test_terms_are_merged_like_log_likelihoods(rng, disjoint):
    one, other, flat = a_coreset(rng), a_coreset(rng), rng.normal(size=(5, 3))
    other = replace(other, columns=one.columns)
    merged = one.merge(other, disjoint=disjoint).term.at(flat)
    expected = (one.term.at(flat) + other.term.at(flat)) * (1.0 if disjoint else 0.5)
    np.testing.assert_allclose(merged - merged[0], expected - expected[0], atol=1e-10)
    alone = one.merge(replace(other, term=None, coordinates=()), disjoint=True)
    np.testing.assert_allclose(alone.term.at(flat), one.term.at(flat))


def test_terms_about_other_parameters_are_not_merged(rng):
    one = a_coreset(rng)
    with pytest.raises(cm.InputError, match="different parameters"):
        one.merge(replace(one, coordinates=("a", "b", "c")), disjoint=True)


def test_the_table_has_a_line_for_each_coordinate(rng):
    coreset = a_coreset(rng)
    table = coreset.term_frame()
    assert list(table["coordinate"]) == list(NAMES)
    np.testing.assert_array_equal(table[[f"precision {name}" for name in NAMES]], coreset.term.precision)
    with pytest.raises(cm.InputError, match="without a Gaussian term"):
        replace(coreset, term=None).term_frame()
