"""What is made ready while training compiles."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.run import num_compiled_programs


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
    assert num_compiled_programs() == before + 2
