"""NaN and infinity through every comparison that decides something: always the worst, never the best."""

from __future__ import annotations

import math
from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
import xarray

from coreset_mcmc.diagnostics.mixing import (
    SamplingQuality,
    coreset_warnings,
    in_nats,
    is_better,
    sampling_quality,
    sampling_warnings,
)
from coreset_mcmc.fitting.rescue import Mixing
from coreset_mcmc.report.verdict import verdict_of
from coreset_mcmc.verdict import BAD, CARE, GOOD, rules
from coreset_mcmc.verdict.refits import compare, largest, largest_known
from coreset_mcmc.verdict.verdict import level_of

WORST = (math.nan, math.inf)


def quality(**changes) -> SamplingQuality:
    good = SamplingQuality(4, 1_000, 2_000.0, "", 1.0, "", 0)
    return good._replace(**changes)


@pytest.mark.parametrize("value", WORST)
class TestFindings:
    def test_levels(self, value):
        assert level_of(value, 0.1, 1.0) == BAD

    def test_distance_and_tails(self, value):
        assert rules.distance(value, 400).level == BAD
        assert rules.tails(value, value, 400, matters=True).level == BAD
        assert "nan" not in rules.distance(value, 400).text

    def test_agreement(self, value):
        """Other coresets of an unknown distance do not excuse that they differ."""
        assert rules.agreement(value, 1.0, "", 2, "").level != GOOD
        excused = rules.agreement(2.0, 1.0, "", 2, "", kl_of_others=value)
        assert excused.level == (BAD if math.isnan(value) else CARE)

    def test_half_the_rows(self, value):
        assert rules.reserve(value, 50, "it failed").level == CARE, "never worse"

    def test_rows(self, value):
        expected = CARE if math.isnan(value) else GOOD
        assert rules.rows(value, 5, 1_000).level == expected, "infinitely many effective rows are enough"

    def test_sampling(self, value):
        assert rules.sampling(quality(rhat=value)).level == BAD
        assert rules.sampling(quality(num_chains=1, rhat=math.nan)).level == CARE, "nobody could have computed it"
        assert rules.sampling(quality(ess=math.nan)).level == BAD


def test_the_good_is_still_good():
    assert rules.distance(0.01, 400).level == GOOD
    assert rules.tails(0.2, 300.0, 400).level == GOOD
    assert rules.sampling(quality()).level == GOOD
    assert coreset_warnings(0.5) == []


def test_warnings_about_the_coreset():
    assert "unknown" in coreset_warnings(math.nan)[0]
    assert "infinite" in coreset_warnings(math.inf)[0]
    assert "Given" in coreset_warnings(math.inf)[0], "the advice exists"


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (math.nan, 1.0, False),
        (math.nan, math.inf, False),
        (math.inf, math.nan, True),
        (1.0, math.nan, True),
        (math.inf, 1.0, False),
        (0.5, 1.0, True),
    ],
)
def test_which_fit_is_kept(one, other, expected):
    assert is_better(one, other) is expected


def test_numbers_of_several_fits():
    assert largest([1.0, math.nan]) == math.inf
    assert math.isnan(largest_known([1.0, math.nan]))
    assert largest_known([1.0, math.inf]) == math.inf
    assert "nan" not in in_nats(math.nan)


def tree(**draws) -> xarray.DataTree:
    variables = {name: (("chain", "draw"), values) for name, values in draws.items()}
    return xarray.DataTree.from_dict({"posterior": xarray.Dataset(variables)})


@pytest.fixture(scope="module")
def fresh():
    return np.random.default_rng(0).normal(size=(4, 500))


class TestMixing:
    def test_a_constant_does_not_count(self, fresh):
        found = sampling_quality(tree(a=fresh, b=np.ones((4, 500))))
        assert found.ess > 1_000
        assert found.rhat < 1.01

    def test_draws_that_are_no_numbers_are_the_worst(self, fresh):
        sick = fresh.copy()
        sick[0, 3] = np.nan
        for draws in (tree(a=fresh, b=sick), tree(a=fresh, b=np.where(np.isnan(sick), np.inf, sick))):
            found = sampling_quality(draws)
            assert (found.ess, found.ess_name) == (0.0, "b")
            assert (found.rhat, found.rhat_name) == (math.inf, "b")
            assert len(sampling_warnings(draws)) == 2

    def test_chains_that_stand_apart_are_the_worst(self, fresh):
        stuck = np.repeat(np.arange(4.0)[:, None], 500, axis=1)
        found = sampling_quality(tree(a=fresh, b=stuck))
        assert not found.rhat < 1.5
        assert not found.ess > 50
        assert len(sampling_warnings(tree(a=fresh, b=stuck))) == 2

    def test_another_sampler_is_tried(self):
        assert Mixing(math.nan, 1_000, 0.0).is_poor
        assert Mixing(500.0, 1_000, math.nan).is_poor
        assert not Mixing(500.0, 1_000, 0.0).is_poor


def test_coresets_with_draws_that_are_no_numbers_do_not_agree(fresh):
    sick = fresh.copy()
    sick[:, ::7] = np.nan
    assert compare([{"a": fresh}, {"a": sick}]).rhat == math.inf


@pytest.mark.parametrize("value", WORST)
def test_a_page_without_a_check_says_what_is_not_known(value):
    said = verdict_of(None, SimpleNamespace(kl_estimate=value, samples_coreset=True)).reason
    assert ("unknown" if math.isnan(value) else "infinite") in said


def test_an_epoch_without_an_estimate_is_not_the_best(monkeypatch):
    """The first check is NaN, the second a number: its weights are kept."""
    from coreset_mcmc.methods.coreset_mcmc import epochs as module

    epochs = module.DoublingEpochs(num_draws=4)
    first = epochs.init(jnp.ones(3), {"theta": jnp.zeros((2, 1))})
    answers = iter([jnp.array([jnp.nan, jnp.nan]), jnp.array([2.0, jnp.nan])])
    monkeypatch.setattr(module, "half_variances", lambda *arguments: next(answers))
    second, _ = epochs.finish(first, jnp.array(10), jnp.full(3, 2.0), None)
    third, _ = epochs.finish(second._replace(average=jnp.full(3, 5.0)), jnp.array(30), jnp.full(3, 3.0), None)
    np.testing.assert_array_equal(third.best_weights, [5.0, 5.0, 5.0])
    assert float(third.best_estimate) == 2.0
