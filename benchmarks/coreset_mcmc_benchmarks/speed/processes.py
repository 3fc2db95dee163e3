"""One process for each task, one after the other, ended when its time is up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from coreset_mcmc_benchmarks.speed import child

COMPILATION_CACHE = "JAX_COMPILATION_CACHE_DIR"


class TimeUpError(Exception):
    """The process took longer than it may."""


class ChildError(Exception):
    """The process ended without an answer; the text is the end of what it said."""


def answer_of(task: dict[str, Any], folder: Path, time_limit: float) -> dict[str, Any]:
    """Run a task in a fresh process and return its answer.

    Two devices let NumPyro move two chains at the same time; a persistent cache of compiled programs would not be cold.
    """
    task_path, answer_path = folder / "task.json", folder / "answer.json"
    answer_path.unlink(missing_ok=True)
    task_path.write_text(json.dumps(task | {"answer": str(answer_path)}))
    environment = {name: value for name, value in os.environ.items() if name != COMPILATION_CACHE}
    if "numpyro" in task["libraries"]:
        flags = environment.get("XLA_FLAGS", "")
        environment["XLA_FLAGS"] = f"{flags} --xla_force_host_platform_device_count=2".strip()
    try:
        ended = subprocess.run(
            [sys.executable, child.__file__, str(task_path)],
            env=environment,
            timeout=time_limit,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise TimeUpError from error
    if not answer_path.exists():
        if ended.returncode == -signal.SIGKILL:
            raise ChildError("killed by the system: not enough memory")
        words = ended.stderr.strip().splitlines()[-1:] or [f"exit code {ended.returncode}"]
        raise ChildError(words[0][:200])
    answer: dict[str, Any] = json.loads(answer_path.read_text())
    return answer
