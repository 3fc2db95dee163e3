"""Steps that are Python between passes over rows: sums, checkpoints and interruption in mid-pass."""

from __future__ import annotations

import io
import os
import signal
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
import rich
from rich.console import Console

import coreset_mcmc as cm
from coreset_mcmc import RunError
from coreset_mcmc.core.randomness import generator_of
from coreset_mcmc.core.status import Status
from coreset_mcmc.core.watching import watched_by
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.source import ArraySource
from coreset_mcmc.driver.checkpoint import Checkpoint
from coreset_mcmc.driver.compiled import num_compiled_programs
from coreset_mcmc.driver.run import run
from coreset_mcmc.driver.steps import Steps
from tests.helpers.trees import leaves_equal

SIZE, NUM_STEPS = 10_000, 12


class State(NamedTuple):
    total: np.ndarray
    count: np.ndarray
    done: np.ndarray


class Info(NamedTuple):
    noise: np.ndarray
    num_evaluations: np.ndarray
    status: np.ndarray


class Adding(Steps):
    """Each step adds the sum over all rows, times a random number."""

    name = "adding"
    on_host = True

    def __init__(self, sick: int = 10**9) -> None:
        self.sick = sick

    def init(self, key, problem):
        return State(np.zeros(()), np.zeros((), np.int32), np.asarray(False))

    def blank_info(self, problem):
        return Info(np.zeros(()), np.zeros((), np.int64), np.zeros((), np.int32))

    def step(self, key, state, problem):
        noise = generator_of(key).normal()
        total = state.total + noise * problem.sum(_weighted_sum, description="adding")
        count = int(state.count) + 1
        status = Status.MODE_NOT_FOUND if count == self.sick else Status.OK
        moved = State(np.asarray(total), np.asarray(count, np.int32), np.asarray(False))
        info = Info(np.asarray(noise), np.asarray(problem.size, np.int64), np.asarray(status.value, np.int32))
        return moved, info

    def describe(self, info):
        return f"total of {len(info.noise)}"


def _weighted_sum(batch, weights):
    return jnp.dot(batch, weights)


@pytest.fixture
def rows(rng):
    """In three parts."""
    return Rows(ArraySource(rng.normal(1.0, 1.0, size=SIZE)), layout=Layout(SIZE, 256))


def test_every_step_is_taken_and_counted(rows, key):
    before = num_compiled_programs()
    made = run(Adding(), rows, key, num_steps=NUM_STEPS)
    assert made.num_steps == NUM_STEPS == int(made.state.count)
    assert made.reason == "total reached"
    assert made.num_evaluations == NUM_STEPS * SIZE
    assert made.history.noise.shape == made.step_seconds.shape == (NUM_STEPS,)
    np.testing.assert_allclose(made.state.total, made.history.noise.sum() * rows.source.whole().sum(), rtol=1e-9)
    assert isinstance(made.state.total, np.ndarray)
    assert num_compiled_programs() == before, "the driver compiles nothing for them"


def test_a_status_is_an_error_with_the_number_of_the_step(rows, key):
    with pytest.raises(RunError, match=r"adding, step 3: .*mode"):
        run(Adding(sick=3), rows, key, num_steps=NUM_STEPS)


def test_records_and_callbacks(rows, key):
    seen = []

    def callback(event):
        seen.append((event.num_steps, len(event.info.noise)))
        return event.num_steps >= 6

    made = run(
        Adding(), rows, key, num_steps=NUM_STEPS, record=lambda state: state.total, record_every=2, callbacks=[callback]
    )
    assert made.reason == "stopped by a callback"
    assert seen == [(number, 1) for number in range(1, 7)]
    assert made.record.shape == (3,)
    assert made.record[-1] == made.state.total


@pytest.mark.parametrize("num_before", [0, 1, 7])
def test_resumed_run_is_identical(rows, key, tmp_path, num_before):
    whole = run(Adding(), rows, key, num_steps=NUM_STEPS, record=lambda state: state.total, record_every=3)
    settings = {"checkpoint": Checkpoint(tmp_path / "run.npz"), "record": lambda state: state.total, "record_every": 3}
    run(Adding(), rows, key, num_steps=num_before, **settings)
    resumed = run(Adding(), rows, key, num_steps=NUM_STEPS, **settings)
    assert leaves_equal((whole.state, whole.history, whole.record), (resumed.state, resumed.history, resumed.record))
    assert whole.num_evaluations == resumed.num_evaluations
    assert resumed.step_seconds.shape == (NUM_STEPS,)


def interrupting(step, num_done):
    """Ctrl-C after so many rows of the pass of a step."""
    passes = []

    def watch(description, done, total):
        passes.append(done)
        if passes.count(0) == step and done >= num_done:
            os.kill(os.getpid(), signal.SIGINT)

    return watch


def test_interruption_in_mid_pass_keeps_the_steps_before(rows, key, tmp_path):
    """The step that was not over leaves nothing; the run is saved, and goes on to the same bits."""
    whole = run(Adding(), rows, key, num_steps=NUM_STEPS)
    previous, checkpoint = signal.getsignal(signal.SIGINT), Checkpoint(tmp_path / "run.npz")
    with watched_by(interrupting(4, 4_096)):
        stopped = run(Adding(), rows, key, num_steps=NUM_STEPS, checkpoint=checkpoint)
    assert stopped.is_interrupted
    assert stopped.num_steps == int(stopped.state.count) == 3
    assert signal.getsignal(signal.SIGINT) is previous
    resumed = run(Adding(), rows, key, num_steps=NUM_STEPS, checkpoint=checkpoint)
    assert leaves_equal((whole.state, whole.history), (resumed.state, resumed.history))


def test_a_second_interruption_raises(rows, key):
    def watch(description, done, total):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with watched_by(watch), pytest.raises(KeyboardInterrupt):
        run(Adding(), rows, key, num_steps=NUM_STEPS)


def test_progress_shows_steps_and_the_line_of_the_method(rows, key, monkeypatch):
    console = Console(file=io.StringIO(), force_terminal=True, width=160)
    monkeypatch.setattr(rich, "get_console", lambda: console)
    run(Adding(), rows, key, num_steps=NUM_STEPS, progressbar=True, description="adding up")
    shown = console.file.getvalue()
    assert "adding up" in shown
    assert f"{NUM_STEPS}/{NUM_STEPS}" in shown
    assert "total of 1" in shown


def test_precision_outside_is_left_alone(single_precision, key):
    made = run(Adding(), to_rows(np.ones(300)), key, num_steps=2)
    assert made.state.total.dtype == np.float64
    np.testing.assert_allclose(made.state.total, 300 * made.history.noise.sum())
    assert jnp.ones(1).dtype == np.float32


def interrupt_at(description, number):
    """Ctrl-C at the end of the pass of this name and number."""
    passes = []

    def watch(what, done, total):
        if what == description and done == total:
            passes.append(what)
            if len(passes) == number:
                os.kill(os.getpid(), signal.SIGINT)

    return watched_by(watch)


@pytest.mark.full
def test_an_interrupted_pass_of_a_fit():
    """In training, sampling goes on with the weights so far; before the first exact draw there is nothing to return."""
    data = {"y": np.random.default_rng(0).normal(size=600)}
    model = cm.Model(
        lambda position: -0.5 * position["mean"] ** 2,
        lambda position, batch: -0.5 * (batch["y"] - position["mean"]) ** 2,
        {"mean": np.zeros(())},
    )
    settings = {"coreset_size": 20, "draws": 20, "tune": 5, "chains": 2, "random_seed": 0, "progressbar": False}
    method = cm.LeastSquares(num_draws=20, num_chains=2)
    with interrupt_at("sums over all rows", 1), pytest.warns(UserWarning, match="ESS"):
        fit = cm.fit(model, data, method=method, **settings)
    assert fit.training.reason == "interrupted"
    assert fit.is_interrupted
    assert fit.posterior.sizes["draw"] == 20
    for number, message in ((1, None), (2, "before the first draw")):
        with interrupt_at("deciding on all rows", number), pytest.raises(KeyboardInterrupt, match=message):
            fit.exact(draws=10, tune=0, progressbar=False)
    with interrupt_at("deciding on all rows", 3):
        assert fit.exact(draws=10, tune=0, progressbar=False).posterior.sizes["draw"] == 1
