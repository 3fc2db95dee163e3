"""What is made ready while training compiles."""

from __future__ import annotations

import threading
from dataclasses import replace

import jax
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data import to_array_data
from coreset_mcmc.data.selection import Uniform
from coreset_mcmc.driver.compiled import num_compiled_programs
from coreset_mcmc.driver.run import run
from coreset_mcmc.fitting import precompile as ahead
from coreset_mcmc.fitting.precompile import Preparation
from coreset_mcmc.posterior.problem import make_problem, starting_positions

pytestmark = pytest.mark.full


def gaussian_problem():
    data = np.random.default_rng(0).normal(size=(200, 2))
    model = cm.models.gaussian_location(2)
    selected = Uniform().select(np.random.default_rng(0), data, 200, 20)
    return make_problem(model, to_array_data(data), selected, starting_positions(model, jax.random.key(0), 2))


def test_the_model_is_called_in_one_thread_only():
    """Libraries keep global state while a model is traced, NumPyro its handlers for one."""
    threads = set()

    def log_likelihood(position, rows):
        threads.add(threading.current_thread().name)
        return -0.5 * (rows["y"] - position["mean"]) ** 2

    model = cm.Model(lambda position: -0.5 * position["mean"] ** 2, log_likelihood, {"mean": np.zeros(())})
    data = {"y": np.random.default_rng(0).normal(size=200)}
    before = num_compiled_programs()
    with pytest.warns(UserWarning, match="ESS"):
        cm.fit(model, data, coreset_size=20, draws=20, tune=5, progressbar=False, random_seed=0)
    assert threads == {threading.current_thread().name}
    assert num_compiled_programs() == before + 3, "two phases of training, and sampling"


def test_programs_made_ahead_are_found_again():
    """What was compiled ahead is not compiled a second time."""
    method, problem = cm.LeastSquares(num_draws=40, num_chains=2), gaussian_problem()
    preparation = Preparation(method, problem, 2)
    preparation.before_phase(method.phases(problem)[0])
    compiled = []

    def listen(event, seconds, **details):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(details.get("fun_name"))

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        training = run(
            method, problem, jax.random.key(0), num_steps=method.max_steps, before_phase=preparation.before_phase
        )
        trained = method.finish(training.state, problem, kernel=None, num_chains=2)
        run(trained.sampler, trained.problem, jax.random.key(1), num_steps=20)
        num_prepared = len(compiled)
        run(replace(method, num_draws=44), problem, jax.random.key(0), num_steps=2)
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert any("_steps" in str(name) for name in compiled[num_prepared:]), "what is not prepared is seen"
    compiled = compiled[:num_prepared]
    assert not [name for name in compiled if "_steps" in str(name) or "first_state" in str(name)]


def test_work_that_fails_ahead_is_left_to_whoever_needs_it(monkeypatch):
    """Nothing is raised in a worker, and the run compiles for itself what is missing."""

    def broken(*arguments):
        return lambda: 1 / 0

    monkeypatch.setattr(ahead, "trace_ahead", broken)
    monkeypatch.setattr(ahead, "trace_check", broken)
    method, problem = cm.LeastSquares(num_draws=40, num_chains=2), gaussian_problem()
    preparation = Preparation(method, problem, 2)
    training = run(
        method, problem, jax.random.key(0), num_steps=method.max_steps, before_phase=preparation.before_phase
    )
    assert training.reason == "converged"


def test_with_very_many_rows_training_begins_before_everything_is_compiled(monkeypatch):
    """A phase waits for its own program only."""
    released, started = threading.Event(), threading.Event()

    def compile_slowly():
        started.set()
        assert released.wait(60)

    monkeypatch.setattr(ahead, "MANY_ROWS", 100)
    monkeypatch.setattr(ahead, "trace_check", lambda problem: compile_slowly)
    method, problem = cm.LeastSquares(num_draws=40, num_chains=2), gaussian_problem()
    preparation = Preparation(method, problem, 2)
    preparation.before_phase(method.phases(problem)[0])
    assert started.wait(60)
    assert not preparation._parts["check"].done()
    released.set()
    preparation.wait_for_all()
