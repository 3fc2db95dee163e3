"""The same engine on the workers of Ray."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.data.task import Task
from coreset_mcmc_benchmarks.scale.engine_overhead import measure
from tests.helpers.engine_programs import Derivatives, Trouble, logistic_arrays, logistic_rows, opaque_model

ray = pytest.importorskip("ray")

pytestmark = pytest.mark.slow  # Ray takes half a minute to start

POSITION = np.array([0.3, -0.2, 0.1])
EXPECTED = int(logistic_arrays()["y"].sum())


@pytest.fixture(scope="module")
def two_cores() -> Iterator[None]:
    ray.init(num_cpus=2, include_dashboard=False, logging_level="error", log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    (tmp_path / "released").touch()


@pytest.fixture(scope="module")
def engine(two_cores: None) -> Iterator[cm.Ray]:
    engine = cm.Ray()
    yield engine
    engine.close()


def total(engine: cm.Ray, trouble: Trouble) -> int:
    return int(logistic_rows(engine).scan([Task(trouble)], "a pass with trouble")[0])


def test_workers_give_the_bits_of_one_process_and_keep_rows(engine: cm.Ray, monkeypatch: pytest.MonkeyPatch):
    sent: list[Any] = []
    rows_to_send = engine.rows_to_send
    monkeypatch.setattr(
        engine, "rows_to_send", lambda *arguments: (sent.append(arguments), rows_to_send(*arguments))[1]
    )
    function = Derivatives(opaque_model())
    rows, expected = logistic_rows(engine), logistic_rows().sum(function, POSITION, description="")
    for _ in range(2):
        found = rows.sum(function, POSITION, description="")
        assert all(map(np.array_equal, *map(jax.tree.leaves, (found, expected))))
    assert len(sent) == 6
    assert {engine.ledger.home_of(*key, part) for key in engine.ledger._homes for part in range(6)} == set(
        engine.workers()
    )


def test_a_worker_killed_in_mid_pass_costs_a_retry(engine: cm.Ray, folder: Path):
    before = set(engine.workers())
    assert total(engine, Trouble("kill", 40, folder)) == EXPECTED
    assert (folder / "kill 0").exists()
    assert len(set(engine.workers()) - before) == 1


def test_a_worker_that_hangs_is_replaced(engine: cm.Ray, folder: Path):
    total(engine, Trouble("nothing", -1, folder))
    engine.timeout, before = 5.0, engine.timeout
    assert total(engine, Trouble("hang", 40, folder)) == EXPECTED
    engine.timeout = before


def test_what_a_model_raises_is_raised_here(engine: cm.Ray, folder: Path):
    with pytest.raises(ZeroDivisionError, match="a model that divides by zero") as caught:
        total(engine, Trouble("raise", 40, folder))
    assert type(caught.value) is ZeroDivisionError
    assert any("part 2 of the rows" in note for note in caught.value.__notes__)


def test_a_part_that_ends_every_worker_is_named(two_cores: None, engine: cm.Ray, folder: Path):
    engine.retries, before = 1, engine.retries
    with pytest.raises(cm.RunError, match=r"part 2 of the rows .*coreset-mcmc worker \d+ died.*worker \d+ died"):
        total(engine, Trouble("kill", 40, folder, times=9))
    engine.retries = before


def test_other_versions_are_refused(engine: cm.Ray, folder: Path, monkeypatch: pytest.MonkeyPatch):
    from coreset_mcmc.engines import ray_engine

    monkeypatch.setattr(ray_engine, "versions", lambda: {"coreset-mcmc": "99.0"})
    with pytest.raises(cm.InputError, match=r"expected coreset-mcmc 99.0. Install the same versions"):
        total(engine, Trouble("nothing", -1, folder))


def test_an_empty_pass_is_measured(engine: cm.Ray):
    assert measure(engine, num_parts=20, num_passes=1) > 0.0
