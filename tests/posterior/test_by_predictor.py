"""Second derivatives through a linear predictor: those of the whole likelihood, for less, in bounded memory."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from jax.flatten_util import ravel_pytree

import coreset_mcmc as cm
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.data.array import ArrayData
from coreset_mcmc.data.leaf import widened
from coreset_mcmc.models import (
    bradley_terry,
    bradley_terry_data,
    hierarchical_logistic_regression,
    hierarchical_logistic_regression_data,
    linear_regression,
    logistic_regression,
    poisson_regression,
)
from coreset_mcmc.models.model import Model
from coreset_mcmc.models.regressors import Coefficients, Regressors, RowRegressors
from coreset_mcmc.posterior import by_predictor, second_order
from coreset_mcmc.posterior.by_predictor import direct_places
from coreset_mcmc.posterior.predictor_sums import PredictorSums
from coreset_mcmc.posterior.row_sums import likelihood_derivatives, row_sums
from coreset_mcmc.posterior.second_order import Derivatives, to_second_order
from coreset_mcmc.tables.families import FAMILIES

SIZE = 60


@pytest.fixture(autouse=True)
def few_parameters_are_many(monkeypatch):
    monkeypatch.setattr(by_predictor, "FEWEST_COLUMNS", 1)


def table(rng):
    x = rng.normal(size=(SIZE, 2))
    counts = rng.poisson(np.exp(0.4 * x[:, 0])).astype(float)
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "g": np.resize(list("uvw"), SIZE), "y": np.minimum(counts, 1.0)})


def regression(family, rng):
    model = cm.from_formula("y ~ a * b + g + offset(b)", table(rng), family=family)
    return model, widened(model.data)


def with_factors(rng):
    """Two factors, a dense column and what all rows share, and two parameters that are read by themselves."""

    def of_rows(batch):
        return RowRegressors(batch["x"][:, None], (batch["g"], batch["h"]))

    def coefficients(position):
        """Centred effects with a level of reference, and effects that share parameters."""
        own = jnp.concatenate([jnp.zeros(1), position["g"]])
        level = position["level"] - jnp.sum(position["g"]) / 4.0
        return Coefficients(level, position["slope"][None], (own, 2.0 * own[:3] + position["h"]))

    def log_likelihood(position, predicted, batch):
        residual = (batch["y"] - predicted) * jnp.exp(-position["scale"])
        return -position["scale"] - jnp.exp(position["tail"]) * jnp.log1p(residual**2)

    regressors = Regressors(of_rows, coefficients)
    start = {"g": np.zeros(3), "h": np.zeros(3), **{name: np.zeros(()) for name in ("level", "slope", "scale", "tail")}}
    model = Model.from_linear_predictor(
        lambda position: 0.0, regressors.predictor, log_likelihood, regressors=regressors, initial_position=start
    )
    codes = {name: rng.integers(0, count, SIZE) for name, count in (("g", 4), ("h", 3))}
    return model, {"x": rng.normal(size=SIZE), "y": rng.normal(size=SIZE), **codes}


def built_in(name, rng):
    x = rng.normal(size=(SIZE, 3))
    plain = {"x": x, "y": (rng.random(SIZE) < 0.4).astype(float)}
    if name == "hierarchical":
        rows = hierarchical_logistic_regression_data(rng, SIZE, num_features=2, num_groups=4)
        return hierarchical_logistic_regression(2, 4), rows
    if name == "bradley_terry":
        return bradley_terry(5), bradley_terry_data(rng, SIZE, num_players=5)
    models = {"linear": linear_regression, "logistic": logistic_regression, "poisson": poisson_regression}
    return models[name](3), plain


BUILT_IN = ("linear", "logistic", "poisson", "hierarchical", "bradley_terry")


@double_precision
def both_ways(model, batch, rng):
    """Through the predictor and by differentiating the whole, at random places and weights, some of which are zero."""
    flat, unravel = ravel_pytree(jax.tree.map(lambda leaf: jnp.asarray(leaf, float), model.initial_position))
    flat = jnp.asarray(0.3 * rng.normal(size=flat.size))
    weights = jnp.asarray(rng.integers(0, 3, jax.tree.leaves(batch)[0].shape[0]).astype(float))
    batch = jax.tree.map(jnp.asarray, batch)
    sums = jax.jit(lambda: row_sums(model, unravel, batch, weights, flat))()
    whole = jax.jit(lambda: row_sums(replace(model, linear_predictor=None), unravel, batch, weights, flat))()
    assert isinstance(whole, Derivatives)
    if isinstance(sums, PredictorSums):
        assert_same(jax.jit(lambda: likelihood_derivatives(model, unravel, flat, sums))(), whole)
    return sums, whole


def assert_same(derivatives, whole):
    for found, expected in zip(derivatives, whole, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10 * np.abs(np.asarray(expected)).max())
    np.testing.assert_array_equal(derivatives.hessian, derivatives.hessian.T)


def without_regressors(model):
    return replace(model, linear_predictor=replace(model.linear_predictor, regressors=None))


@pytest.mark.parametrize("knows_regressors", [True, False])
@pytest.mark.parametrize("name", BUILT_IN)
def test_ready_made_models(name, knows_regressors, rng):
    model, batch = built_in(name, rng)
    sums, _ = both_ways(model if knows_regressors else without_regressors(model), batch, rng)
    assert len(sums.direct) == (name == "linear")


@pytest.mark.parametrize("family", ["gaussian", "t", "bernoulli", "negativebinomial", "hurdle_negativebinomial"])
def test_families_of_tables(family, rng):
    sums, _ = both_ways(*regression(family, rng), rng)
    assert len(sums.direct) == len(FAMILIES[family].parameters)


def test_slopes_of_groups(rng):
    """Effects that are multiplied with a number of the row; two factors, one of which has both kinds of effects."""
    model = cm.from_formula("y ~ a + (a * b|g) + (b|h)", table(rng).assign(h=np.arange(SIZE) % 5))
    sums, _ = both_ways(model, widened(model.data), rng)
    assert [diagonal is None for diagonal in sums.diagonals] == [True, False, False, False, True, False]


@pytest.mark.parametrize("knows_regressors", [True, False])
def test_some_rows_at_a_time_and_panels(knows_regressors, monkeypatch, rng):
    """60 rows by 16 leave a remainder; four or five parameters in four panels, the last of which may be cut short."""
    monkeypatch.setattr(by_predictor, "MOST_COLUMN_VALUES", 16 * 8)
    monkeypatch.setattr(by_predictor, "MANY_COLUMNS", 1)
    model, batch = built_in("linear", rng)
    sums, _ = both_ways(model if knows_regressors else without_regressors(model), batch, rng)
    assert isinstance(sums, PredictorSums)


def location_and_scale(position, batch):
    return {"location": batch["x"] @ position["beta"], "log_scale": position["at_zero"] + batch["x"][:, 0]}


def two_predictors():
    """A location and a logarithm of a scale that both depend on the row, and a third parameter read by itself."""

    def log_likelihood(position, predicted, batch):
        standardised = (batch["y"] - predicted["location"]) * jnp.exp(-predicted["log_scale"])
        return -predicted["log_scale"] - jnp.exp(position["tail"]) * jnp.log1p(standardised**2)

    start = {"beta": np.zeros(3), "at_zero": np.zeros(()), "tail": np.zeros(())}
    return Model.from_linear_predictor(
        lambda position: jnp.zeros(()), location_and_scale, log_likelihood, initial_position=start
    )


def test_factors(rng):
    sums, _ = both_ways(*with_factors(rng), rng)
    assert [array.shape for array in (*sums.levels, *sums.tables)] == [(4, 5), (3, 5), (4, 3)]


def test_factors_of_ready_made_models_are_known(rng):
    """As codes: what is summed for an effect is as long as a row has columns, not as a position."""
    for name, num_factors in (("hierarchical", 1), ("bradley_terry", 2)):
        sums, _ = both_ways(*built_in(name, rng), rng)
        assert len(sums.levels) == num_factors


def test_few_parameters_without_regressors_go_the_other_way(monkeypatch, rng):
    model, batch = built_in("linear", rng)
    monkeypatch.setattr(by_predictor, "FEWEST_COLUMNS", 6)
    assert isinstance(both_ways(model, batch, rng)[0], PredictorSums)
    assert isinstance(both_ways(without_regressors(model), batch, rng)[0], Derivatives)
    monkeypatch.setattr(by_predictor, "FEWEST_COLUMNS", 5)
    assert isinstance(both_ways(without_regressors(model), batch, rng)[0], PredictorSums)


def test_several_predictors(rng):
    _, batch = built_in("linear", rng)
    sums, _ = both_ways(two_predictors(), batch, rng)
    assert sums.direct == (4,)


def test_what_is_no_number_for_each_row_goes_the_other_way(rng):
    """A predictor as long as the batch that is none of its rows', and one with two numbers for each row."""
    _, batch = built_in("linear", rng)

    def by_itself(position, batch):
        return {"row": batch["x"] @ position["beta"], "other": position["other"]}

    def log_likelihood(position, predicted, batch):
        return -((batch["y"] - predicted["row"]) ** 2) * jnp.exp(jnp.mean(predicted["other"]))

    start = {"beta": np.zeros(3), "other": np.zeros(SIZE)}
    model = Model.from_linear_predictor(lambda position: 0.0, by_itself, log_likelihood, initial_position=start)
    assert model.linear_predictor is not None
    assert direct_places(model.linear_predictor, start, batch) is None
    sums, whole = both_ways(model, batch, rng)
    np.testing.assert_array_equal(sums.hessian, whole.hessian)


@double_precision
def test_broken_twin_without_what_is_read_by_itself(rng):
    """Were log_variance overlooked, the comparison would say so."""
    model, batch = built_in("linear", rng)
    sums, whole = both_ways(without_regressors(model), batch, rng)
    products = jnp.delete(sums.products, 5, axis=0)
    broken = replace(sums, direct=(), direct_gradient=jnp.zeros(0), products=products, direct_hessian=jnp.zeros((0, 0)))
    with pytest.raises(AssertionError):
        assert_same(broken.derivatives(None, lambda at: at, jnp.zeros(5)), whole)


class TestWithoutPredictor:
    @double_precision
    def test_basis_vectors_in_groups(self, monkeypatch, rng):
        matrix = rng.normal(size=(30, 30))
        flat = jnp.asarray(0.1 * rng.normal(size=30))

        def function(at):
            return jnp.sum(jnp.sin(matrix @ at) ** 2)

        expected = to_second_order(function, flat)
        monkeypatch.setattr(second_order, "FEW_DIMENSIONS", 1)
        monkeypatch.setattr(second_order, "MOST_TANGENT_VALUES", 7 * 30)
        for found, same in zip(to_second_order(function, flat), expected, strict=True):
            np.testing.assert_allclose(found, same, rtol=1e-12, atol=1e-12)

    @double_precision
    @pytest.mark.parametrize("has_predictor", [True, False])
    def test_memory_for_a_thousand_parameters(self, has_predictor):
        """Temporary arrays of a block of 2 048 rows, beside the Hessian itself: 8 megabytes."""
        model = logistic_regression(1_000)
        model = model if has_predictor else replace(model, linear_predictor=None)
        flat, unravel = ravel_pytree(model.initial_position)
        batch = {"x": jax.ShapeDtypeStruct((2_048, 1_000), float), "y": jax.ShapeDtypeStruct((2_048,), float)}
        program = jax.jit(lambda rows, at: row_sums(model, unravel, rows, jnp.ones(2_048), at)).lower(batch, flat)
        assert program.compile().memory_analysis().temp_size_in_bytes < 64e6


def test_blocks_of_arrays_are_served_too(rng):
    """Rows inside a program come in blocks of any length."""
    model, batch = built_in("linear", rng)
    flat, unravel = ravel_pytree(jax.tree.map(jnp.asarray, model.initial_position))
    data = ArrayData(jax.tree.map(jnp.asarray, batch), rows_per_block=7)

    def of_block(rows):
        return row_sums(model, unravel, rows, jnp.ones(rows["y"].shape), flat)

    found, expected = jax.jit(lambda: (data.sum_over_rows(of_block), of_block(data.arrays)))()
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)
