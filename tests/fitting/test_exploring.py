"""A fit begins in the most massive mode, and says so where there are others."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data import layout, rows
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.engine import Local
from coreset_mcmc.fitting import exploring
from tests.helpers.problems import logistic_data
from tests.helpers.several_modes import SIZE, clusters, factors, share_of_positive
from tests.helpers.streams import Stream

METHOD = cm.LeastSquares(num_draws=80, num_chains=2)
SETTINGS = {"coreset_size": 30, "draws": 60, "tune": 10, "chains": 2, "random_seed": 4, "progressbar": False}


def fit(model, data, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = cm.fit(model, data, **{**SETTINGS, "method": METHOD, **options})
    return made, [str(warning.message) for warning in caught]


@pytest.fixture(scope="module")
def product():
    return factors(np.random.default_rng(0))


@pytest.fixture(scope="module")
def of_factors(product):
    return fit(*product)


def test_a_far_cluster_is_found_from_the_wrong_one():
    model, data = clusters(np.random.default_rng(0))
    made, messages = fit(model, data)
    assert abs(float(made.posterior["centre"].mean())) < 0.5
    assert made.settings["other_modes"] == 0.0
    assert "1 of 2 peaks" in made.settings["modes"]
    assert not any("draws leave out" in message for message in messages)
    assert made.pilot.num_evaluations > SIZE


@pytest.mark.full
def test_a_mode_that_is_left_out_is_never_silent(product, of_factors):
    made, messages = of_factors
    true = share_of_positive(product[1])
    assert float(made.posterior["first"].min()) > 0, "one sign only"
    assert made.settings["other_modes"] == pytest.approx(1.0 - true, rel=0.3)
    about = next(message for message in messages if "draws leave out" in message)
    assert "exact()" in about
    assert "second = " in made.settings["modes"]


@pytest.mark.full
def test_copies_are_said_to_be_copies():
    made, messages = fit(*factors(np.random.default_rng(0), prior_mean=0.0))
    assert made.settings["other_modes"] == 0.0
    assert "2 copies" in made.settings["modes"]
    assert any("either sign" in message for message in messages)
    assert not any("draws leave out" in message for message in messages)


@pytest.mark.full
def test_nothing_is_looked_for_where_the_likelihood_is_concave(monkeypatch):
    def refuse(*arguments, **options):
        raise AssertionError("modes were looked for")

    monkeypatch.setattr(exploring, "find_modes", refuse)
    made, _ = fit(cm.models.logistic_regression(2), logistic_data())
    assert made.settings["modes"] == "one: the log-likelihood is concave"
    assert made.pilot.num_evaluations == 0
    with pytest.raises(AssertionError, match="looked for"):
        fit(*clusters(np.random.default_rng(0)))


def test_families_that_are_concave_say_so():
    table = pd.DataFrame({"y": [0, 1, 1, 0, 1, 0], "x": [0.1, 0.4, 0.2, 0.8, 0.9, 0.3]})
    concave = {
        family: cm.regression("y ~ x", table, family=family).model.log_concave
        for family in ("bernoulli", "poisson", "gaussian", "negativebinomial", "t")
    }
    assert concave == {"bernoulli": True, "poisson": True, "gaussian": False, "negativebinomial": False, "t": False}


@pytest.mark.full
def test_files_have_the_bits_of_memory(monkeypatch):
    """More rows than the sample in memory, in several parts."""
    monkeypatch.setattr(layout, "MOST_LEAF_ROWS", 256)
    monkeypatch.setattr(rows, "MOST_RESIDENT_ROWS", 600)
    model, data = clusters(np.random.default_rng(1))
    one, _ = fit(model, data, engine=Local(1))
    other, _ = fit(model, Stream(data), engine=Local(2))
    np.testing.assert_array_equal(one.posterior["centre"], other.posterior["centre"])
    assert one.settings == other.settings
    assert abs(float(one.posterior["centre"].mean())) < 0.5


@pytest.mark.full
def test_other_sizes_and_seeds_share_the_search(monkeypatch, product):
    """What rows remember: a second fit of the same rows looks for nothing."""
    model, data = product
    known = to_rows(data)
    first, _ = fit(model, known)
    monkeypatch.setattr(exploring, "find_modes", None)
    second, _ = fit(model, known, random_seed=5)
    assert second.settings["modes"] == first.settings["modes"]
    assert second.pilot.num_evaluations == 0
