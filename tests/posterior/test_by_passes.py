"""The full posterior by passes: what compiled programs that hold all rows find, wherever the rows are."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc.core.status import Status
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.engine import Local
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.source import ArraySource
from coreset_mcmc.models import linear_regression, poisson_regression
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.by_passes import FullPosterior, flat_position, posterior_of
from coreset_mcmc.posterior.full import derivatives, full_log_density
from coreset_mcmc.posterior.newton import NewtonSearch, approximation_at, find_mode
from tests.helpers.compilations import compilations
from tests.helpers.no_peak import ROWS, one_parameter, without_a_peak
from tests.helpers.regressions import MODELS, NUM_FEATURES, make, regression_data
from tests.helpers.streams import Stream
from tests.helpers.trees import leaves_equal


def both(name):
    """The same problem with rows in programs, and as rows to be passed over."""
    problem = make(MODELS[name](NUM_FEATURES), regression_data(name))
    return problem, posterior_of(replace(problem, data=to_rows(regression_data(name))))


@pytest.fixture(
    scope="module", params=["rare", *(pytest.param(name, marks=pytest.mark.full) for name in ("linear", "poisson"))]
)
def pair(request):
    with jax.enable_x64(True):
        return both(request.param)


def test_derivatives_are_those_of_rows_in_programs(pair, rng):
    problem, by_passes = pair
    for _ in range(3):
        flat = 0.3 * rng.normal(size=flat_position(problem.position).size)
        expected, found = jax.jit(derivatives)(problem, flat), by_passes.derivatives(flat, "derivatives")
        for one, other in zip(found, expected, strict=True):
            assert isinstance(one, np.ndarray)
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10 * np.abs(other).max())
        np.testing.assert_allclose(
            found.value, full_log_density(problem.model, problem.data, by_passes.unravel(flat)), rtol=1e-12
        )


def test_the_search_by_numpy_is_the_compiled_one(pair):
    """The same steps, the same mode to a millionth of its spread, the same count."""
    problem, by_passes = pair
    state, info = jax.jit(find_mode)(problem, NewtonSearch())
    found, counted = by_passes.find_mode(NewtonSearch(), flat_position(problem.position))
    gaussian, expected = approximation_at(found), approximation_at(state)
    assert isinstance(found.position, np.ndarray)
    assert bool(found.has_converged)
    assert int(found.iteration) == int(state.iteration)
    assert int(counted.num_evaluations) == int(info.num_evaluations)
    assert int(counted.status) == int(info.status) == Status.OK.value
    apart = np.linalg.solve(np.asarray(expected.scale_factor), gaussian.mean - np.asarray(expected.mean))
    assert np.abs(apart).max() < 1e-6
    np.testing.assert_allclose(gaussian.scale_factor, expected.scale_factor, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("threads", [1, 3])
def test_where_rows_lie_changes_no_bit(threads):
    data, model, layout = regression_data("linear", size=20_000), linear_regression(NUM_FEATURES), Layout(20_000, 256)
    start = flat_position(model.initial_position)

    def search(source, engine):
        return FullPosterior(model, Rows(source, engine, layout), model.initial_position).find_mode(
            NewtonSearch(), start
        )

    assert leaves_equal(search(Stream(data), Local(threads)), search(ArraySource(data), Local(1)))


def test_a_search_compiles_nothing_after_its_first_pass_and_a_step_is_a_pass():
    data = regression_data("poisson", size=300)
    model = replace(poisson_regression(NUM_FEATURES), name="compiled here only")
    start = flat_position(model.initial_position)
    with compilations() as compiled:
        FullPosterior(model, Rows(Stream(data)), model.initial_position).derivatives(start, "derivatives")
    assert compiled
    source = Stream(data)
    posterior = FullPosterior(model, Rows(source), model.initial_position)
    with compilations() as compiled:
        state, info = posterior.find_mode(NewtonSearch(), start)
    assert compiled == []
    assert source.num_read == 300 * int(state.iteration)
    assert int(info.num_evaluations) == 300 * (1 + 4) * int(state.iteration)


def posterior_with(log_likelihood, start):
    return FullPosterior(one_parameter(log_likelihood, start), to_rows(ROWS), np.array(start))


@without_a_peak
def test_says_when_there_is_no_peak(log_likelihood, start, status):
    posterior = posterior_with(log_likelihood, start)
    _, info = posterior.find_mode(NewtonSearch(max_iterations=10), np.array([start]))
    assert int(info.status) == status.value


def test_an_impossible_step_is_not_taken():
    """Beyond a cliff the density is NaN or nothing: the search stays on this side and finds the peak there."""

    def with_a_cliff(position, row):
        return row * jnp.where(position < 1.5, -((position - 1.0) ** 4) - 0.01 * position**2, jnp.nan)

    posterior = posterior_with(with_a_cliff, -3.0)
    state, info = posterior.find_mode(NewtonSearch(), np.array([-3.0]))
    assert int(info.status) == Status.OK.value
    assert state.position[0] < 1.5
    assert abs(state.derivatives.gradient[0]) < 1e-3


@pytest.mark.parametrize("size", [1, 255, 257, 2_049])
def test_rows_that_fill_a_leaf_up_are_not_seen(size):
    """Derivatives at padding would be infinite or not a number: zeros are never evaluated, copies count for nothing."""
    y = np.random.default_rng(0).uniform(1.0, 2.0, size)
    model = Model(lambda theta: -0.5 * theta**2, lambda theta, row: theta * jnp.log(row) - jnp.exp(theta) * row)
    found = FullPosterior(model, to_rows(y), np.array(0.3)).derivatives(np.array([0.3]), "derivatives")
    total = np.exp(0.3) * y.sum()
    np.testing.assert_allclose(found.value, -0.045 + 0.3 * np.log(y).sum() - total, rtol=1e-12)
    np.testing.assert_allclose(found.gradient, [-0.3 + np.log(y).sum() - total], rtol=1e-12)
    np.testing.assert_allclose(found.hessian, [[-1.0 - total]], rtol=1e-12)


def test_weighted_rows_are_repeated_rows(rng):
    data = regression_data("linear", size=60)
    weights = rng.integers(0, 4, 60)
    model = linear_regression(NUM_FEATURES)
    repeated = to_rows(jax.tree.map(lambda column: np.repeat(column, weights, axis=0), data))
    weighted = to_rows(regression_data("linear")).weighted(data, weights)
    flat = 0.3 * rng.normal(size=5)
    one, other = (
        FullPosterior(model, rows, model.initial_position).derivatives(flat, "derivatives")
        for rows in (repeated, weighted)
    )
    for expected, found in zip(one, other, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-10 * np.abs(expected).max())


def test_flat_positions_are_those_of_jax():
    position = {"b": np.array([[1, 2], [3, 4]]), "a": np.float32(0.5), "c": {"d": np.zeros(0)}}
    expected = jax.flatten_util.ravel_pytree(jax.tree.map(lambda leaf: jnp.asarray(leaf, float), position))[0]
    np.testing.assert_array_equal(flat_position(position), expected)
    assert flat_position({}).shape == (0,)
