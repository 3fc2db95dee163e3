"""Every family as a regression: expected and new responses of new rows, responses in the user's unit, start, links."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.driver.fingerprint import fingerprint
from coreset_mcmc.tables.families import FAMILIES
from tests.helpers.family_examples import LEFT, families_table

RIGHT = "x + g + (1|h)"
NEEDED = ["x", "g", "h", "n"]


def built(name: str, **options) -> cm.Regression:
    return cm.regression(f"{LEFT[name]} ~ {RIGHT}", families_table(), family=name, **options)


def at_start(regression) -> dict:
    return jax.tree.map(jnp.asarray, dict(regression.model.initial_position))


@pytest.mark.parametrize("name", list(FAMILIES))
def test_expected_and_new_responses_of_new_rows(name):
    """New rows have predictors, and trials where there are any; what is drawn are responses that the family has."""
    regression = built(name)
    rows = jax.tree.map(jnp.asarray, regression.new_rows(families_table()[NEEDED].iloc[:40]))
    assert "y" not in rows
    assert ("trials" in rows) == (name == "binomial")
    position = at_start(regression)
    expected = np.asarray(regression.model.expected(position, rows)[regression.response])
    drawn = np.asarray(regression.model.predictive(jax.random.key(0), position, rows)[regression.response], float)
    family = regression.distribution
    assert expected.shape == ((40, family.num_levels) if family.takes_levels else (40,))
    assert drawn.shape == (40,)
    outside = family.outside(drawn, {"trials": np.asarray(rows.get("trials", 0.0))})
    assert outside is None or not outside.any()
    if family.takes_levels:
        np.testing.assert_allclose(expected.sum(axis=1), 1.0, rtol=1e-12)
        assert len(regression.response_levels) == family.num_levels


@pytest.mark.parametrize("name", [name for name in FAMILIES if not FAMILIES[name].takes_levels])
def test_the_start_has_the_mean_of_the_response(name):
    """An intercept alone: the expected response is the mean response; roughly so where counts begin at one."""
    regression = cm.regression(f"{LEFT[name]} ~ 1", families_table(), family=name)
    rows = jax.tree.map(jnp.asarray, regression.data)
    expected = float(np.mean(regression.model.expected(at_start(regression), rows)[regression.response]))
    observed = np.asarray(regression.model.observed(regression.data)[regression.response], float)
    mean = observed.sum() / families_table()["n"].sum() if name == "binomial" else observed.mean()
    assert expected == pytest.approx(mean, rel=0.6 if "hurdle" in name else 1e-6)


@pytest.mark.parametrize("name", list(FAMILIES))
def test_observed_responses_are_in_the_users_unit(name):
    regression = built(name, link="inverse" if name == "gamma" else None)
    observed = np.asarray(regression.model.observed(regression.data)[regression.response], float)
    stored = families_table()[regression.response]
    if FAMILIES[name].takes_levels:
        stored = stored.map({level: place for place, level in enumerate(regression.response_levels)})
    np.testing.assert_allclose(observed, stored.to_numpy(float), rtol=1e-12)


def test_links_are_part_of_the_model():
    one, other = built("bernoulli"), built("bernoulli", link="probit")
    assert one.model.compiled is not other.model.compiled
    assert fingerprint(one.model) != fingerprint(other.model)
    assert built("bernoulli").model.compiled is one.model.compiled


def test_trials_as_an_option_are_those_of_the_formula():
    frame = families_table()
    one = cm.regression("p(k, n) ~ x", frame, family="binomial")
    other = cm.regression("k ~ x", frame, family="binomial", trials="n")
    same = cm.regression("k ~ x", frame.assign(n=20), family="binomial", trials=20)
    for name, array in one.data.items():
        np.testing.assert_array_equal(array, other.data[name])
    assert (same.data["trials"] == 20).all()


@pytest.mark.parametrize("status", ["status", "late", "{status == 'right'}", "{code == 0}"])
def test_ways_to_say_that_a_time_is_a_lower_bound(status):
    is_late = families_table()["status"] == "right"
    frame = families_table().assign(late=is_late, code=np.where(is_late, 0, 1))
    regression = cm.regression(f"censored(amount, {status}) ~ x", frame, family="weibull")
    np.testing.assert_array_equal(regression.data["censored"], is_late.to_numpy(float))


def test_levels_in_the_order_of_the_formula():
    frame = families_table().assign(rating=lambda f: f["rating"].astype(str))
    regression = cm.regression("ordered(rating, 'low', 'mid', 'high', 'top') ~ x", frame, family="cumulative")
    assert regression.response_levels == ("low", "mid", "high", "top")
    assert regression.notes == ("levels of rating in their order: [low, mid, high, top]",)
    assert list(regression.model.coords["threshold_dim"]) == ["low|mid", "mid|high", "high|top"]
    numbers = cm.regression("place ~ x", frame.assign(place=np.arange(len(frame)) % 3 + 1), family="cumulative")
    assert numbers.response_levels == ("1", "2", "3")
    assert "the reference level of choice is 'p'" in cm.regression("choice ~ x", frame, family="categorical").notes


def test_defaults_of_parameters_in_words():
    assert built("beta").priors["kappa"] == "HalfCauchy(1)"
    assert built("weibull").priors["alpha"] == "HalfCauchy(1)"
    assert built("zero_inflated_poisson").priors["psi"] == "Beta(2, 2)"
    assert built("cumulative").priors["threshold"] == "0: Normal(-2, 1); 1: Normal(0, 1); 2: Normal(2, 1)"
    assert built("categorical").priors["Intercept"] == "Normal(0, 2.5)"
