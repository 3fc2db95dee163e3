"""Clusters of Dask that were never right: a scheduler that dies, a worker without the package."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import coreset_mcmc as cm
from coreset_mcmc.data.task import Task
from tests.helpers.engine_programs import Trouble, logistic_rows

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.slow  # these clusters take longer to fail than all others to work

WITHOUT_PACKAGE = "import sys; sys.modules['coreset_mcmc'] = None; from distributed.cli.dask_worker import main; main()"
WITH_PACKAGE = "from distributed.cli.dask_worker import main; main()"


class Processes:
    """A scheduler of its own, and workers."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "scheduler.json"
        self.started: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._run(
            "from distributed.cli.dask_scheduler import main; main()", "--port", "0", "--no-dashboard"
        )

    def add_worker(self, code: str) -> None:
        self._run(code, "--nthreads", "1", "--no-nanny", "--no-dashboard")

    def _run(self, code: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-c", code, *options, "--scheduler-file", str(self.file)]
        path = os.pathsep.join(entry for entry in sys.path if entry)
        with (self.file.parent / f"log {len(self.started)}").open("wb") as log:
            process = subprocess.Popen(
                command, cwd=self.file.parent, env={**os.environ, "PYTHONPATH": path}, stdout=log, stderr=log
            )
        self.started.append(process)
        return process


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    processes = Processes(tmp_path)
    yield processes
    for process in processes.started:
        process.kill()
        process.wait()


@pytest.fixture
def client(processes: Processes) -> Iterator[Any]:
    deadline = time.monotonic() + 60.0
    while not processes.file.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    client = distributed.Client(scheduler_file=str(processes.file), set_as_default=False, timeout=30)
    yield client
    client.close(timeout=1)


def total(client: Any, trouble: Trouble) -> Any:
    return logistic_rows(cm.Dask(client)).scan([Task(trouble)], "a pass")[0]


def test_a_scheduler_killed_in_mid_pass_is_named(processes: Processes, client: Any, tmp_path: Path):
    processes.add_worker(WITH_PACKAGE)
    client.wait_for_workers(1, timeout=60)

    def kill_when_it_hangs() -> None:
        while not (tmp_path / "hang 0").exists():
            time.sleep(0.05)
        processes.scheduler.kill()

    threading.Thread(target=kill_when_it_hangs, daemon=True).start()
    with pytest.raises(
        cm.RunError, match=r"connection to the Dask scheduler at tcp://.* was lost. Start the scheduler"
    ):
        total(client, Trouble("hang", 40, tmp_path))
    start = time.monotonic()
    with pytest.raises(cm.RunError, match="was lost"):
        total(client, Trouble("nothing", -1, tmp_path))
    assert time.monotonic() - start < 5.0


def test_a_worker_without_the_package_is_told_what_to_install(processes: Processes, client: Any, tmp_path: Path):
    processes.add_worker(WITHOUT_PACKAGE)
    client.wait_for_workers(1, timeout=60)
    with pytest.raises(cm.InputError, match=r"worker tcp://.*no module coreset_mcmc.*pip install .coreset-mcmc=="):
        total(client, Trouble("nothing", -1, tmp_path))
