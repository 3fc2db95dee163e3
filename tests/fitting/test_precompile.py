"""What is made ready while training compiles."""

from __future__ import annotations

import threading
from dataclasses import replace

import jax
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data import layout
from coreset_mcmc.data.convert import to_rows
from coreset_mcmc.data.engine import Local
from coreset_mcmc.data.selection import Uniform
from coreset_mcmc.driver.run import run
from coreset_mcmc.fitting import precompile as ahead
from coreset_mcmc.fitting.final_check import check_coreset
from coreset_mcmc.fitting.precompile import Preparation
from coreset_mcmc.methods.least_squares import LeastSquares
from coreset_mcmc.methods.least_squares.state import Phase
from coreset_mcmc.posterior.problem import make_problem, starting_positions
from tests.helpers.compilations import compilations
from tests.helpers.problems import logistic_data

pytestmark = pytest.mark.full

METHOD = LeastSquares(num_draws=40, num_chains=2)
LARGE = {"_summed", "_for_each_row", "_values", "_values_and_sums", "_solve", "by_kernel", "_steps", "_first_state"}
"""Programs that take longer to compile than a blink."""


def logistic_problem(name="precompiled"):
    """A model of its own name has programs of its own."""
    data, model = logistic_data(), replace(cm.models.logistic_regression(2), name=name)
    selected = Uniform().select(np.random.default_rng(0), data, 400, 20)
    return make_problem(model, to_rows(data), selected, starting_positions(model, jax.random.key(0), 2))


def large(compiled):
    return [name for name in compiled if name.removeprefix("jit(").removesuffix(")") in LARGE]


def test_the_model_is_called_in_one_thread_only(monkeypatch):
    """Libraries keep global state while a model is traced, NumPyro its handlers for one.

    Rows come in four leaves that three threads compute on, and programs are compiled by two more.
    """
    threads = set()

    def log_likelihood(position, rows):
        threads.add(threading.current_thread().name)
        return -0.5 * (rows["y"] - position["mean"]) ** 2

    monkeypatch.setattr(layout, "MOST_LEAF_ROWS", 256)
    model = cm.Model(lambda position: -0.5 * position["mean"] ** 2, log_likelihood, {"mean": np.zeros(())})
    data = {"y": np.random.default_rng(0).normal(size=1_000)}
    with pytest.warns(UserWarning, match="ESS"):
        cm.fit(model, data, coreset_size=20, draws=20, tune=5, progressbar=False, random_seed=0, engine=Local(3))
    assert threads == {threading.current_thread().name}


@pytest.mark.parametrize("subsample_size", [None, 64], ids=["sums over all rows", "control variates"])
def test_programs_made_ahead_are_found_again(subsample_size):
    """What was compiled ahead is not compiled a second time, up to the final check.

    The tolerance is so large that no rows are exchanged: that has programs which may never be needed.
    """
    method = replace(METHOD, subsample_size=subsample_size, tolerance=1.0)
    problem = logistic_problem(f"ahead {subsample_size}")
    preparation = Preparation(method, problem, 2)
    with compilations() as made_ahead:
        preparation.before_phase(Phase.MODE)
    assert len(large(made_ahead)) >= 5, "otherwise nothing was prepared"
    with compilations() as compiled:
        training = run(
            method, problem, jax.random.key(0), num_steps=method.max_steps, before_phase=preparation.before_phase
        )
        trained = method.finish(training.state, problem, kernel=None, num_chains=2)
        drawn = run(trained.sampler, trained.problem, jax.random.key(1), num_steps=20)
        check_coreset(problem.model, problem.passes, trained, drawn.history.position, problem.initial_positions)
    phases = {Phase.MODE, Phase.SCORES, Phase.ROUNDS}
    assert phases <= {phase for phase, _ in method.ahead(problem)}
    assert large(compiled) == []
    with compilations() as others:
        run(method, logistic_problem(f"not ahead {subsample_size}"), jax.random.key(0), num_steps=6)
    assert large(others), "what is not prepared is seen"


def test_work_that_fails_ahead_is_left_to_whoever_needs_it(monkeypatch):
    """Nothing is raised in a worker, and the run compiles for itself what is missing."""

    def broken(self, problem):
        yield Phase.MODE, lambda: 1 / 0

    monkeypatch.setattr(LeastSquares, "ahead", broken)
    monkeypatch.setattr(ahead, "trace_ahead", lambda *arguments: lambda: 1 / 0)
    problem = logistic_problem("nothing is ready")
    preparation = Preparation(METHOD, problem, 2)
    training = run(
        METHOD, problem, jax.random.key(0), num_steps=METHOD.max_steps, before_phase=preparation.before_phase
    )
    assert training.reason == "converged"


class Slow:
    """Work that is not done until somebody says so."""

    def __init__(self):
        self.started, self.released, self.is_done = threading.Event(), threading.Event(), False

    def __call__(self):
        self.started.set()
        assert self.released.wait(60)
        self.is_done = True


@pytest.fixture
def slow_rounds(monkeypatch):
    """Programs of rounds take for ever; those of the mode are there at once."""
    slow, ready = Slow(), []

    def prepared(self, problem):
        yield Phase.MODE, lambda: ready.append(True)
        yield Phase.ROUNDS, slow

    monkeypatch.setattr(LeastSquares, "ahead", prepared)
    monkeypatch.setattr(ahead, "trace_ahead", lambda *arguments: lambda: None)
    yield slow, ready
    slow.released.set()


def test_with_very_many_rows_training_begins_before_everything_is_compiled(slow_rounds, monkeypatch):
    """A phase waits for its own programs only."""
    slow, ready = slow_rounds
    monkeypatch.setattr(ahead, "MANY_ROWS", 100)
    preparation = Preparation(METHOD, logistic_problem(), 2)
    preparation.before_phase(Phase.MODE)
    assert ready
    assert slow.started.wait(60)
    assert not slow.is_done
    threading.Timer(0.2, slow.released.set).start()
    preparation.before_phase(Phase.ROUNDS)
    assert slow.is_done


def test_with_fewer_rows_it_waits_for_everything(slow_rounds):
    slow, _ = slow_rounds
    threading.Timer(0.2, slow.released.set).start()
    Preparation(METHOD, logistic_problem(), 2).before_phase(Phase.MODE)
    assert slow.is_done
