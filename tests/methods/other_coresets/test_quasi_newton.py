"""Quasi-Newton coresets: exact in one step where theory says so, close to the posterior where rows suffice."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize

from coreset_mcmc import InputError, Model, RunError
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import Given
from coreset_mcmc.data.selection import Uniform as UniformRows
from coreset_mcmc.diagnostics.metrics import bulk_ess, two_moment_kl, two_moment_kl_floor
from coreset_mcmc.driver.compiled import num_compiled_programs
from coreset_mcmc.driver.run import run
from coreset_mcmc.kernels import GaussianAutoregression, HitAndRunSlice, RandomWalk
from coreset_mcmc.kernels.base import init_chains
from coreset_mcmc.methods import QuasiNewton, Uniform
from coreset_mcmc.methods.draws import collect_draws
from coreset_mcmc.methods.other_coresets import quasi_newton
from coreset_mcmc.models import gaussian_location, logistic_regression
from coreset_mcmc.models.gaussian_location import coreset_kl
from coreset_mcmc.posterior.problem import make_problem, starting_positions
from tests.helpers.problems import NUM_FEATURES, SIZE, logistic_data

pytestmark = pytest.mark.full

DIM = 3
EXACT = {"kernel": GaussianAutoregression(0.0), "num_draws": 60, "num_iterations": 1}


def gaussian_problem(seed, *, size=500, coreset_size=40, num_chains=1):
    generator = np.random.default_rng(seed)
    data = generator.normal(size=(size, DIM))
    selected = UniformRows().select(generator, data, size, coreset_size)
    positions = starting_positions(gaussian_location(DIM), jax.random.key(seed), num_chains)
    return make_problem(gaussian_location(DIM), to_array_data(data), selected, positions)


def exact_problem(seed):
    """d + 1 distinct rows, each repeated: their log-likelihoods are independent, so w* = multiplicities is unique."""
    generator = np.random.default_rng(seed)
    distinct = generator.normal(size=(DIM + 1, DIM))
    multiplicities = generator.integers(3, 20, size=DIM + 1)
    data = np.repeat(distinct, multiplicities, axis=0)
    first = np.concatenate([[0], np.cumsum(multiplicities)[:-1]])
    selected = Given(first).select(generator, data, len(data), None)
    positions = starting_positions(gaussian_location(DIM), jax.random.key(seed), 1)
    return make_problem(gaussian_location(DIM), to_array_data(data), selected, positions), multiplicities


def train(method, problem, key, **options):
    method.check(problem)
    return run(method, problem, key, num_steps=method.max_steps, **options)


def kl_of(problem, weights):
    return float(coreset_kl(problem.rows, jnp.asarray(weights), problem.data.arrays))


class TestExactCoreset:
    def test_one_step_lands_on_the_multiplicities(self, key, seed):
        """With gamma = 1 the error is that of tau, |w - w*| tau / lambda_min(G), and rounding: both below 1e-6."""
        problem, multiplicities = exact_problem(seed)
        method = QuasiNewton(**EXACT, regularization=1e-13, num_line_searches=0)
        trained = train(method, problem, key)
        assert np.abs(problem.initial_weights - multiplicities).max() > 1
        np.testing.assert_allclose(trained.state.weights, multiplicities, rtol=1e-6)
        assert trained.history.step_size == [1.0]

    def test_a_hessian_that_is_a_sum_does_not(self, key, seed, monkeypatch):
        """The broken twin: with L L' not divided by S the direction is S times too short."""
        right = quasi_newton.regularised_newton_direction
        monkeypatch.setattr(quasi_newton, "regularised_newton_direction", lambda L, r, tau: right(L, r, tau) / len(r))
        problem, multiplicities = exact_problem(seed)
        method = QuasiNewton(**{**EXACT, "num_draws": 61}, regularization=1e-13, num_line_searches=0)
        trained = train(method, problem, key)
        assert (
            np.abs(trained.state.weights - multiplicities).max()
            > 0.9 * np.abs(problem.initial_weights - multiplicities).max()
        )

    def test_a_direction_too_long_is_never_taken_untested(self, key, seed, monkeypatch):
        """With the gradient a sum over the S = 62 draws, gamma = 1 overshoots; two trials do not get to 1/62."""
        right = quasi_newton.regularised_newton_direction
        monkeypatch.setattr(quasi_newton, "regularised_newton_direction", lambda L, r, tau: right(L, r, tau) * len(r))
        problem, _ = exact_problem(seed)
        method = QuasiNewton(**{**EXACT, "num_draws": 62, "num_iterations": 3}, regularization=1e-6)
        found = train(method, problem, key)
        assert (found.history.step_size < 0.1).all()
        given_up = train(replace(method, max_trials=2), problem, key)
        assert (given_up.history.step_size == 0).all()
        np.testing.assert_array_equal(given_up.state.weights, problem.initial_weights)
        assert given_up.state.step_size == 1.0


class TestDirection:
    def test_solves_the_regularised_equations(self, rng):
        values, residual = rng.normal(size=(30, 7)), rng.normal(size=30)
        direction = quasi_newton.regularised_newton_direction(values, residual, 0.3)
        hessian, gradient = values.T @ values / 30, values.T @ residual / 30
        np.testing.assert_allclose((hessian + 0.3 * np.eye(7)) @ direction, -gradient, rtol=1e-10, atol=1e-12)

    def test_more_rows_than_draws(self, rng):
        values, residual = rng.normal(size=(5, 12)), rng.normal(size=5)
        direction = quasi_newton.regularised_newton_direction(values, residual, 0.01)
        hessian, gradient = values.T @ values / 5, values.T @ residual / 5
        np.testing.assert_allclose((hessian + 0.01 * np.eye(12)) @ direction, -gradient, rtol=1e-8, atol=1e-10)


def line(weights, direction, slope, bend):
    return quasi_newton._Quadratic(*(jnp.asarray(part, float) for part in (weights, direction, slope, bend)))


class TestLineSearch:
    def test_slope_ratio_is_that_of_the_projected_gradient(self, rng):
        """Against L'(L w' - T) / S evaluated anew at the projected point."""
        values, totals = rng.normal(size=(30, 4)), rng.normal(size=30)
        weights = np.array([0.5, 0.0, 2.0, 1.0])
        direction = np.array([-1.0, -0.3, 0.4, 0.2])

        def gradient(at):
            return values.T @ (values @ at - totals) / 30

        bend = values.T @ values @ direction / 30
        search = line(weights, direction, gradient(weights) @ direction, bend)
        expected = gradient(np.maximum(weights + 0.8 * direction, 0)) @ direction / (gradient(weights) @ direction)
        np.testing.assert_allclose(search.slope_ratio(jnp.asarray(0.8)), expected, rtol=1e-12)

    def test_takes_one_if_one_passes(self):
        step_size, is_found = quasi_newton.line_search(line([5.0], [1.0], -1.0, [0.5]), jnp.ones(()), 1)
        assert (step_size, is_found) == (1.0, True)

    @pytest.mark.parametrize(("curvature", "expected"), [(1.2, 1.5**-1), (40.0, 1.5**-10), (0.05, None)])
    def test_takes_the_first_that_passes(self, curvature, expected):
        """On a line of ratio 1 - gamma c: too short if c < 0.1, and 1.5^-j is the first below 1/c otherwise."""
        search = line([5.0], [1.0], -1.0, [curvature])
        step_size, is_found = quasi_newton.line_search(search, jnp.ones(()), 20)
        assert bool(is_found) == (expected is not None)
        if expected is not None:
            np.testing.assert_allclose(step_size, expected, rtol=1e-12)

    def test_gives_up_after_so_many_trials(self):
        search = line([5.0], [1.0], -1.0, [40.0])
        assert not quasi_newton.line_search(search, jnp.ones(()), 10)[1]
        assert quasi_newton.line_search(search, jnp.ones(()), 11)[1]

    def test_a_step_below_zero_everywhere_is_shrunk(self):
        search = line([0.1, 0.05], [-1.0, -1.0], -1.0, [0.1, 0.1])
        np.testing.assert_allclose(quasi_newton._not_all_negative(search, jnp.ones(())), 1.5**-6, rtol=1e-12)
        at_zero = line([0.0, 0.0], [-1.0, -1.0], -1.0, [0.1, 0.1])
        assert np.isfinite(quasi_newton._not_all_negative(at_zero, jnp.ones(())))


@pytest.fixture(scope="module")
def gaussian_run():
    with jax.enable_x64(True):
        problem = gaussian_problem(0)
        method = QuasiNewton(GaussianAutoregression(0.0), num_draws=400, num_iterations=10)
        return problem, train(method, problem, jax.random.key(0), record=lambda state: state.weights)


class TestGaussian:
    def test_recovers_the_posterior_where_uniform_weights_do_not(self, gaussian_run):
        problem, trained = gaussian_run
        assert kl_of(problem, problem.initial_weights) > 1
        assert kl_of(problem, trained.state.weights) < 1e-4
        assert trained.state.weights.min() >= 0

    @pytest.mark.statistical
    def test_kl_estimate_is_close_to_kl(self, gaussian_run):
        """From the third iteration on KL is small, so half a variance of 400 draws has relative deviation sqrt(2/400).

        A quadratic form in Gaussian draws is heavier in the tails, by at most a factor of sqrt(6): five such
        deviations, below 1 in 10 000 for each of 8.
        """
        problem, trained = gaussian_run
        exact = np.array([kl_of(problem, weights) for weights in trained.record[1:-1]])
        assert (exact < 0.05).all()
        np.testing.assert_allclose(trained.history.kl_estimate[2:], exact, rtol=5 * np.sqrt(6 * 2 / 400) + 0.05)

    def test_describes_its_progress(self, gaussian_run):
        assert QuasiNewton().describe(gaussian_run[1].history).startswith("estimated KL")


LOGISTIC = QuasiNewton(HitAndRunSlice(num_directions=3), num_draws=400, num_iterations=8, discard=0.1)


def logistic_problem(coreset_size):
    data = logistic_data(0)
    model = logistic_regression(NUM_FEATURES)
    selected = UniformRows().select(np.random.default_rng(4), data, SIZE, coreset_size)
    return make_problem(model, to_array_data(data), selected, starting_positions(model, jax.random.key(0), 1))


def posterior_moments(data, rng, num_draws=20_000, freedom=8):
    """Mean and covariance of the full posterior by importance sampling around its mode, with a t proposal."""
    design = np.column_stack([np.ones(SIZE), data["x"]])
    sign = 2 * data["y"] - 1

    def log_density(beta):
        return -np.log1p(beta**2).sum(axis=-1) - np.logaddexp(0.0, -sign * (beta @ design.T)).sum(axis=-1)

    found = optimize.minimize(lambda beta: -log_density(beta), np.zeros(design.shape[1]))
    factor = np.linalg.cholesky(found.hess_inv)
    noise = rng.normal(size=(num_draws, found.x.size)) / np.sqrt(rng.chisquare(freedom, (num_draws, 1)) / freedom)
    draws = found.x + noise @ factor.T
    log_proposal = -0.5 * (freedom + found.x.size) * np.log1p((noise**2).sum(axis=1) / freedom)
    log_weights = log_density(draws) - log_proposal
    weights = np.exp(log_weights - log_weights.max())
    weights /= weights.sum()
    assert 1 / np.sum(weights**2) > num_draws / 2
    mean = weights @ draws
    return mean, (draws - mean).T @ (weights[:, None] * (draws - mean))


@pytest.mark.statistical
def test_recovers_a_logistic_posterior(key, rng):
    """M = 100 of N = 400 rows: a two-moment KL below 0.05 besides four times the floor of the draws' effective size.

    Uniform weights on the same rows are off by about d N / (2 M) = 6.
    """
    problem = logistic_problem(100)
    mean, covariance = posterior_moments(logistic_data(0), rng)

    def score(method):
        training = train(method, problem, key)
        result = method.finish(training.state, problem, kernel=None, num_chains=1)
        sampling = run(result.sampler, result.problem, jax.random.fold_in(key, 1), num_steps=1_500)
        draws = np.moveaxis(sampling.history.position["beta"][100:], 0, 1)
        floor = two_moment_kl_floor(3, bulk_ess(draws).min())
        return two_moment_kl(draws, mean, covariance), floor

    measured, floor = score(LOGISTIC)
    assert measured < 0.05 + 4 * floor
    untrained, _ = score(Uniform(LOGISTIC.kernel))
    assert untrained > 0.5


COUNTED = QuasiNewton(RandomWalk(0.1), num_draws=40, num_iterations=3, discard=0.25, num_chains=2)


def test_evaluations_are_counted_exactly(key):
    """A random walk makes one evaluation a step, the restart one for each chain; discarded draws cost no pass."""
    problem = gaussian_problem(0, num_chains=2)
    trained = train(COUNTED, problem, key)
    expected = 40 * (40 + 2) + 30 * (500 + 40)
    assert trained.history.num_evaluations.tolist() == [expected] * 3
    assert trained.num_evaluations == 2 * 40 + 3 * expected
    assert trained.reason == "total reached"
    assert bool(trained.state.done)


def test_numbers_do_not_compile_again(key):
    train(COUNTED, gaussian_problem(0, num_chains=2), key)
    before = num_compiled_programs()
    changed = replace(
        COUNTED,
        kernel=RandomWalk(0.2),
        num_iterations=4,
        regularization=0.5,
        num_line_searches=2,
        max_trials=3,
    )
    train(changed, gaussian_problem(1, num_chains=2), jax.random.key(7))
    assert num_compiled_programs() == before


def test_same_seed_same_bits(key):
    problem = gaussian_problem(0, num_chains=2)
    one, same, other = (train(COUNTED, problem, k) for k in (key, key, jax.random.key(99)))
    np.testing.assert_array_equal(one.state.weights, same.state.weights)
    assert not np.array_equal(one.state.weights, other.state.weights)


def test_line_searches_end_and_their_step_size_stays(key):
    problem = gaussian_problem(0, num_chains=2)
    method = replace(COUNTED, num_iterations=6, num_line_searches=3)
    history = train(method, problem, key).history
    assert set(history.step_size[3:]) == {history.step_size[:3][history.step_size[:3] > 0][-1]}


def test_discarded_draws_are_the_first_and_chains_go_on_from_the_last(key):
    problem = gaussian_problem(0, num_chains=2)
    target = problem.target(problem.initial_weights)
    kernel = GaussianAutoregression(0.0)
    chains = init_chains(kernel, problem.initial_positions, target)
    everything, kept = (collect_draws(kernel, key, chains, target, 10, discarded) for discarded in (0, 4))
    np.testing.assert_array_equal(everything.positions["theta"][8:], kept.positions["theta"])
    np.testing.assert_array_equal(kept.positions["theta"][-2:], kept.chains.position["theta"])
    assert kept.num_evaluations == 20


def test_finish_freezes_the_weights(gaussian_run):
    problem, trained = gaussian_run
    method = QuasiNewton(GaussianAutoregression(0.0))
    result = method.finish(trained.state, problem, kernel=HitAndRunSlice(), num_chains=3)
    np.testing.assert_array_equal(result.coreset.indices, problem.indices)
    np.testing.assert_array_equal(result.coreset.weights, trained.state.weights)
    starts = result.problem.initial_positions["theta"]
    np.testing.assert_array_equal(starts, np.repeat(trained.state.chains.position["theta"], 3, axis=0))
    assert isinstance(result.sampler.kernel, HitAndRunSlice)


def test_a_likelihood_that_is_not_finite_ends_the_run(key):
    def log_likelihood(position, batch):
        return jnp.where(position["theta"][0] > 0.1, jnp.nan, 0.0) * batch[:, 0]

    model = Model(lambda position: -0.5 * jnp.sum(position["theta"] ** 2), log_likelihood, {"theta": np.zeros(DIM)})
    problem = gaussian_problem(0, num_chains=2)
    problem = replace(problem, model=model, initial_weights=jnp.zeros(problem.coreset_size))
    with pytest.raises(RunError, match=r"quasi-newton, step \d+: the gradient estimate is NaN"):
        train(replace(COUNTED, kernel=RandomWalk(1.0)), problem, key)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_draws": 1}, "num_draws"),
        ({"num_draws": 10, "num_chains": 3}, "multiple of the 3 chains"),
        ({"num_chains": 0}, "num_chains"),
        ({"num_iterations": 0}, "num_iterations"),
        ({"regularization": 0.0}, "regularization"),
        ({"num_line_searches": -1}, "num_line_searches"),
        ({"max_trials": 0}, "max_trials"),
        ({"discard": 1.0}, "discard"),
        ({"discard": -0.1}, "discard"),
        ({"num_draws": 4, "discard": 0.8}, "at least two draws"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        QuasiNewton(**options)


def test_a_kernel_that_cannot_sample_the_model_is_refused():
    with pytest.raises(InputError, match="gaussian_location"):
        QuasiNewton(GaussianAutoregression()).check(logistic_problem(30))
