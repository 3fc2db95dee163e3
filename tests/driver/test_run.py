"""The driver: chunks that do not matter, callbacks, counts, errors, interruption."""

from __future__ import annotations

import io
import os
import signal

import jax
import numpy as np
import pytest
import rich
from rich.console import Console

import coreset_mcmc.driver.run as driver
from coreset_mcmc import DoublingEpochs, HotStart, Model, RunError
from coreset_mcmc.driver.compiled import num_compiled_programs
from coreset_mcmc.driver.run import run
from coreset_mcmc.kernels import RandomWalk
from coreset_mcmc.methods.coreset_mcmc.optimizers import Adam
from coreset_mcmc.methods.sampling import FrozenSampling, SamplingProblem
from tests.helpers.problems import CORESET_SIZE, NUM_CHAINS, SIZE, logistic_problem, small_method
from tests.helpers.trees import leaves_equal


@pytest.fixture
def problem():
    return logistic_problem()


def test_chunks_do_not_change_a_bit(problem, key, monkeypatch):
    whole = run(small_method(), problem, key, num_steps=60)
    monkeypatch.setattr(driver, "CHUNK_SECONDS", 1e-9)
    pieces = run(small_method(), problem, key, num_steps=60)
    assert leaves_equal(whole.state, pieces.state)
    assert leaves_equal(whole.history, pieces.history)


def test_seed_decides_everything(problem):
    one, same, other = (run(small_method(), problem, jax.random.key(s), num_steps=20) for s in (1, 1, 2))
    assert leaves_equal(one.state, same.state)
    assert not leaves_equal(one.state.weights, other.state.weights)


def test_numbers_do_not_compile_again(problem, key):
    run(small_method(optimizer=Adam(0.1)), problem, key, num_steps=5)
    before = num_compiled_programs()
    changed = small_method(optimizer=Adam(0.2, 0.5), num_iterations=70)
    run(changed, logistic_problem(seed=1), jax.random.key(9), num_steps=7)
    assert num_compiled_programs() == before


@pytest.mark.full
@pytest.mark.parametrize("rate", [1, np.float64(0.5), np.int64(1)])
def test_kinds_of_numbers_do_not_compile_again(problem, key, rate):
    run(small_method(optimizer=Adam(0.1)), problem, key, num_steps=5)
    before = num_compiled_programs()
    run(small_method(optimizer=Adam(rate)), problem, key, num_steps=5)
    assert num_compiled_programs() == before


def test_history_has_one_entry_a_step_and_counts_evaluations(problem, key):
    """Each update evaluates K (M + N) rows besides those of the kernel; a random walk makes one evaluation a step."""
    trained = run(small_method(kernel=RandomWalk(0.1)), problem, key, num_steps=60)
    assert trained.num_steps == 60
    assert trained.history.gradient_norm.shape == (60,)
    expected = NUM_CHAINS * (CORESET_SIZE + CORESET_SIZE + SIZE)
    assert (trained.history.num_evaluations == expected).all()
    assert trained.num_evaluations == 60 * expected + NUM_CHAINS * CORESET_SIZE  # and those of the start


def test_what_is_kept_of_a_chunk_is_its_steps_and_not_its_buffers(problem, key, monkeypatch):
    """Chunks of slow steps are short, and their buffers are not: thousands of them took twenty gigabytes."""
    monkeypatch.setattr(driver, "CHUNK_SECONDS", 1e-9)
    kept = []
    run(small_method(), problem, key, num_steps=3, callbacks=[lambda event: kept.append(event.info)])
    leaves = jax.tree.leaves(kept)
    assert len(kept) == 3
    assert all(leaf.flags.owndata and len(leaf) == 1 for leaf in leaves)


def test_minibatches_count_their_rows(problem, key):
    trained = run(small_method(kernel=RandomWalk(0.1), subsample_size=50), problem, key, num_steps=10)
    assert (trained.history.num_evaluations == NUM_CHAINS * (2 * CORESET_SIZE + 50)).all()


@pytest.mark.full
def test_burn_in_and_delay(problem, key):
    """Weights stay for 10 steps, then move at every third."""
    method = small_method(burn_in=10, delay=3, num_iterations=5)
    trained = run(method, problem, key, num_steps=method.max_steps, record=lambda state: state.weights)
    moves = np.flatnonzero(np.any(np.diff(trained.record, axis=0) != 0, axis=1)) + 2
    assert method.max_steps == 25
    assert moves.tolist() == [13, 16, 19, 22, 25]
    np.testing.assert_array_equal(trained.record[0], problem.initial_weights)
    assert np.isfinite(trained.history.gradient_norm).sum() == 5


@pytest.mark.full
def test_hot_start_holds_the_weights_until_the_test_passes(problem, key):
    method = small_method(burn_in=HotStart(), num_iterations=30)
    trained = run(method, problem, key, num_steps=method.max_steps)
    first = int(np.flatnonzero(np.isfinite(trained.history.gradient_norm))[0]) + 1
    assert first % 30 == 0
    assert int(trained.state.num_updates) == 30


@pytest.mark.full
def test_record_every(problem, key):
    kept = run(small_method(), problem, key, num_steps=60, record=lambda state: state.weights, record_every=20)
    assert kept.record.shape == (3, CORESET_SIZE)
    np.testing.assert_array_equal(kept.record[-1], kept.state.weights)


def test_callbacks_see_every_step_and_can_stop(problem, key, monkeypatch):
    monkeypatch.setattr(driver, "CHUNK_SECONDS", 1e-9)
    seen = []

    def callback(event):
        seen.append((event.num_steps, len(event.info.status)))
        return event.num_steps >= 10

    stopped = run(small_method(), problem, key, num_steps=60, callbacks=[callback])
    assert stopped.reason == "stopped by a callback"
    assert stopped.num_steps == seen[-1][0] == sum(count for _, count in seen)
    assert 10 <= stopped.num_steps < 60


def test_interruption_returns_what_there_is(problem, key, monkeypatch):
    monkeypatch.setattr(driver, "CHUNK_SECONDS", 1e-9)
    previous = signal.getsignal(signal.SIGINT)

    def interrupt(event):
        if event.num_steps == 3:
            os.kill(os.getpid(), signal.SIGINT)

    stopped = run(small_method(), problem, key, num_steps=60, callbacks=[interrupt])
    assert stopped.is_interrupted
    assert stopped.num_steps == 3
    assert stopped.history.status.shape == (3,)
    assert signal.getsignal(signal.SIGINT) is previous


def test_a_second_interruption_raises(problem, key, monkeypatch):
    monkeypatch.setattr(driver, "CHUNK_SECONDS", 1e-9)

    def interrupt_twice(event):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(small_method(), problem, key, num_steps=60, callbacks=[interrupt_twice])


@pytest.mark.full
def test_non_finite_gradient_names_the_step_and_the_fix(problem, key):
    """A likelihood that overflows away from the start, as an unprotected exponential would."""

    def breaks_away_from_the_start(position, batch):
        return jax.numpy.where(jax.numpy.abs(position["beta"][0]) > 1e-3, jax.numpy.nan, -1.0) * batch["x"][:, 0]

    def prior(position):
        return -0.5 * jax.numpy.sum(position["beta"] ** 2)

    broken = Model(prior, breaks_away_from_the_start, {"beta": np.zeros(3)})
    zero_weights = jax.numpy.zeros(CORESET_SIZE)
    import dataclasses

    problem = dataclasses.replace(problem, model=broken, initial_weights=zero_weights)
    with pytest.raises(RunError, match=r"coreset-mcmc, step \d+: the gradient estimate is NaN.*initvals"):
        run(small_method(), problem, key, num_steps=60)


@pytest.mark.full
def test_epochs_stop_when_converged_and_return_the_best_weights(problem, key):
    method = small_method(num_iterations=50_000, epochs=DoublingEpochs(first_length=100))
    trained = run(method, problem, key, num_steps=method.max_steps)
    assert trained.reason == "converged"
    assert trained.num_steps < 50_000
    estimates = trained.history.kl_estimate
    checks = estimates[np.isfinite(estimates)]
    assert np.all(np.diff(checks) <= 0)
    assert np.isnan(estimates[:99]).all()
    np.testing.assert_array_equal(method.final_weights(trained.state), trained.state.epochs.best_weights)


def test_epochs_count_their_checks(problem, key):
    schedule = DoublingEpochs(first_length=10, num_draws=8)
    method = small_method(kernel=RandomWalk(0.1), num_iterations=30, epochs=schedule)
    trained = run(method, problem, key, num_steps=30)
    usual = NUM_CHAINS * (2 * CORESET_SIZE + SIZE)
    extra = trained.history.num_evaluations - usual
    assert np.flatnonzero(extra).tolist() == [9, 29]
    assert set(extra[[9, 29]]) == {8 * (SIZE + CORESET_SIZE)}


def test_frozen_sampling_keeps_every_draw(problem, key):
    sampling = SamplingProblem(problem.target(problem.initial_weights), problem.initial_positions)
    drawn = run(FrozenSampling(RandomWalk(0.3)), sampling, key, num_steps=50)
    assert drawn.history.position["beta"].shape == (50, NUM_CHAINS, 3)
    last = jax.vmap(sampling.target.log_density)({"beta": drawn.history.position["beta"][-1]})
    np.testing.assert_allclose(drawn.history.log_density[-1], last, rtol=1e-12)


def test_progress_bar_shows_step_rate_and_live_sign(problem, key, monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=True, width=160)
    monkeypatch.setattr(rich, "get_console", lambda: console)
    run(small_method(), problem, key, num_steps=60, progressbar=True, description="training")
    shown = console.file.getvalue()
    assert "training" in shown
    assert "60/60" in shown
    assert "gradient norm" in shown


def test_global_precision_is_left_alone(single_precision, key):
    with jax.enable_x64(True):
        problem = logistic_problem()
    trained = run(small_method(), problem, key, num_steps=5)
    assert trained.state.weights.dtype == np.float64
    assert jax.numpy.ones(1).dtype == np.float32
