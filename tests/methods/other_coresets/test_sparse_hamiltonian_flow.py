"""Sparse Hamiltonian flows: the map and its volume, the bound it is trained on, training, draws and counts."""

from __future__ import annotations

import dataclasses
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from blackjax.mcmc import integrators
from scipy import stats

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.core.status import Status
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import Uniform
from coreset_mcmc.diagnostics.metrics import two_moment_kl
from coreset_mcmc.driver.checkpoint import Checkpoint
from coreset_mcmc.driver.run import run
from coreset_mcmc.methods.contract import check_needs
from coreset_mcmc.methods.other_coresets.flow import (
    FlowParameters,
    Refreshment,
    log_determinant,
    refresh,
)
from coreset_mcmc.methods.other_coresets.sparse_hamiltonian_flow import SparseHamiltonianFlow
from coreset_mcmc.models import gaussian_location
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.problem import make_problem, starting_positions
from tests.helpers.problems import CORESET_SIZE, SIZE, logistic_problem

pytestmark = pytest.mark.full

NUM_REFRESHMENTS, NUM_LEAPFROG, SUBSAMPLE_SIZE = 3, 4, 20


def small_method(**options):
    settings = {
        "num_refreshments": NUM_REFRESHMENTS,
        "num_leapfrog": NUM_LEAPFROG,
        "num_iterations": 60,
        "learning_rate": 0.02,
        "subsample_size": SUBSAMPLE_SIZE,
        "step_size": 0.02,
    }
    return SparseHamiltonianFlow(**{**settings, **options})


def gaussian_problem(*, size=50, dim=3, coreset_size=12, seed=0):
    rng = np.random.default_rng(seed)
    data = 1.0 + rng.normal(size=(size, dim))
    model = gaussian_location(dim)
    selected = Uniform().select(rng, data, size, coreset_size)
    return make_problem(model, to_array_data(data), selected, starting_positions(model, jax.random.key(seed), 1))


@pytest.fixture(scope="module")
def logistic():
    with jax.enable_x64(True):
        return logistic_problem()


@pytest.fixture(scope="module")
def gaussian():
    with jax.enable_x64(True):
        return gaussian_problem()


def random_parameters(rng, coreset_size, dim, *, step_size, num_refreshments=NUM_REFRESHMENTS):
    shape = (num_refreshments, dim)
    return FlowParameters(
        log_weights=jnp.asarray(rng.normal(size=coreset_size)),
        log_step_sizes=jnp.log(step_size) + 0.3 * jnp.asarray(rng.normal(size=dim)),
        means=jnp.asarray(rng.normal(size=shape)),
        log_scales=0.5 * jnp.asarray(rng.normal(size=shape)),
    )


def idle_parameters(problem, dim):
    """No step, no shift, no scaling: the flow is the identity."""
    zeros = jnp.zeros((NUM_REFRESHMENTS, dim))
    return FlowParameters(jnp.log(problem.initial_weights), jnp.full(dim, -jnp.inf), zeros, zeros)


def jacobian_by_differences(function, point, width=1e-5):
    columns = [
        (function(point + width * unit) - function(point - width * unit)) / (2 * width) for unit in np.eye(len(point))
    ]
    return np.stack(columns, axis=1)


def leaves_equal(first, second):
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True) for a, b in pairs)


# The map


def test_log_determinant_is_that_of_the_whole_map(logistic, rng):
    """Central differences of width 1e-5 are good to about 1e-9 in each entry."""
    flow = small_method().flow(logistic)
    parameters = random_parameters(rng, CORESET_SIZE, 3, step_size=0.1)
    push = jax.jit(flow.push)

    def whole_map(point):
        end = push(parameters, jnp.asarray(point[:3]), jnp.asarray(point[3:]))
        return np.concatenate([end.position, end.momentum])

    jacobian = jacobian_by_differences(whole_map, rng.normal(size=6))
    sign, value = np.linalg.slogdet(jacobian)
    assert sign == 1.0
    np.testing.assert_allclose(value, log_determinant(parameters), atol=1e-6)
    assert abs(value) > 1e-2
    assert np.abs(jacobian[:3, 3:]).max() > 1e-2


def test_leapfrog_steps_are_those_of_blackjax(logistic, rng):
    """The same trajectory as an independent integrator's, and the cached log-density is that of the end."""
    flow = small_method(num_refreshments=1).flow(logistic)
    parameters = random_parameters(rng, CORESET_SIZE, 3, step_size=0.1, num_refreshments=1)._replace(
        log_step_sizes=jnp.full(3, jnp.log(0.1))
    )
    position, momentum = jnp.asarray(rng.normal(size=(2, 3)))
    target = flow.target(parameters)

    def log_density(vector):
        return target.log_density({"beta": vector})

    step = jax.jit(integrators.velocity_verlet(log_density, lambda momentum, position=None: 0.5 * momentum @ momentum))
    state = jax.jit(integrators.new_integrator_state, static_argnums=0)(log_density, position, momentum)
    for _ in range(NUM_LEAPFROG):
        state = step(state, 0.1)
    end = jax.jit(flow.push)(parameters, position, momentum)
    np.testing.assert_allclose(end.position, state.position, rtol=1e-10)
    refreshed = (state.momentum - parameters.means[0]) / jnp.exp(parameters.log_scales[0])
    np.testing.assert_allclose(end.momentum, refreshed, rtol=1e-9)
    np.testing.assert_allclose(end.log_density, log_density(state.position), rtol=1e-10)


def test_each_coordinate_has_its_own_step_size(gaussian, rng):
    flow = small_method().flow(gaussian)
    parameters = random_parameters(rng, 12, 3, step_size=0.1)._replace(
        log_step_sizes=jnp.log(jnp.array([0.1, 0.0, 0.2]))
    )
    position, momentum = flow.start(jax.random.key(0))
    moved = jax.jit(flow.push)(parameters, position, momentum).position != position
    assert moved.tolist() == [True, False, True]


@pytest.mark.parametrize(("warm_start", "is_right"), [("deviation", True), ("variance", False)])
def test_warm_start_standardises_the_momenta_of_its_particles(gaussian, key, warm_start, is_right):
    """The same particles sent through the finished flow: mean 0 and standard deviation 1 after the last refreshment.

    What the paper's experiments did is the broken twin.
    """
    method = small_method(num_particles=40, step_size=0.05, warm_start=warm_start)
    flow = method.flow(gaussian)
    parameters = method.init(key, gaussian).parameters
    positions, momenta = jax.jit(jax.vmap(flow.start))(jax.random.split(key, 40))
    ends = jax.jit(jax.vmap(flow.push, (None, 0, 0)))(parameters, positions, momenta)
    np.testing.assert_allclose(np.mean(ends.momentum, axis=0), 0.0, atol=1e-10)
    is_standard = np.allclose(np.std(ends.momentum, axis=0), 1.0, atol=1e-10)
    assert is_standard == is_right


def test_refreshment_leaves_position_and_gradient(gaussian, key):
    flow = small_method().flow(gaussian)
    parameters = idle_parameters(gaussian, 3)
    point = flow.evaluate(flow.target(parameters), *flow.start(key))
    changed = refresh(point, Refreshment(jnp.ones(3), jnp.log(jnp.full(3, 2.0))))
    np.testing.assert_allclose(changed.momentum, (point.momentum - 1.0) / 2.0)
    assert leaves_equal(changed._replace(momentum=point.momentum), point)


# The bound


@pytest.mark.statistical
def test_idle_flow_bounds_the_evidence_by_its_start(gaussian, key):
    """E_q0[log joint - log q0] of N(m, s^2 I) in closed form; two-sided z-test at a false-alarm rate of 1e-4."""
    location, scale, num_draws = 0.7, 0.4, 4_000
    flow = small_method(initial_location=location, initial_scale=scale).flow(gaussian)
    parameters, data = idle_parameters(gaussian, 3), gaussian.data.arrays
    size, dim = data.shape
    positions, momenta = jax.jit(jax.vmap(flow.start))(jax.random.split(key, num_draws))
    bounds = jax.jit(jax.vmap(lambda position, momentum: flow.elbo(parameters, position, momentum, data, size)))(
        positions, momenta
    )
    second_moment = dim * (location**2 + scale**2)
    entropy = 0.5 * dim * np.log(2 * np.pi * np.e * scale**2)
    expected = location * float(jnp.sum(data)) - 0.5 * (1 + size) * second_moment + entropy
    error = np.std(bounds, ddof=1) / np.sqrt(num_draws)
    assert abs(np.mean(bounds) - expected) < stats.norm.isf(0.5e-4) * error
    assert abs(np.mean(bounds) - (expected - entropy)) > stats.norm.isf(0.5e-4) * error


def test_minibatch_bound_is_unbiased(rng, key):
    """The mean over all minibatches of 2 of 6 rows is the bound on all rows, to rounding; so for the gradient."""
    problem = gaussian_problem(size=6, dim=2, coreset_size=3)
    flow = small_method().flow(problem)
    parameters = random_parameters(rng, 3, 2, step_size=0.1)
    position, momentum = flow.start(key)

    def bound(batch):
        return jax.value_and_grad(flow.elbo)(parameters, position, momentum, batch, 6)

    batches = jnp.asarray(list(itertools.combinations(range(6), 2)))
    values = jax.jit(jax.vmap(lambda rows: bound(problem.data.take(rows))))(batches)
    everything = jax.jit(bound)(problem.data.arrays)
    assert np.ptp(values[0]) > 0.1
    for mean, exact in zip(jax.tree.leaves(values), jax.tree.leaves(everything), strict=True):
        np.testing.assert_allclose(np.mean(mean, axis=0), exact, rtol=1e-10, atol=1e-10)


def test_gradient_of_the_bound_by_differences(logistic, rng, key):
    """Reverse mode through the whole flow against central differences, along random directions in each part."""
    flow = small_method().flow(logistic)
    parameters = random_parameters(rng, CORESET_SIZE, 3, step_size=0.05)
    position, momentum = flow.start(key)
    batch = logistic.data.take(jnp.arange(SUBSAMPLE_SIZE))
    bound = jax.jit(lambda parameters: flow.elbo(parameters, position, momentum, batch, SIZE))
    gradient = jax.jit(jax.grad(bound))(parameters)
    for name in FlowParameters._fields:
        direction = jnp.asarray(rng.normal(size=getattr(parameters, name).shape))

        def shifted(distance, name=name, direction=direction):
            return bound(parameters._replace(**{name: getattr(parameters, name) + distance * direction}))

        slope = (shifted(1e-5) - shifted(-1e-5)) / 2e-5
        np.testing.assert_allclose(jnp.sum(getattr(gradient, name) * direction), slope, rtol=1e-5, atol=1e-5)


# Training and sampling


@pytest.fixture(scope="module")
def trained_on_gaussian(gaussian):
    with jax.enable_x64(True):
        method = small_method(num_iterations=3_000, learning_rate=0.01, step_size=0.02)
        return method, run(method, gaussian, jax.random.key(0), num_steps=method.max_steps)


def flow_draws(method, state, problem, num_draws, seed=1):
    trained = method.finish(state, problem, kernel=None, num_chains=4)
    drawn = run(trained.sampler, trained.problem, jax.random.key(seed), num_steps=num_draws // 4)
    return trained, drawn


@pytest.mark.statistical
def test_training_raises_the_bound_and_finds_the_posterior(gaussian, trained_on_gaussian):
    """The bound rises to the log-evidence, which it cannot pass (z-tests, false alarm 1e-4), and the draws follow.

    What is left of the KL stems from Adam's steps of constant length on noisy gradients; a fiftieth of the start's 43
    is asked for.
    """
    method, training = trained_on_gaussian
    data = np.asarray(gaussian.data.arrays)
    size, dim = data.shape
    mean, covariance = data.sum(axis=0) / (1 + size), np.eye(dim) / (1 + size)
    log_evidence = 0.5 * (1 + size) * mean @ mean + 0.5 * dim * np.log(2 * np.pi / (1 + size))

    early, late = training.history.elbo[:3], training.history.elbo[-1_000:]
    assert late.mean() - early.mean() > 50
    error = stats.norm.isf(1e-4) * late.std() / np.sqrt(len(late))
    assert log_evidence - 1.0 - error < late.mean() < log_evidence + error

    start = init(jax.random.key(0), method, gaussian)
    kl = {}
    for name, state in {"start": start, "trained": training.state}.items():
        _, drawn = flow_draws(method, state, gaussian, 1_000)
        kl[name] = two_moment_kl(drawn.history.position["theta"].reshape(-1, dim), mean, covariance)
    assert kl["start"] > 20
    assert kl["trained"] < kl["start"] / 50


@pytest.mark.statistical
def test_draws_are_independent_in_time_and_between_chains(gaussian, trained_on_gaussian):
    """Correlations of 250 independent pairs have standard error 1/sqrt(250); 7 of them, false alarm below 1e-3."""
    method, training = trained_on_gaussian
    _, drawn = flow_draws(method, training.state, gaussian, 1_000)
    theta = drawn.history.position["theta"][:, :, 0]
    between = [np.corrcoef(theta[:, 0], theta[:, other])[0, 1] for other in (1, 2, 3)]
    lagged = [np.corrcoef(theta[1:, chain], theta[:-1, chain])[0, 1] for chain in range(4)]
    assert np.abs([*between, *lagged]).max() < stats.norm.isf(0.5e-3 / 7) / np.sqrt(249)


def test_sampler_reports_the_coreset_and_its_log_density(gaussian, trained_on_gaussian):
    method, training = trained_on_gaussian
    trained, drawn = flow_draws(method, training.state, gaussian, 40)
    np.testing.assert_array_equal(trained.coreset.indices, gaussian.indices)
    np.testing.assert_allclose(trained.coreset.weights, np.exp(training.state.parameters.log_weights))
    target = gaussian.target(jnp.asarray(trained.coreset.weights))
    expected = jax.vmap(jax.vmap(target.log_density))(drawn.history.position)
    assert drawn.history.position["theta"].shape == (10, 4, 3)
    np.testing.assert_allclose(drawn.history.log_density, expected, rtol=1e-12)
    assert not drawn.history.diverging.any()
    assert (drawn.history.num_steps == NUM_REFRESHMENTS * NUM_LEAPFROG).all()


def test_counts_are_exact(gaussian, trained_on_gaussian):
    """One gradient a leapfrog step and one at the start, once there and once back, and the minibatch."""
    method, training = trained_on_gaussian
    gradients = NUM_REFRESHMENTS * NUM_LEAPFROG + 1
    for_init = 100 * gradients * 12
    each = (2 * gradients - 1) * 12 + SUBSAMPLE_SIZE
    assert method.init_evaluations(gaussian) == for_init
    assert (training.history.num_evaluations == each).all()
    assert training.num_evaluations == for_init + training.num_steps * each
    _, drawn = flow_draws(method, training.state, gaussian, 12)
    assert drawn.num_evaluations == 12 * gradients * 12


def test_resumed_run_is_identical(gaussian, trained_on_gaussian, tmp_path):
    method, _ = trained_on_gaussian
    whole = run(method, gaussian, jax.random.key(3), num_steps=30)
    checkpoint = Checkpoint(tmp_path / "run.npz")
    first = run(method, gaussian, jax.random.key(3), num_steps=11, checkpoint=checkpoint)
    resumed = run(method, gaussian, jax.random.key(3), num_steps=30, checkpoint=checkpoint)
    assert first.num_steps == 11
    assert leaves_equal(whole.state, resumed.state)
    assert leaves_equal(whole.history, resumed.history)
    assert whole.num_evaluations == resumed.num_evaluations


@jax.jit
def init(key, method, problem):
    return method.init(key, problem)


@jax.jit
def step(key, method, state, problem):
    return method.step(key, state, problem)


def test_one_adam_step_moves_every_number_by_the_learning_rate(gaussian, key):
    method = small_method()
    before = init(key, method, gaussian)
    after, info = step(key, method, before, gaussian)
    for old, new in zip(jax.tree.leaves(before.parameters), jax.tree.leaves(after.parameters), strict=True):
        np.testing.assert_allclose(np.abs(new - old), 0.02, rtol=1e-4)
    assert int(info.status) == Status.OK.value


def test_numbers_do_not_compile_again(gaussian, key):
    step(key, small_method(), init(key, small_method(), gaussian), gaussian)
    counts = init._cache_size(), step._cache_size()
    changed = small_method(
        learning_rate=0.1, step_size=0.01, num_iterations=70, initial_location=1.0, initial_scale=2.0
    )
    other = gaussian_problem(seed=1)
    step(key, changed, init(key, changed, other), other)
    assert (init._cache_size(), step._cache_size()) == counts


def test_seed_decides_everything(gaussian):
    def two_steps(init_seed, step_seed):
        state = init(jax.random.key(init_seed), small_method(), gaussian)
        return step(jax.random.key(step_seed), small_method(), state, gaussian)

    one, same, other_particles, other_draw = two_steps(1, 2), two_steps(1, 2), two_steps(3, 2), two_steps(1, 4)
    assert leaves_equal(one, same)
    assert not np.array_equal(one[0].parameters.means, other_particles[0].parameters.means)
    assert one[1].elbo != other_draw[1].elbo


def test_training_ends_after_its_iterations(gaussian, key):
    method = small_method(num_iterations=2)
    state = init(key, method, gaussian)
    first, _ = step(key, method, state, gaussian)
    second, _ = step(key, method, first, gaussian)
    assert [bool(state.done), bool(first.done), bool(second.done)] == [False, False, True]
    assert method.max_steps == 2


# Refusals


def test_overflow_is_reported(gaussian, key):
    """Leapfrog steps of length 1e200 leave the range of doubles."""
    method = small_method(step_size=1e200)
    _, info = step(key, method, init(key, method, gaussian), gaussian)
    assert int(info.status) == Status.GRADIENT_NOT_FINITE.value


def test_discrete_positions_are_refused(logistic):
    position = {"beta": jnp.zeros((1, 3)), "included": jnp.zeros((1, 3), jnp.int32)}
    discrete = dataclasses.replace(logistic, initial_positions=position)
    with pytest.raises(InputError, match=r"included.*discrete"):
        check_needs("sparse-hamiltonian-flow", SparseHamiltonianFlow.needs, discrete)
    check_needs("sparse-hamiltonian-flow", SparseHamiltonianFlow.needs, logistic)


def test_models_without_gradients_are_refused(logistic):
    model = Model(logistic.model.log_prior, logistic.model.log_likelihood, differentiable=False)
    with pytest.raises(InputError, match="gradients"):
        check_needs("sparse-hamiltonian-flow", SparseHamiltonianFlow.needs, dataclasses.replace(logistic, model=model))


@pytest.mark.parametrize(
    "options",
    [
        {"num_refreshments": 0},
        {"num_leapfrog": 0},
        {"num_particles": 1},
        {"learning_rate": 0.0},
        {"step_size": -1.0},
        {"initial_scale": 0.0},
        {"num_iterations": 0},
    ],
    ids=str,
)
def test_bad_arguments_are_refused(options):
    with pytest.raises(InputError, match=next(iter(options))):
        SparseHamiltonianFlow(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"subsample_size": SIZE + 1},
        {"step_size": {"gamma": 1.0}},
        {"initial_scale": {"beta": np.array([1.0, 0.0, 1.0])}},
        {"initial_location": {"beta": np.zeros(7)}},
        {"initial_location": np.nan},
    ],
    ids=str,
)
def test_arguments_that_do_not_fit_the_problem_are_refused(logistic, options):
    with pytest.raises(InputError, match=next(iter(options))):
        small_method(**options).check(logistic)


def test_weights_without_a_logarithm_are_refused(logistic):
    weights = logistic.initial_weights.at[3].set(0.0)
    with pytest.raises(InputError, match="weights: got 1 that"):
        small_method().check(dataclasses.replace(logistic, initial_weights=weights))


def test_settings_may_differ_between_parts_of_the_position(logistic):
    method = small_method(initial_location={"beta": np.arange(3.0)}, step_size={"beta": 0.5}, initial_scale=2.0)
    method.check(logistic)
    flow = method.flow(logistic)
    np.testing.assert_array_equal(flow.location, np.arange(3.0))
    np.testing.assert_array_equal(flow.scale, np.full(3, 2.0))
