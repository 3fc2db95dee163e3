"""Checkpoints: the same bits after a resume, after kill -9 too, and a loud refusal of anything else."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.driver.checkpoint import Checkpoint
from coreset_mcmc.driver.fingerprint import describe, fingerprint
from coreset_mcmc.driver.run import run
from coreset_mcmc.methods.coreset_mcmc.optimizers import Adam
from tests.helpers.problems import logistic_data, logistic_problem, small_method
from tests.helpers.trees import leaves_equal

METHODS = {
    "plain": {},
    "minibatch scan": {"subsample_size": 40, "minibatches": cm.RandomOrderScan()},
    "hot start and epochs": {"burn_in": cm.HotStart(), "epochs": cm.DoublingEpochs(first_length=10)},
    "adam": {"optimizer": Adam(0.1, 0.3)},
}


@pytest.mark.full
@pytest.mark.parametrize("options", METHODS.values(), ids=METHODS.keys())
def test_resumed_run_is_identical(tmp_path, key, options):
    problem = logistic_problem()
    method = small_method(**options)
    whole = run(method, problem, key, num_steps=60, record=weights_of, record_every=7)
    settings = {"checkpoint": Checkpoint(tmp_path / "run.npz"), "record": weights_of, "record_every": 7}
    first = run(method, problem, key, num_steps=23, **settings)
    resumed = run(method, problem, key, num_steps=60, **settings)
    assert first.num_steps == 23
    assert leaves_equal(whole.state, resumed.state)
    assert leaves_equal(whole.history, resumed.history)
    assert leaves_equal(whole.record, resumed.record)
    assert whole.num_evaluations == resumed.num_evaluations


def weights_of(state):
    return state.weights


@pytest.mark.full
def test_finished_run_is_not_run_again(tmp_path, key):
    problem, method = logistic_problem(), small_method()
    checkpoint = Checkpoint(tmp_path / "run.npz")
    first = run(method, problem, key, num_steps=60, checkpoint=checkpoint)
    steps = []
    again = run(method, problem, key, num_steps=60, checkpoint=checkpoint, callbacks=[steps.append])
    assert steps == []
    assert leaves_equal(first.state, again.state)


def test_other_configuration_is_refused(tmp_path, key):
    problem, checkpoint = logistic_problem(), Checkpoint(tmp_path / "run.npz")
    method = small_method()
    run(method, problem, key, num_steps=5, checkpoint=checkpoint, fingerprint=fingerprint(method, 1))
    with pytest.raises(cm.CheckpointError, match=r"another configuration.*random_seed must be the same.*delete"):
        run(method, problem, key, num_steps=9, checkpoint=checkpoint, fingerprint=fingerprint(method, 2))


def test_fingerprint_sees_settings_data_and_code_but_not_totals():
    problem = logistic_problem()
    base = fingerprint(small_method(), problem)
    assert base == fingerprint(small_method(num_iterations=99), problem)
    assert base == fingerprint(small_method(), logistic_problem())
    assert base != fingerprint(small_method(optimizer=Adam(0.1)), problem)
    assert base != fingerprint(small_method(), logistic_problem(seed=1))
    one, other = (lambda x: x + 1), (lambda x: x + 2)
    assert describe(one) != describe(other)


@pytest.mark.parametrize("content", [b"", b"not an archive", b"PK\x03\x04 truncated"])
def test_unreadable_file_says_so(tmp_path, key, content):
    path = tmp_path / "run.npz"
    path.write_bytes(content)
    with pytest.raises(cm.CheckpointError, match=r"unreadable file.*Delete it to start over"):
        run(small_method(), logistic_problem(), key, num_steps=5, checkpoint=Checkpoint(path))


def test_no_pickle_and_no_leftovers(tmp_path, key):
    run(small_method(), logistic_problem(), key, num_steps=20, checkpoint=Checkpoint(tmp_path / "run.npz", seconds=0.0))
    assert [path.name for path in tmp_path.iterdir()] == ["run.npz"]
    with np.load(tmp_path / "run.npz", allow_pickle=False) as archive:
        assert all(archive[name].dtype != object for name in archive.files)
        assert json.loads(archive["header"].tobytes())["num_steps"] == 20


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
import jax
import coreset_mcmc.driver.run as driver
from coreset_mcmc.driver.checkpoint import Checkpoint
from tests.helpers.problems import logistic_problem, small_method
driver.CHUNK_SECONDS = 1e-9
with jax.enable_x64(True):
    problem = logistic_problem()
driver.run(
    small_method(num_iterations=10**9), problem, jax.random.key(0), num_steps=10**9,
    checkpoint=Checkpoint(sys.argv[2], seconds=0.0),
)
"""


@pytest.mark.full
def test_kill_and_resume_gives_the_same_bits(tmp_path):
    """A process that saves all the time is killed at an arbitrary moment; what is left resumes exactly."""
    path = tmp_path / "run.npz"
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(Path(__file__).parents[2]), str(path)])
    try:
        deadline = time.monotonic() + 120
        while saved_steps(path) < 20:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    reached = saved_steps(path)
    total, method, problem = reached + 15, small_method(num_iterations=10**9), logistic_problem()
    resumed = run(method, problem, jax.random.key(0), num_steps=total, checkpoint=Checkpoint(path))
    whole = run(method, problem, jax.random.key(0), num_steps=total)
    assert leaves_equal(whole.state, resumed.state)
    assert leaves_equal(whole.history, resumed.history)


def saved_steps(path):
    """The number of steps in a checkpoint that is being replaced all the time; it must always be readable."""
    if not path.exists():
        return 0
    with np.load(path, allow_pickle=False) as archive:
        return json.loads(archive["header"].tobytes())["num_steps"]


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:The (smallest|largest|estimated):UserWarning")
def test_fit_resumes_from_its_folder(tmp_path):
    settings = {
        "coreset_size": 30,
        "draws": 40,
        "tune": 10,
        "chains": 2,
        "random_seed": 3,
        "progressbar": False,
        "method": small_method(num_iterations=40),
        "checkpoint": tmp_path / "run",
    }
    model, data = cm.models.logistic_regression(2), logistic_data()
    first = cm.fit(model, data, **settings)
    again = cm.fit(model, data, **settings)
    fresh = cm.fit(model, data, **{**settings, "checkpoint": None})
    for other in (again, fresh):
        np.testing.assert_array_equal(first.coreset.weights, other.coreset.weights)
        np.testing.assert_array_equal(first.posterior["beta"].to_numpy(), other.posterior["beta"].to_numpy())
    with pytest.raises(cm.CheckpointError, match="another configuration"):
        cm.fit(model, data, **{**settings, "random_seed": 4})
