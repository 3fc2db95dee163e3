"""Random input: readers tell in words, the watch for started programs works, and random models have a truth."""

from __future__ import annotations

import os

import numpy as np
import pytest

from coreset_mcmc.core.errors import CheckpointError
from coreset_mcmc.verdict import GOOD
from coreset_mcmc_benchmarks.fuzz.command import fuzz_tables
from coreset_mcmc_benchmarks.fuzz.guided import at_random
from coreset_mcmc_benchmarks.fuzz.models import Outcome, drawn
from coreset_mcmc_benchmarks.fuzz.readers import (
    READERS,
    StartedSomethingError,
    bomb,
    checkpoint,
    examples,
    run,
    run_bytes,
    tried,
    warmed,
)


@pytest.mark.parametrize("name", READERS)
def test_readers_tell_in_words(name):
    for content in examples(name):
        tried(warmed(name), content)
    assert at_random(name, 0.5, seed=3).failure == ""


def test_a_file_of_a_fit_can_be_read():
    run(run_bytes())


def test_a_checkpoint_that_claims_too_much_takes_no_memory():
    with pytest.raises(CheckpointError, match="claims the shape"):
        checkpoint(bomb())


@pytest.mark.parametrize(
    "broken", [lambda content: os.system("true"), lambda content: 1 / 0, lambda content: [][len(content)]]
)
def test_broken_readers_are_found(broken):
    with pytest.raises((StartedSomethingError, ZeroDivisionError, IndexError)):
        tried(broken, b"")


def test_what_is_wrong_and_good_is_trouble():
    assert Outcome("", GOOD, 3.0, "").trouble
    assert Outcome("", GOOD, np.nan, "").trouble
    assert Outcome("", "crashed", np.nan, "IndexError").trouble
    assert not Outcome("", GOOD, 0.01, "").trouble
    assert not Outcome("", "do not use", 3.0, "").trouble


def test_random_models_differ_and_have_a_truth():
    some = [drawn(seed) for seed in (1, 2, 3)]
    assert len({made.words for made in some}) == 3
    assert all(np.isfinite(made.problem.reference.mean).all() for made in some)


@pytest.mark.full
def test_random_tables_end_in_words():
    assert fuzz_tables(6, seed=11).trouble == ""
