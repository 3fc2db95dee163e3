"""PyMC models with terms of some of the rows: survival models that index by a mask, and missing responses."""

from __future__ import annotations

import warnings

import jax
import numpy as np
import pytest

import coreset_mcmc as cm
from tests.helpers.pymc_totals import assert_totals_agree, positions_of, total

pm = pytest.importorskip("pymc", reason="needs PyMC: pip install coreset-mcmc[pymc]")
import pytensor.tensor as pt  # noqa: E402

SIZE = 60
RNG = np.random.default_rng(3)
X = RNG.normal(size=SIZE)
GROUP = RNG.integers(0, 4, size=SIZE)
TIMES = RNG.weibull(1.5, size=SIZE) * np.exp(0.5 * X)
CENSORED = TIMES > 1.2
Y = np.minimum(TIMES, 1.2)


def log_survival(y, shape, scale):
    return -((y / scale) ** shape)


def masked_inside(index=lambda mask: mask, wrap=lambda name, values: values):
    """The mask indexes what the rows share."""
    with pm.Model() as model:
        slope, shape = pm.Normal("slope"), pm.HalfNormal("shape")
        level = pm.Normal("level", shape=4)
        scale = pt.exp(slope * wrap("x", X) + level[GROUP])
        seen, rest = index(~CENSORED), index(CENSORED)
        pm.Weibull("observed", shape, scale[seen], observed=Y[~CENSORED])
        pm.Potential("censored", log_survival(Y[CENSORED], shape, scale[rest]))
    return model


def masked_outside():
    """Arrays that NumPy has split before: two tables of different rows."""
    with pm.Model() as model:
        slope, shape = pm.Normal("slope"), pm.HalfNormal("shape")
        level = pm.Normal("level", shape=4)
        seen = pt.exp(slope * X[~CENSORED] + level[GROUP[~CENSORED]])
        rest = pt.exp(slope * X[CENSORED] + level[GROUP[CENSORED]])
        pm.Weibull("observed", shape, seen, observed=Y[~CENSORED])
        pm.Potential("censored", log_survival(Y[CENSORED], shape, rest))
    return model


def with_dims():
    """The parts have names, and means of their rows are kept."""
    with pm.Model(coords={"events": range((~CENSORED).sum())}) as model:
        slope, shape = pm.Normal("slope"), pm.HalfNormal("shape")
        scale = pm.Deterministic("scale", pt.exp(slope * X[~CENSORED]), dims="events")
        pm.Weibull("observed", shape, scale, observed=Y[~CENSORED], dims="events")
        pm.Potential("censored", log_survival(Y[CENSORED], shape, pt.exp(slope * X[CENSORED])))
    return model


def in_data():
    return masked_inside(wrap=pm.Data)


def by_numbers():
    return masked_inside(index=np.flatnonzero, wrap=pm.Data)


@pytest.mark.parametrize(
    "make",
    [
        in_data,
        *(
            pytest.param(make, marks=pytest.mark.full)
            for make in (masked_inside, by_numbers, masked_outside, with_dims)
        ),
    ],
)
def test_survival_with_masks_of_the_rows(make):
    model = make()
    ours = cm.from_pymc(model)
    assert {len(values) for values in ours.data.values()} == {SIZE}
    assert_totals_agree(model, ours)
    position = positions_of(ours)[1]
    values = np.asarray(ours.log_likelihood(position, ours.data))
    assert np.all(values != 0)  # every row counts, none in the prior
    assert all(value.size <= 4 for value in ours.constrain(position).values())
    places = np.array([5, 2, 40, 7])
    few = {key: value[places] for key, value in ours.data.items()}
    np.testing.assert_allclose(ours.log_likelihood(position, few), values[places], rtol=1e-12)


def test_rows_that_are_masked_are_in_their_places():
    """Row numbers count the rows of the arrays that were indexed."""
    ours = cm.from_pymc(in_data())
    np.testing.assert_array_equal(ours.data["x"], X)
    position = {"slope": np.array(0.3), "shape_log__": np.array(0.2), "level": np.zeros(4)}
    values = np.asarray(ours.log_likelihood(position, ours.data))
    shape, scale = np.exp(0.2), np.exp(0.3 * X)
    expected = log_survival(Y, shape, scale)
    np.testing.assert_allclose(values[CENSORED], expected[CENSORED], rtol=1e-10)
    density = np.log(shape / scale) + (shape - 1) * np.log(Y / scale) + expected
    np.testing.assert_allclose(values[~CENSORED], density[~CENSORED], rtol=1e-10)


def test_parts_of_a_table_that_are_all_observed_are_rows_once_they_are_named():
    with pm.Model() as model:
        mean = pm.Normal("mean")
        pm.Normal("one", mean, 1.0, observed=Y[~CENSORED])
        pm.StudentT("other", 4, mean, observed=Y[CENSORED])
    with pytest.raises(cm.InputError, match=r"name them all, rows=\['one', 'other'\]"):
        cm.from_pymc(model)
    ours = cm.from_pymc(model, rows=["one", "other"])
    assert len(ours.data["one"]) == SIZE
    assert_totals_agree(model, ours)


def with_gaps(values=Y, family=pm.Normal, **parameters):
    gaps = np.ma.masked_array(values, mask=CENSORED)
    with warnings.catch_warnings(), pm.Model() as model:
        warnings.simplefilter("ignore")
        x = pm.Data("x", X)
        family("y", pm.Normal("intercept") + pm.Normal("slope") * x, observed=gaps, **parameters)
    return model


def poisson(name, mean, **options):
    return pm.Poisson(name, pt.exp(mean), **options)


@pytest.mark.full
@pytest.mark.parametrize(("values", "family"), [(Y, pm.Normal), (GROUP, poisson)])
def test_missing_responses_are_left_out_with_a_note(values, family):
    with pytest.warns(UserWarning, match=f"Missing responses are left out \\({CENSORED.sum()} of 'y'\\)"):
        ours = cm.from_pymc(with_gaps(values, family))
    assert set(ours.initial_position) == {"intercept", "slope"}
    np.testing.assert_array_equal(ours.data["x"], X[~CENSORED])
    np.testing.assert_array_equal(ours.observed(ours.data)["y_observed"], values[~CENSORED])
    drawn = ours.predictive(jax.random.key(0), positions_of(ours)[0], ours.data)["y_observed"]
    assert drawn.shape == ((~CENSORED).sum(),)
    with pm.Model() as complete:
        family("y", pm.Normal("intercept") + pm.Normal("slope") * X[~CENSORED], observed=values[~CENSORED])
    for position in positions_of(ours):
        theirs = complete.compile_logp(mode="FAST_COMPILE")(position)
        np.testing.assert_allclose(total(ours, position), theirs, rtol=1e-8)


def test_missing_responses_beside_another_that_is_there():
    """A row with one response of two still counts for it."""
    with warnings.catch_warnings(), pm.Model() as model:
        warnings.simplefilter("ignore")
        mean = pm.Normal("slope") * X
        pm.Normal("one", mean, 1.0, observed=np.where(CENSORED, np.nan, Y))
        pm.Normal("two", mean, 2.0, observed=Y)
    with pytest.warns(UserWarning, match="of 'one'"):
        ours = cm.from_pymc(model)
    position = {"slope": np.array(0.4)}
    density = -0.5 * (Y - 0.4 * X) ** 2 - 0.5 * np.log(2 * np.pi)
    other = -0.5 * ((Y - 0.4 * X) / 2) ** 2 - 0.5 * np.log(2 * np.pi) - np.log(2)
    expected = np.where(CENSORED, 0, density) + other
    np.testing.assert_allclose(ours.log_likelihood(position, ours.data), expected, rtol=1e-8)
    drawn = ours.predictive(jax.random.key(0), position, ours.data)
    assert {name: values.shape for name, values in drawn.items()} == {"one_observed": (SIZE,), "two": (SIZE,)}
    assert set(ours.observed(ours.data)) == {"two"}


def missing_covariate():
    with warnings.catch_warnings(), pm.Model() as model:
        warnings.simplefilter("ignore")
        x = pm.Normal("x", pm.Normal("mean"), 1, observed=np.where(CENSORED, np.nan, X))
        pm.Normal("y", pm.Normal("slope") * x, 1, observed=Y)
    return model


def gaps_in_columns():
    with warnings.catch_warnings(), pm.Model() as model:
        warnings.simplefilter("ignore")
        both = np.column_stack([np.where(CENSORED, np.nan, Y), Y])
        pm.Normal("y", pm.Normal("slope") * X[:, None], 1, observed=both)
    return model


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (missing_covariate, "'x'.*on which y depend.*Their rows have responses.*multiple imputation"),
        (gaps_in_columns, "missing values in some columns.*a variable of its own"),
    ],
)
def test_gaps_that_matter_are_refused_for_the_true_reason(make, words):
    with pytest.raises(cm.InputError, match=f"(?s){words}") as refused:
        cm.from_pymc(make())
    assert "no information" not in str(refused.value)
