"""Where the code of a page runs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path

import pytest

import coreset_mcmc as cm
from tests.docs.small_settings import with_small_settings


@pytest.fixture
def in_a_folder(tmp_path, monkeypatch, page) -> Iterator[Path]:
    """Where a page may write. The first fit of the first page trains a coreset; for the others uniform weights and a
    kernel that needs no pilot run, quick to compile, do."""
    monkeypatch.chdir(tmp_path)
    trained = [cm.LeastSquares(num_draws=80, num_chains=2, num_rounds=3)] if page == "README.md" else []
    with_small_settings(monkeypatch, chain(trained, repeat(cm.Uniform(cm.kernels.RandomWalk(0.1)))))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield tmp_path
