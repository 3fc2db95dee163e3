"""The search for the mode of the full posterior, and the Gaussian there."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import cho_factor

from coreset_mcmc import datasets
from coreset_mcmc.core.status import Status
from coreset_mcmc.models import gaussian_location, poisson_regression
from coreset_mcmc.posterior import newton
from coreset_mcmc.posterior.full import num_derivative_evaluations
from coreset_mcmc.posterior.newton import NewtonSearch, approximation_at, find_mode, newton_decrement
from coreset_mcmc.posterior.second_order import Derivatives
from tests.helpers.no_peak import ROWS, one_parameter, without_a_peak
from tests.helpers.regressions import MODELS, NUM_FEATURES, make, regression_data, unblocked

find = jax.jit(find_mode)


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
    """Each trial evaluates value and derivatives together: d + 1 for each row. The first trial is the start itself."""
    problem, state, info = searched
    per_trial = problem.data.size * (1 + len(state.position))
    assert num_derivative_evaluations(problem) == per_trial
    assert int(info.num_evaluations) == int(state.iteration) * per_trial
    assert int(state.iteration) > 1


@pytest.mark.full
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


@without_a_peak
def test_says_when_there_is_no_peak(log_likelihood, start, status):
    _, info = find(make(one_parameter(log_likelihood, start), ROWS), NewtonSearch(max_iterations=10))
    assert int(info.status) == status.value
    assert status.message


def test_leaves_a_saddle(rng):
    """Between two modes the curvature is positive: Newton's own step would go down to the saddle."""

    def two_modes(position, row):
        return -row * (position**2 - 1.0) ** 2

    state, info = find(make(one_parameter(two_modes, 0.1), ROWS), NewtonSearch())
    assert int(info.status) == Status.OK.value
    np.testing.assert_allclose(state.position, 1.0, rtol=1e-5)


@pytest.mark.parametrize("options", [{"max_iterations": 0}, {"tolerance": 0.0}])
def test_refuses_bad_options(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        NewtonSearch(**options)


@pytest.mark.parametrize("spread", [1.0, 1e6])
def test_units_of_the_parameters_do_not_matter(spread):
    """The local quadratic of parameters from micrometres to megametres is that of the same in metres."""
    units = np.array([1.0 / spread, 1.0, spread])
    curvature = np.array([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 3.0]])
    at = Derivatives(np.array(0.0), np.array([1.0, -2.0, 0.5]) * units, -curvature * np.outer(units, units))
    step = np.linalg.solve(curvature, [1.0, -2.0, 0.5])
    assert float(newton_decrement(at)) == pytest.approx(np.sqrt(step @ [1.0, -2.0, 0.5]))
    gaussian = approximation_at(NewtonSearch().begin(np.zeros(3))._replace(derivatives=at))
    np.testing.assert_allclose(gaussian.mean * units, step, rtol=1e-9)
    factor = gaussian.scale_factor * units[:, None]
    np.testing.assert_allclose(factor @ factor.T, np.linalg.inv(curvature), rtol=1e-9)


@pytest.mark.parametrize("num_flat", [0, 1])
def test_a_cholesky_factor_and_eigenvectors_lead_to_the_same_place(rng, monkeypatch, num_flat):
    """In many dimensions, where there is a peak; where there is none eigenvectors serve as before."""
    dim = 30
    root = rng.normal(size=(dim, dim)) * np.geomspace(1e-3, 1e3, dim)
    hessian = -root.T @ root
    hessian[:num_flat, :num_flat] = 1.0
    at = Derivatives(np.float64(0.0), rng.normal(size=dim), hessian)
    search = NewtonSearch()
    state = search.begin(np.zeros(dim))._replace(derivatives=at)
    expected, decrement = search.propose(state), newton_decrement(at)
    called = []
    monkeypatch.setattr(newton, "MANY_DIMENSIONS", dim)
    monkeypatch.setattr(newton, "cho_factor", lambda *args, **options: called.append(1) or cho_factor(*args, **options))
    found = search.propose(state)
    np.testing.assert_allclose(
        found.position, expected.position, rtol=1e-6, atol=1e-9 * np.abs(expected.position).max()
    )
    np.testing.assert_allclose(found.rise, expected.rise, rtol=1e-6)
    np.testing.assert_allclose(newton_decrement(at), decrement, rtol=1e-6)
    assert np.isinf(decrement) == bool(num_flat)
    assert len(called) == (0 if num_flat else 2)


def test_derivatives_that_are_no_numbers_have_no_peak_in_many_dimensions(monkeypatch):
    monkeypatch.setattr(newton, "MANY_DIMENSIONS", 2)
    nothing = np.full(2, np.nan)
    assert newton_decrement(Derivatives(np.float64(0.0), nothing, -np.eye(2))) == np.inf
    assert newton_decrement(Derivatives(np.float64(0.0), np.ones(2), np.full((2, 2), np.nan))) == np.inf
