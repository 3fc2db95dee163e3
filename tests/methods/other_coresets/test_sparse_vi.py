"""Sparse variational inference: the greedy choice against brute force, and a KL that falls with each row."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coreset_mcmc import InputError, Model, RunError
from coreset_mcmc.data import ArrayData
from coreset_mcmc.data.selection import Given
from coreset_mcmc.driver.compiled import num_compiled_programs
from coreset_mcmc.driver.run import run
from coreset_mcmc.kernels import GaussianAutoregression, HitAndRunSlice, RandomWalk
from coreset_mcmc.methods import SparseVI
from coreset_mcmc.methods.other_coresets import sparse_vi
from coreset_mcmc.models import gaussian_location
from coreset_mcmc.models.gaussian_location import coreset_kl
from coreset_mcmc.posterior.problem import make_problem, starting_positions
from coreset_mcmc.posterior.target import CoresetTarget
from tests.helpers.problems import logistic_problem

pytestmark = pytest.mark.full

DIM, SIZE, CORESET_SIZE, NUM_CHAINS = 3, 400, 12, 10


def gaussian_problem(data, coreset_size=CORESET_SIZE):
    selected = Given(np.arange(coreset_size)).select(np.random.default_rng(0), data, len(data), None)
    positions = starting_positions(gaussian_location(DIM), jax.random.key(0), NUM_CHAINS)
    return make_problem(gaussian_location(DIM), ArrayData(jnp.asarray(data), rows_per_block=64), selected, positions)


def normal_data(seed):
    return np.random.default_rng(seed).normal(size=(SIZE, DIM)) + 1.0


def repeated_data(seed):
    """d + 1 distinct rows, all of them needed, each repeated in random order."""
    generator = np.random.default_rng(seed)
    distinct = generator.normal(size=(DIM + 1, DIM))
    return distinct[generator.permutation(np.arange(SIZE) % (DIM + 1))]


METHOD = SparseVI(GaussianAutoregression(0.0), num_draws=100)


def train(method, problem, key, num_steps=None):
    method.check(problem)
    steps = method.max_steps if num_steps is None else num_steps
    return run(method, problem, key, num_steps=steps, record=rows_and_weights)


def rows_and_weights(state):
    return state.indices, state.weights


def kl_path(problem, record):
    data = problem.data.arrays
    return np.array([float(coreset_kl(data[rows], weights, data)) for rows, weights in zip(*record, strict=True)])


class TestChoice:
    def brute_force(self, problem, positions, indices, weights):
        values = np.stack([problem.data.arrays @ theta - 0.5 * theta @ theta for theta in positions])
        values -= values.mean(axis=0)
        residual = values.sum(axis=1) - values[:, indices] @ weights
        return residual @ values / np.linalg.norm(values, axis=0), residual

    def choose(self, problem, positions, indices, weights):
        """With ``indices`` taken, and the other places of the state empty."""
        num_rows = len(indices)
        state = sparse_vi.SparseVIState(
            indices=jnp.zeros(CORESET_SIZE, jnp.int32).at[:num_rows].set(indices.astype(np.int32)),
            weights=jnp.zeros(CORESET_SIZE).at[:num_rows].set(weights),
            num_rows=jnp.asarray(num_rows, jnp.int32),
            chains=(),
            num_additions=jnp.zeros((), jnp.int32),
            done=jnp.array(False),
        )
        target = CoresetTarget(problem.data.take(state.indices), state.weights, problem.model)
        return jax.jit(sparse_vi._choose)(problem, target, {"theta": jnp.asarray(positions)}, state)

    def test_is_the_most_aligned_row_of_all(self, rng):
        problem = gaussian_problem(normal_data(0))
        positions = rng.normal(size=(50, DIM))
        indices, weights = np.array([3, 250]), np.array([20.0, 40.0])
        scores, residual = self.brute_force(problem, positions, indices, weights)
        chosen = self.choose(problem, positions, indices, weights)
        assert chosen.row == np.argmax(scores)
        assert (bool(chosen.is_new), int(chosen.place)) == (True, 2)
        np.testing.assert_allclose(chosen.kl_estimate, 0.5 * residual.var(ddof=1), rtol=1e-10)

    def test_a_row_with_far_too_much_weight_is_chosen_again(self, rng):
        """Its alignment is the most negative; by absolute value it beats all others, and it keeps its place."""
        problem = gaussian_problem(normal_data(0))
        positions = rng.normal(size=(50, DIM))
        indices, weights = np.array([3, 250]), np.array([2_000.0, 0.0])
        scores, _ = self.brute_force(problem, positions, indices, weights)
        assert scores[3] < 0
        chosen = self.choose(problem, positions, indices, weights)
        assert (int(chosen.row), int(chosen.place), bool(chosen.is_new)) == (3, 0, False)

    def test_a_copy_of_a_row_that_is_in_is_not_added(self, rng):
        problem = gaussian_problem(repeated_data(0))
        positions = rng.normal(size=(50, DIM))
        scores, _ = self.brute_force(problem, positions, np.array([0]), np.array([0.0]))
        best = np.flatnonzero(scores > scores.max() * (1 - 1e-9))
        assert len(best) == SIZE // (DIM + 1)
        chosen = self.choose(problem, positions, best[-1:], np.array([0.0]))
        assert (int(chosen.row), bool(chosen.is_new)) == (best[-1], False)

    def test_a_row_that_says_nothing_is_never_chosen(self):
        values = jnp.array([[1.0, 0.0, -1.0], [-1.0, 0.0, 1.0]])
        scores = sparse_vi._alignment(values, jnp.array([1.0, -1.0]))
        np.testing.assert_allclose(scores, [2**0.5, -np.inf, -(2**0.5)], rtol=1e-12)


@pytest.fixture(scope="module")
def gaussian_run():
    with jax.enable_x64(True):
        problem = gaussian_problem(normal_data(0))
        return problem, train(METHOD, problem, jax.random.key(0))


class TestGaussian:
    def test_kl_falls_as_rows_are_added(self, gaussian_run):
        """From the prior to far below uniform weights on as many rows; never up by more than a tenth on the way."""
        problem, trained = gaussian_run
        data = problem.data.arrays
        prior = float(coreset_kl(problem.rows, jnp.zeros(CORESET_SIZE), data))
        uniform = float(coreset_kl(problem.rows, problem.initial_weights, data))
        path = kl_path(problem, trained.record)
        assert path[0] < prior
        assert path[3] < 0.1 * path[0]
        assert path[-1] < 0.01 * min(uniform, path[0])
        assert (path[1:] < 1.1 * path[:-1] + 0.01).all()

    def test_takes_one_place_at_a_time(self, gaussian_run):
        _, trained = gaussian_run
        assert trained.num_steps == CORESET_SIZE
        assert trained.reason == "converged"
        num_rows = trained.history.num_rows
        assert num_rows[0] == 1
        assert set(np.diff(num_rows)) <= {0, 1}
        for indices, weights, count in zip(*trained.record, num_rows, strict=True):
            assert (weights >= 0).all()
            assert not weights[count:].any()
            assert len(set(indices[:count].tolist())) == count

    def test_finish_leaves_unused_places_out(self, gaussian_run):
        problem, trained = gaussian_run
        count = 5
        state = trained.state._replace(num_rows=jnp.asarray(count))
        result = METHOD.finish(state, problem, kernel=HitAndRunSlice(), num_chains=4)
        np.testing.assert_array_equal(result.coreset.indices, trained.state.indices[:count])
        np.testing.assert_array_equal(result.coreset.weights, trained.state.weights[:count])
        np.testing.assert_array_equal(result.problem.target.rows, problem.data.arrays[trained.state.indices[:count]])
        assert isinstance(result.sampler.kernel, HitAndRunSlice)

    def test_finish_before_the_first_row_is_the_prior(self, gaussian_run):
        problem, _ = gaussian_run
        result = METHOD.finish(METHOD.init(jax.random.key(0), problem), problem, kernel=None, num_chains=2)
        assert result.coreset.weights.tolist() == [0.0]

    def test_describes_its_progress(self, gaussian_run):
        _, trained = gaussian_run
        assert METHOD.describe(trained.history).startswith(f"{trained.history.num_rows[-1]} rows, estimated KL")

    def test_repeated_data_give_one_place_to_each_distinct_row(self, key, seed):
        """Twelve additions for d + 1 = 4 distinct rows, all needed: the later ones add no copy but go on training."""
        problem = gaussian_problem(repeated_data(seed))
        trained = train(METHOD, problem, key)
        assert trained.history.num_rows[-1] == DIM + 1
        chosen = np.asarray(problem.data.arrays)[np.asarray(trained.state.indices)[: DIM + 1]]
        assert len(np.unique(chosen, axis=0)) == DIM + 1
        path = kl_path(problem, trained.record)
        assert path[-1] < 0.2 * path[DIM]
        assert path[-1] < 0.01 * path[0]


COUNTED = SparseVI(RandomWalk(0.1), coreset_size=4, num_draws=20, num_updates=5, num_chains=10, subsample_size=50)


def test_evaluations_are_counted_exactly(key):
    """Of a random walk, one for each step; two passes over the data for a choice, a minibatch for each update."""
    trained = train(COUNTED, gaussian_problem(normal_data(0)), key)
    choice = 4 * 20 + 20 * (2 * SIZE + 4)
    update = 10 * (4 + 4 + 50)
    assert trained.history.num_evaluations.tolist() == [choice + 5 * update] * 4
    assert trained.num_evaluations == 10 * 4 + 4 * (choice + 5 * update)


def test_numbers_do_not_compile_again(key):
    train(COUNTED, gaussian_problem(normal_data(0)), key)
    before = num_compiled_programs()
    changed = replace(COUNTED, kernel=RandomWalk(0.3), num_updates=7, learning_rate=0.05)
    train(changed, gaussian_problem(normal_data(1)), jax.random.key(3))
    assert num_compiled_programs() == before


def test_same_seed_same_bits(key):
    problem = gaussian_problem(normal_data(0))
    one, same, other = (train(COUNTED, problem, k) for k in (key, key, jax.random.key(99)))
    np.testing.assert_array_equal(one.state.weights, same.state.weights)
    assert not np.array_equal(one.state.weights, other.state.weights)


def test_its_own_size_comes_before_that_of_the_problem():
    problem = gaussian_problem(normal_data(0))
    assert METHOD.size_of(problem) == CORESET_SIZE
    assert COUNTED.size_of(problem) == COUNTED.max_steps == 4
    assert METHOD.max_steps >= CORESET_SIZE


def test_a_subsample_larger_than_the_data_is_all_of_them():
    problem = gaussian_problem(normal_data(0))
    assert replace(COUNTED, subsample_size=10 * SIZE)._num_rows(problem) == SIZE
    assert replace(COUNTED, subsample_size=None)._num_rows(problem) == SIZE


def test_a_likelihood_that_is_not_finite_ends_the_run(key):
    def log_likelihood(position, batch):
        return jnp.where(position["theta"][0] > 0.1, jnp.nan, 0.0) * batch[:, 0]

    model = Model(lambda position: -0.5 * jnp.sum(position["theta"] ** 2), log_likelihood, {"theta": np.zeros(DIM)})
    problem = replace(gaussian_problem(normal_data(0)), model=model)
    with pytest.raises(RunError, match=r"sparse-vi, step \d+: the gradient estimate is NaN"):
        train(replace(COUNTED, kernel=RandomWalk(1.0)), problem, key)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"coreset_size": 0}, "coreset_size"),
        ({"num_chains": 1}, "num_chains"),
        ({"num_draws": 0}, "num_draws"),
        ({"num_draws": 15}, "multiple of the 10 chains"),
        ({"num_updates": 0}, "num_updates"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"subsample_size": 1}, "subsample_size"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        SparseVI(**options)


def test_what_the_problem_does_not_allow_is_refused():
    with pytest.raises(InputError, match=r"coreset_size.*400 rows"):
        SparseVI(coreset_size=SIZE + 1).check(gaussian_problem(normal_data(0)))
    with pytest.raises(InputError, match="gaussian_location"):
        SparseVI(GaussianAutoregression()).check(logistic_problem())
