"""The posterior predictive check: kinds of response, calibration without bias, bounded work, a picture of each."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.models.model import Model
from coreset_mcmc.report import predictive_check, render
from tests.helpers.pages import Page, drawings
from tests.helpers.report_fits import made_content, made_fit
from tests.helpers.streamed import Streamed

SIZE = 3_000
X = np.random.default_rng(5).normal(size=SIZE)
PROBABILITY = 1.0 / (1.0 + np.exp(2.0 - 2.0 * X))


def model_that_makes(function):
    """A model whose posterior is known to be at theta = 0; ``function(key, shift, x)`` makes new responses."""
    return Model(
        lambda position: -0.5 * position["theta"] ** 2,
        lambda position, rows: -0.5 * (rows["x"] - position["theta"]) ** 2,
        {"theta": np.zeros(())},
        predictive=lambda key, position, rows: {"y": function(key, position["theta"], rows["x"])},
    )


def fit_that_makes(function):
    fit = made_fit({"theta": np.zeros((4, 250))})
    return replace(fit, model=model_that_makes(function), data={"x": X, "y": X})


def bernoulli(shift):
    def draw(key, theta, x):
        return (jax.random.uniform(key, x.shape) < jax.nn.sigmoid(2.0 * x - 2.0 + shift + theta)) * 1.0

    return draw


def normal(key, theta, x):
    return x + theta + jax.random.normal(key, x.shape)


def geometric(key, theta, x):
    """Counts whose mean grows with x; cheaper to draw than Poisson ones."""
    return jnp.floor(-jnp.log(jax.random.uniform(key, x.shape)) * jnp.exp(0.5 * x + theta))


def observed(kind, seed=1):
    rng = np.random.default_rng(seed)
    made = {
        "binary": lambda: rng.random(SIZE) < PROBABILITY,
        "continuous": lambda: X + rng.normal(size=SIZE),
        "count": lambda: np.floor(rng.exponential(np.exp(0.5 * X))),
    }
    return made[kind]()


DRAWS = {"binary": bernoulli(0.0), "continuous": normal, "count": geometric}


@cache
def fit_of(kind):
    return fit_that_makes(DRAWS[kind])


@pytest.mark.full
@pytest.mark.parametrize("kind", DRAWS)
def test_data_of_the_model_itself_agree(kind):
    """Each bin is outside its 89 % interval with probability 0.11; ten of 30 would come once in 3000 times."""
    check = predictive_check(fit_of(kind), observed(kind), seed=2)
    assert check.kind == kind
    assert check.num_rows == check.num_data_rows == SIZE
    assert check.predicted.shape == (3, check.num_bins)
    assert check.edges.shape == (check.num_bins + 1,)
    assert check.num_outside <= check.num_bins / 3
    if kind != "binary":
        assert check.observed.sum() == pytest.approx(1.0)


def test_other_data_do_not():
    assert predictive_check(fit_that_makes(bernoulli(1.0)), observed("binary")).num_outside >= 5
    assert predictive_check(fit_of("continuous"), 2.0 * observed("continuous")).num_outside >= 15
    assert predictive_check(fit_of("count"), 2 * observed("count")).num_outside >= 3


def test_noise_in_predicted_probabilities_is_no_miscalibration():
    """Equal probabilities: bins differ by noise alone, and all of them must expect the same share of ones.

    A bin of about n = 300 rows and the median of 100 replicated shares: the error of each median is below
    1.3 sqrt(p (1 - p) / n) / 10, 0.0035, so five of them are allowed.
    """
    fit = fit_that_makes(lambda key, theta, x: (jax.random.uniform(key, x.shape) < 0.3) * 1.0)
    values = np.random.default_rng(0).random(SIZE) < 0.3
    check = predictive_check(fit, values)
    assert check.num_bins >= 8
    assert np.abs(check.predicted[1] - 0.3).max() < 5 * 0.0035


def test_few_rows_and_draws_are_used():
    calls = []

    def counted(key, theta, x):
        calls.append(x.shape[0])
        return normal(key, theta, x)

    check = predictive_check(fit_that_makes(counted), observed("continuous"), rows=200, draws=20)
    assert (check.num_rows, check.num_data_rows, check.num_draws) == (200, SIZE, 20)
    assert max(calls) <= 256  # the shortest leaf
    again = predictive_check(fit_that_makes(counted), observed("continuous"), rows=200, draws=20)
    assert np.array_equal(check.predicted, again.predicted)


def test_whole_numbers_under_a_continuous_model_are_not_counts():
    assert predictive_check(fit_of("continuous"), np.round(observed("continuous"))).kind == "continuous"


def test_large_counts_share_bins():
    check = predictive_check(
        fit_that_makes(lambda key, theta, x: 100 * geometric(key, theta, x)), 100 * observed("count")
    )
    assert check.kind == "count"
    assert check.num_bins <= 30
    assert np.allclose(np.diff(check.edges), np.diff(check.edges)[0])


def test_a_response_that_never_changes():
    check = predictive_check(fit_that_makes(lambda key, theta, x: 0.0 * x + 2.5), np.full(SIZE, 2.5))
    assert check.num_bins == 1
    assert check.num_outside == 0


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.array(["yes"] * SIZE), "one finite number"),
        (np.full(SIZE, np.nan), "one finite number"),
        (np.zeros(SIZE - 1), "one for each of the 3000 rows"),
    ],
)
def test_unsuitable_responses_are_refused(values, message):
    with pytest.raises(InputError, match=message):
        predictive_check(fit_of("continuous"), values)


def test_several_responses_need_a_name():
    fit = fit_that_makes(normal)
    both = replace(
        fit.model, predictive=lambda key, position, rows: {"y": normal(key, 0.0, rows["x"]), "fixed": rows["x"]}
    )
    with pytest.raises(InputError, match="Say which one"):
        predictive_check(replace(fit, model=both), observed("continuous"))
    assert predictive_check(replace(fit, model=both), observed("continuous"), name="y").name == "y"
    named = replace(both, observed=("y",))
    assert predictive_check(replace(fit, model=named), observed("continuous")).name == "y"


def test_the_response_is_what_the_model_observes_unless_given():
    fit = fit_of("continuous")
    observing = replace(fit, model=replace(fit.model, observed=("y",)))
    by_default, given = predictive_check(observing), predictive_check(observing, X)
    assert np.array_equal(by_default.observed, given.observed)
    assert by_default.num_data_rows == SIZE
    with pytest.raises(InputError, match="does not say which data 'y' are"):
        predictive_check(fit)


@pytest.mark.full
@pytest.mark.parametrize("kind", DRAWS)
def test_each_kind_is_drawn(kind):
    check = predictive_check(fit_of(kind), observed(kind), rows=500)
    page = render(made_content(predictive=replace(check, name="<b>$y$</b>")))
    text = Page(page).text
    assert "500 of the 3,000 rows and 100 replicated data sets" in text
    assert f"in {check.num_outside} of {check.num_bins} groups" in text
    drawing = next(each for each in drawings(page) if "<b>$y$</b>" in each.get("aria-label", ""))
    words = [" ".join(element.itertext()) for element in drawing.iter("text")]
    assert {"expected", "observed"} <= set(words)
    assert ("<b>$y$</b>" in words) == (kind != "binary")


def test_rows_of_a_stream_make_the_same_check():
    fit = fit_of("continuous")
    streamed = replace(fit, tree=fit.tree.copy(), data=Streamed(fit.data))
    here, there = (predictive_check(made, observed("continuous"), rows=500) for made in (fit, streamed))
    np.testing.assert_array_equal(here.observed, there.observed)
    np.testing.assert_array_equal(here.predicted, there.predicted)
    assert there.num_data_rows == SIZE
