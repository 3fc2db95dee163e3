"""Passes on the workers of a Dask cluster, in fair weather and foul."""

from __future__ import annotations

import _thread
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import coreset_mcmc as cm
from coreset_mcmc.core.watching import Stopped, stopped_by, watched_by
from coreset_mcmc.data.one_pass_sample import sample_by_scores
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.task import Task
from coreset_mcmc_benchmarks.scale.engine_overhead import measure
from tests.helpers.engine_frames import COLUMNS, frame_with_another_type, in_partitions, table
from tests.helpers.engine_programs import (
    Derivatives,
    Scores,
    Trouble,
    few_leaves,
    logistic_arrays,
    logistic_rows,
    opaque_model,
)

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.slow  # workers start and die; the page about scale runs a cluster in every run

POSITION = np.array([0.3, -0.2, 0.1])


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    cluster = distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )
    yield cluster
    with suppress(KeyError):  # of its own books, which a killed worker has upset
        cluster.close()


@pytest.fixture(scope="module")
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Where trouble leaves its marks; workers that hang are released in the end."""
    yield tmp_path
    (tmp_path / "released").touch()


@pytest.fixture
def two_workers(cluster: Any, client: Any) -> Any:
    """Who have done something before, so that they answer soon."""
    cluster.scale(2)
    client.wait_for_workers(2, timeout=60)
    client.run(num_programs)
    return client


def everything_of(rows: Rows, model: Any, position: np.ndarray = POSITION) -> list[Any]:
    uniform = rows.take(np.arange(0, rows.size, 9))
    sample = sample_by_scores(
        rows, Scores(model), (position,), (500,), seed=1, uniform_rows=uniform, description="a sample"
    )
    values = list(rows.values(Scores(model), position, description="values"))
    return [rows.sum(Derivatives(model), position, description="a sum"), values, sample]


def wait_until(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.05)
    return False


def same(one: Any, other: Any) -> bool:
    return all(map(np.array_equal, *map(jax.tree.leaves, (one, other))))


def test_one_two_and_three_workers_give_the_bits_of_one_process(cluster: Any, client: Any):
    model = opaque_model()
    here = everything_of(logistic_rows(), model)
    for count in (1, 2, 3):
        cluster.scale(count)
        client.wait_for_workers(count, timeout=60)
        engine = cm.Dask(client)
        wait_until(lambda engine=engine, count=count: len(engine.workers()) == count)
        assert same(everything_of(logistic_rows(engine), model), here)
        used = {engine.ledger.home_of(*key, part) for key in engine.ledger._homes for part in range(6)}
        assert len(used) == count
    assert not same(here, everything_of(logistic_rows(), model, POSITION + 1e-12))
    cluster.scale(2)


def num_programs() -> int:
    """How many a worker has compiled since it was first asked."""
    from tests.helpers.compilations import compiled_from_now_on

    return len(compiled_from_now_on())


def test_workers_compile_once_and_keep_rows(two_workers: Any, monkeypatch: pytest.MonkeyPatch):
    engine, model, sent = cm.Dask(two_workers), opaque_model(), []
    monkeypatch.setattr(engine, "rows_to_send", noting(sent, engine.rows_to_send))
    rows = logistic_rows(engine)
    counts = []
    for step in range(4):
        rows.sum(Derivatives(model), POSITION + step, description="")
        counts.append(two_workers.run(num_programs))
    assert len(sent) == 6
    assert counts[1] == counts[3]
    rows.sum(Derivatives(opaque_model(factor=2.0)), POSITION, description="")
    assert two_workers.run(num_programs) != counts[3]


def noting(notes: list[Any], function: Callable[..., Any]) -> Callable[..., Any]:
    def noted(*arguments: Any) -> Any:
        notes.append(arguments)
        return function(*arguments)

    return noted


def forget() -> None:
    from coreset_mcmc.engines import worker
    from coreset_mcmc.engines.keeping import Parcels

    worker.PARCELS = Parcels()
    worker.ROWS.clear()


def test_workers_that_have_forgotten_ask(two_workers: Any, monkeypatch: pytest.MonkeyPatch):
    engine, sent = cm.Dask(two_workers), []
    monkeypatch.setattr(engine, "rows_to_send", noting(sent, engine.rows_to_send))
    rows, function = logistic_rows(engine), Derivatives(opaque_model())
    first = rows.sum(function, POSITION, description="")
    two_workers.run(forget)
    assert same(rows.sum(function, POSITION, description=""), first)
    assert len(sent) == 12


def test_rows_that_find_no_room_are_sent_again(two_workers: Any, monkeypatch: pytest.MonkeyPatch):
    engine, sent = cm.Dask(two_workers, memory_share=0.0), []
    monkeypatch.setattr(engine, "rows_to_send", noting(sent, engine.rows_to_send))
    rows, function = logistic_rows(engine), Derivatives(opaque_model())
    assert same(rows.sum(function, POSITION, description=""), rows.sum(function, POSITION, description=""))
    assert len(sent) == 12


def total(rows: Rows, trouble: Trouble) -> int:
    return int(rows.scan([Task(trouble)], "a pass with trouble")[0])


EXPECTED = int(logistic_arrays()["y"].sum())


def test_a_worker_killed_in_mid_pass_costs_a_retry(two_workers: Any, folder: Path):
    engine, model = cm.Dask(two_workers), opaque_model()
    rows = logistic_rows(engine)
    before = rows.sum(Derivatives(model), POSITION, description="")
    assert total(rows, Trouble("kill", 40, folder)) == EXPECTED
    assert (folder / "kill 0").exists()
    assert same(rows.sum(Derivatives(model), POSITION, description=""), before)


def test_a_hanging_worker_is_left_alone(two_workers: Any, folder: Path):
    engine = cm.Dask(two_workers, timeout=2.0)
    assert total(logistic_rows(engine), Trouble("hang", 40, folder)) == EXPECTED
    assert len(engine.ledger.silent) == 1


def test_a_part_that_hangs_everywhere_is_named(two_workers: Any, folder: Path):
    engine = cm.Dask(two_workers, timeout=2.0)
    with pytest.raises(
        cm.RunError, match=r"part 2 of the rows \(row 8192 to 12287\).*tcp://.*did not answer within 2 s"
    ):
        total(logistic_rows(engine), Trouble("hang", 40, folder, times=9))


def test_what_a_model_raises_is_raised_here(two_workers: Any, folder: Path):
    with pytest.raises(ZeroDivisionError, match="a model that divides by zero") as caught:
        total(logistic_rows(cm.Dask(two_workers)), Trouble("raise", 40, folder))
    assert any("part 2 of the rows" in note and "tcp://" in note for note in caught.value.__notes__)


def test_files_that_one_worker_cannot_read_are_read_by_another(two_workers: Any, folder: Path):
    assert total(logistic_rows(cm.Dask(two_workers)), Trouble("no file", 40, folder)) == EXPECTED
    with pytest.raises(cm.RunError, match=r"part 3 .*FileNotFoundError: not here"):
        total(logistic_rows(cm.Dask(two_workers, retries=1)), Trouble("no file", 50, folder, times=9))


def is_idle(client: Any) -> bool:
    return wait_until(lambda: not any(client.processing().values()), seconds=5.0)


def test_ctrl_c_while_waiting_cancels_what_is_under_way(two_workers: Any, folder: Path):
    threading.Timer(1.0, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        total(logistic_rows(cm.Dask(two_workers)), Trouble("hang", 0, folder))
    assert is_idle(two_workers)


def test_a_request_to_end_is_heard_while_waiting(two_workers: Any, folder: Path):
    event = threading.Event()
    threading.Timer(1.0, event.set).start()
    with pytest.raises(Stopped), stopped_by(event):
        total(logistic_rows(cm.Dask(two_workers)), Trouble("hang", 0, folder))
    assert is_idle(two_workers)


def test_an_exception_of_whoever_watches_cancels_too(two_workers: Any, folder: Path):
    def watcher(description: str, num_done: int, num_rows: int) -> None:
        if num_done:
            raise LookupError

    with pytest.raises(LookupError) as caught, watched_by(watcher):
        total(logistic_rows(cm.Dask(two_workers)), Trouble("hang", 40, folder))
    assert caught.traceback
    assert is_idle(two_workers)


def test_workers_with_other_versions_are_refused(two_workers: Any, monkeypatch: pytest.MonkeyPatch):
    from coreset_mcmc.engines import dask_engine

    monkeypatch.setattr(dask_engine, "versions", lambda: {"coreset-mcmc": "99.0"})
    with pytest.raises(cm.InputError, match=r"worker tcp://.*expected coreset-mcmc 99.0. Install the same versions"):
        logistic_rows(cm.Dask(two_workers)).sum(Derivatives(opaque_model()), POSITION, description="")


def test_small_parts_are_asked_for_by_the_handful(two_workers: Any, monkeypatch: pytest.MonkeyPatch):
    engine, started = cm.Dask(two_workers), []
    monkeypatch.setattr(engine, "start", noting(started, engine.start))
    assert measure(engine, num_parts=100, num_passes=2) > 0.0
    assert len(started) < 200


def test_workers_read_files_for_themselves_and_once(two_workers: Any, folder: Path):
    frame, function = table(), Derivatives(opaque_model())
    frame.iloc[:9_000].to_parquet(folder / "part-1.parquet")
    frame.iloc[9_000:].to_parquet(folder / "part-2.parquet")
    engine = cm.Dask(two_workers)
    rows = few_leaves(cm.scan_parquet(folder, COLUMNS), engine)
    expected = logistic_rows(engine).sum(function, POSITION, description="")
    assert same(rows.sum(function, POSITION, description=""), expected)
    for path in folder.glob("*.parquet"):
        path.unlink()
    assert same(rows.sum(function, POSITION, description=""), expected)
    two_workers.run(forget)
    with pytest.raises((cm.RunError, cm.InputError), match="part-"):
        rows.sum(function, POSITION, description="")


def test_a_frame_on_a_cluster_gives_the_bits_of_arrays_and_is_kept(two_workers: Any, folder: Path):
    function = Derivatives(opaque_model())
    expected = logistic_rows(cm.Dask(two_workers)).sum(function, POSITION, description="")
    source = cm.source_from_dask(in_partitions(table(), folder), COLUMNS)
    computed, engine = [], cm.Dask(two_workers)
    for user in (engine, engine, cm.Dask(two_workers, memory_share=0.0)):
        assert same(few_leaves(source, user).sum(function, POSITION, description=""), expected)
        computed.append((folder / "computed").stat().st_size)
    assert computed[0] == computed[1]
    assert computed[1] < computed[2]


def test_a_partition_of_another_type_is_named(two_workers: Any):
    rows = few_leaves(frame_with_another_type(), cm.Dask(two_workers))
    with pytest.raises(cm.InputError, match=r"partition \d of the Dask DataFrame, column 'y': got type float64"):
        rows.sum(Derivatives(opaque_model()), POSITION, description="")


def test_what_is_no_cluster_is_refused():
    quick = {"distributed.comm.timeouts.connect": "1s"}
    with dask.config.set(quick), pytest.raises(cm.InputError, match="address of a scheduler that runs"):
        cm.Dask("tcp://127.0.0.1:1")
