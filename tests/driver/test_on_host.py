"""Steps in plain Python: the driver calls them as they are, counts them, and ends them in the middle of a pass."""

from __future__ import annotations

import os
import signal
from typing import NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.watching import tell
from coreset_mcmc.driver.run import run
from coreset_mcmc.driver.steps import Steps


class State(NamedTuple):
    number: int
    done: bool


class Info(NamedTuple):
    draw: np.ndarray
    num_evaluations: np.ndarray
    status: np.ndarray


class Passes(Steps):
    """Each step passes over ten parts; in step ``broken_at`` somebody presses Ctrl-C half way."""

    name = "passes"
    on_host = True

    def __init__(self, broken_at: int = -1, last: int = 1_000) -> None:
        self.broken_at, self.last = broken_at, last
        self.parts: list[int] = []

    def init(self, key, problem):
        assert problem == "not an array"
        return State(0, done=False)

    def blank_info(self, problem):
        return Info(np.zeros(2), np.int64(0), np.int32(0))

    def step(self, key, state, problem):
        assert not isinstance(state.number, jax.core.Tracer)
        for part in range(10):
            if (state.number, part) == (self.broken_at, 5):
                os.kill(os.getpid(), signal.SIGINT)
            tell("passing", part, 10)
            self.parts.append(part)
        draw = np.asarray(jax.random.uniform(key, (2,)))
        return State(state.number + 1, state.number + 1 >= self.last), Info(draw, np.int64(10), np.int32(0))


def test_history_and_counts_are_as_of_compiled_steps():
    made = run(Passes(), "not an array", jax.random.key(0), num_steps=7)
    assert made.history.draw.shape == (7, 2)
    assert made.num_evaluations == 70
    assert made.step_seconds.shape == (7,)
    assert made.reason == "total reached"


def test_the_key_of_a_step_depends_on_its_number():
    long, short = (run(Passes(), "not an array", jax.random.key(0), num_steps=steps).history.draw for steps in (7, 3))
    np.testing.assert_array_equal(long[:3], short)
    assert np.unique(long).size == 14


def test_they_can_be_done():
    made = run(Passes(last=4), "not an array", jax.random.key(0), num_steps=7)
    assert made.num_steps == 4
    assert made.reason == "converged"


def test_an_interruption_ends_the_pass_and_keeps_the_steps_before():
    method = Passes(broken_at=3)
    made = run(method, "not an array", jax.random.key(0), num_steps=7)
    assert made.is_interrupted
    assert made.history.draw.shape == (3, 2)
    assert method.parts[-5:] == [0, 1, 2, 3, 4]


def test_without_a_single_step_the_start_is_returned():
    """What that is worth is up to whoever asked: weights to start from are, no draws are not."""
    made = run(Passes(broken_at=0), "not an array", jax.random.key(0), num_steps=7)
    assert made.is_interrupted
    assert made.num_steps == 0 == made.num_evaluations
    assert made.state == State(0, done=False)
    assert made.history.draw.shape == (0, 2)
