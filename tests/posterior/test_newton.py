"""The full log-density to second order, the search for its mode, and the Gaussian there."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from coreset_mcmc import datasets
from coreset_mcmc.core.status import Status
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import Given
from coreset_mcmc.models import gaussian_location, linear_regression, logistic_regression, poisson_regression
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.newton import (
    NewtonSearch,
    approximation_at,
    derivatives,
    find_mode,
    full_log_densities,
    full_log_density,
    num_derivative_evaluations,
    value_and_gradient,
)
from coreset_mcmc.posterior.problem import make_problem, starting_positions

NUM_FEATURES = 3
SIZE = 1_500

find = jax.jit(find_mode)


def make(model, data, rows_per_block=2_048):
    size = jax.tree.leaves(data)[0].shape[0]
    selected = Given([0]).select(np.random.default_rng(0), data, size, None)
    blocked = replace(to_array_data(data), rows_per_block=rows_per_block)
    return make_problem(model, blocked, selected, starting_positions(model, jax.random.key(0), 1))


def regression_data(name, size=SIZE):
    """Features of different scales, and responses that put the mode where the paper's data do."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(size, NUM_FEATURES)) * np.array([1.0, 0.1, 5.0])
    slopes = np.array([1.0, -2.0, 0.3])
    responses = {
        "poisson": lambda: rng.poisson(np.maximum(186.0 + 40.0 * x @ slopes, 0.01)).astype(float),
        "logistic": lambda: (rng.random(size) < 1 / (1 + np.exp(-x @ slopes))).astype(float),
        "rare": lambda: (np.arange(size) < 5).astype(float),
        "linear": lambda: x @ slopes + 40.0 * rng.normal(size=size),
        "linear, little noise": lambda: x @ slopes + 0.01 * rng.normal(size=size),
    }
    return {"x": x, "y": responses[name]()}


MODELS = {
    "poisson": poisson_regression,
    "logistic": logistic_regression,
    "rare": logistic_regression,
    "linear": linear_regression,
    "linear, little noise": linear_regression,
}


def unblocked(problem):
    """The same log-density written as one sum over all rows, as a function of the flat position."""
    unravel = ravel_pytree(problem.position)[1]

    def log_density(flat):
        at = unravel(flat)
        return problem.model.log_prior(at) + jnp.sum(problem.model.log_likelihood(at, problem.data.arrays))

    return log_density


@pytest.fixture(scope="module")
def blocked():
    """70 rows in blocks of 16, with a remainder."""
    with jax.enable_x64(True):
        return make(linear_regression(NUM_FEATURES), regression_data("linear", size=70), rows_per_block=16)


def test_blocks_add_up_to_second_order(blocked, rng):
    flat = jnp.asarray(rng.normal(size=5))
    log_density = unblocked(blocked)
    found = jax.jit(derivatives)(blocked, flat)
    np.testing.assert_allclose(found.value, log_density(flat), rtol=1e-12)
    np.testing.assert_allclose(found.gradient, jax.grad(log_density)(flat), rtol=1e-11)
    np.testing.assert_allclose(found.hessian, jax.hessian(log_density)(flat), rtol=1e-11, atol=1e-9)


def test_log_density_can_be_differentiated(blocked, rng):
    flat, unravel = jnp.asarray(rng.normal(size=5)), ravel_pytree(blocked.position)[1]

    def log_density(at):
        return 3.0 * full_log_density(blocked.model, blocked.data, at)

    value, gradient = jax.jit(jax.value_and_grad(log_density))(unravel(flat))
    np.testing.assert_allclose(value, 3.0 * unblocked(blocked)(flat), rtol=1e-12)
    np.testing.assert_allclose(ravel_pytree(gradient)[0], 3.0 * jax.grad(unblocked(blocked))(flat), rtol=1e-11)
    same = value_and_gradient(blocked.model, blocked.data, unravel(flat))
    np.testing.assert_allclose(ravel_pytree(same[1])[0], jax.grad(unblocked(blocked))(flat), rtol=1e-11)


def test_several_positions_in_one_pass(blocked, rng):
    flat = jnp.asarray(rng.normal(size=(4, 5)))
    unravel = ravel_pytree(blocked.position)[1]
    together = full_log_densities(blocked.model, blocked.data, jax.vmap(unravel)(flat))
    np.testing.assert_allclose(together, [unblocked(blocked)(one) for one in flat], rtol=1e-12)


def test_nan_is_an_impossible_position(blocked):
    broken = Model(lambda position: jnp.nan * position, lambda position, batch: jnp.zeros(batch["y"].shape))
    assert full_log_density(broken, blocked.data, jnp.array(1.0)) == -jnp.inf


def temporary_bytes(log_density, size):
    problem = make(logistic_regression(NUM_FEATURES), regression_data("logistic", size=size), rows_per_block=64)
    gradient = jax.jit(lambda data, position: jax.grad(lambda at: log_density(problem.model, data, at))(position))
    return gradient.lower(problem.data, problem.position).compile().memory_analysis().temp_size_in_bytes


def in_one_piece(model, data, position):
    return model.log_prior(position) + jnp.sum(jnp.exp(jnp.sin(model.log_likelihood(position, data.arrays))))


def test_memory_of_a_gradient_does_not_grow_with_the_rows():
    """Residuals of reverse mode live for one block; all rows at once keep residuals of every row."""
    small, large = 640, 64_000
    assert temporary_bytes(full_log_density, large) <= temporary_bytes(full_log_density, small) + 1_024
    assert temporary_bytes(in_one_piece, large) > 8 * large


@pytest.fixture(scope="module", params=MODELS)
def searched(request):
    with jax.enable_x64(True):
        problem = make(MODELS[request.param](NUM_FEATURES), regression_data(request.param))
        return problem, *find(problem, NewtonSearch())


def test_finds_the_mode_from_the_models_own_start(searched, rng):
    """A hundredth of a standard deviation off in any direction is lower, by half its square up to higher orders."""
    problem, state, info = searched
    assert bool(state.has_converged)
    assert int(info.status) == Status.OK.value
    assert int(state.iteration) <= 40
    log_density, gaussian = jax.jit(jax.vmap(unblocked(problem))), approximation_at(state)
    directions = rng.normal(size=(20, len(state.position)))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    ends = gaussian.draws(jnp.asarray(0.01 * directions))
    heights = np.asarray(log_density(jnp.vstack([gaussian.mean, ends])))
    drops = heights[0] - heights[1:]
    rounding = 1e-13 * abs(float(gaussian.log_density_at_mode))
    np.testing.assert_allclose(drops, 0.5 * 0.01**2, rtol=0.05, atol=10 * rounding)


@pytest.mark.full
def test_gaussian_has_the_curvature_of_the_mode(searched, rng):
    problem, state, _ = searched
    gaussian = approximation_at(state)
    factor = np.asarray(gaussian.scale_factor)
    whitened = factor.T @ -np.asarray(jax.jit(jax.hessian(unblocked(problem)))(state.position)) @ factor
    np.testing.assert_allclose(whitened, np.eye(len(factor)), atol=1e-6)
    np.testing.assert_array_equal(factor, np.tril(factor))


def test_counts_passes(searched):
    """Each trial is a pass; each accepted one d + 1 more. The first trial is the start itself."""
    problem, state, info = searched
    per_derivative = problem.data.size * (1 + len(state.position))
    assert num_derivative_evaluations(problem) == per_derivative
    accepted, leftover = divmod(int(info.num_evaluations) - int(state.iteration) * problem.data.size, per_derivative)
    assert leftover == 0
    assert 1 < accepted <= int(state.iteration)


def test_a_mode_far_from_any_prior_mass(poisson_data):
    """From 0 to an intercept above 100, as near to the mode as was asked for."""
    model = poisson_regression(8)
    state, info = find(make(model, poisson_data), NewtonSearch())
    assert int(info.status) == Status.OK.value
    assert float(state.position[0]) > 100

    def log_posterior(beta):
        position = {"beta": beta}
        return model.log_prior(position) + jnp.sum(model.log_likelihood(position, poisson_data))

    gradient, hessian = jax.grad(log_posterior)(state.position), jax.hessian(log_posterior)(state.position)
    decrement = jnp.sqrt(-gradient @ jnp.linalg.solve(hessian, gradient))
    assert float(decrement) < NewtonSearch().tolerance


@pytest.mark.paper_data
def test_paper_poisson_data():
    """From 0 to an intercept of 186."""
    table = datasets.bike_share_counts()
    state, info = find(make(poisson_regression(8), {"x": table.x, "y": table.y}, rows_per_block=20_000), NewtonSearch())
    assert int(info.status) == Status.OK.value
    assert int(state.iteration) < 25
    assert abs(float(state.position[0]) - 186.05) < 0.01


def test_quadratic_takes_a_couple_of_steps(rng):
    data = rng.normal(size=(50, 2)) + 3.0
    state, _ = find(make(gaussian_location(2), data), NewtonSearch(tolerance=1e-10))
    assert int(state.iteration) <= 5
    np.testing.assert_allclose(state.position, data.sum(axis=0) / 51, rtol=1e-10)


def test_says_when_it_ran_out_of_iterations():
    problem = make(poisson_regression(NUM_FEATURES), regression_data("poisson"))
    _, info = find(problem, NewtonSearch(max_iterations=2))
    assert int(info.status) == Status.MODE_NOT_FOUND.value
    assert "initvals" in Status.MODE_NOT_FOUND.message


def one_parameter(log_likelihood, start):
    model = Model(lambda position: jnp.zeros(()), log_likelihood, initial_position=np.array(start))
    return make(model, np.ones(4))


@pytest.mark.parametrize(
    ("log_likelihood", "start", "status"),
    [
        (lambda position, row: jnp.zeros_like(row) * position, 1.0, Status.HESSIAN_NOT_NEGATIVE_DEFINITE),
        (lambda position, row: row * position, 1.0, Status.HESSIAN_NOT_NEGATIVE_DEFINITE),
        (lambda position, row: -row * jnp.abs(position) ** 1.5, 0.0, Status.DERIVATIVES_NOT_FINITE),
    ],
    ids=["flat", "rising without end", "no second derivative"],
)
def test_says_when_there_is_no_peak(log_likelihood, start, status):
    _, info = find(one_parameter(log_likelihood, start), NewtonSearch(max_iterations=10))
    assert int(info.status) == status.value
    assert status.message


def test_leaves_a_saddle(rng):
    """Between two modes the curvature is positive: Newton's own step would go down to the saddle."""

    def two_modes(position, row):
        return -row * (position**2 - 1.0) ** 2

    state, info = find(one_parameter(two_modes, 0.1), NewtonSearch())
    assert int(info.status) == Status.OK.value
    np.testing.assert_allclose(state.position, 1.0, rtol=1e-5)


@pytest.mark.parametrize("options", [{"max_iterations": 0}, {"tolerance": 0.0}])
def test_refuses_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        NewtonSearch(**options)
