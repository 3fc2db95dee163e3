"""Streamed runs that are killed and resumed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.helpers.code_blocks import ROOT
from tests.helpers.killed_run import NOBODY
from tests.helpers.large_tables import QUICK, in_every_form, same_bits


@pytest.fixture
def in_a_process(tmp_path):
    """Runs in processes of their own, all with the same options of XLA; programs that one has compiled serve the next.

    This process may have other options, which were set too late for it, and those change the last bits.
    """
    environment = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }

    def call(checkpoint, number, *arguments):
        life = [sys.executable, "-m", "tests.helpers.killed_run", checkpoint, str(number), *map(str, arguments)]
        ended = subprocess.run(
            life, cwd=ROOT, env={**os.environ, **environment}, check=False, capture_output=True, text=True
        )
        assert ended.returncode == (0 if checkpoint == NOBODY else -signal.SIGKILL), ended.stdout + ended.stderr

    return call


def num_steps(run):
    """Of training, in its last checkpoint."""
    with np.load(run / "checkpoint" / "training.npz") as saved:
        return json.loads(saved["header"].tobytes())["num_steps"]


@pytest.mark.full
def test_a_run_killed_anywhere_ends_with_the_same_bits(tmp_path, in_a_process):
    """SIGKILL after the first, a middle and the last checkpoint of training, and in sampling, one after the other."""
    tables, whole, run = in_every_form(tmp_path), tmp_path / "whole", tmp_path / "run"
    in_a_process("training.npz", 1, "fit", tables / "parts", *QUICK, "--engine", "stream", "--out", run)
    assert num_steps(run) == 1
    in_a_process("training.npz", 3, "resume", run)
    assert num_steps(run) == 4
    in_a_process("training.npz", 0, "resume", run)
    assert num_steps(run) > 4
    assert not (run / "checkpoint" / "sampling.npz").exists()
    in_a_process("sampling.npz", 2, "resume", run)
    assert (run / "checkpoint" / "sampling.npz").exists()
    assert not (run / "draws.nc").exists()
    in_a_process(NOBODY, 1, "resume", run, "then", "fit", tables / "table.parquet", *QUICK, "--out", whole)
    same_bits(run, whole)
    assert num_steps(run) == num_steps(whole)
