"""One process for each task, one after the other, ended when its time is up."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from coreset_mcmc_benchmarks.speed import child

COMPILATION_CACHE, PYTENSOR_FLAGS = "JAX_COMPILATION_CACHE_DIR", "PYTENSOR_FLAGS"


class TimeUpError(Exception):
    """The process took longer than it may."""


class ChildError(Exception):
    """The process ended without an answer; the text is the end of what it said."""


def answer_of(task: dict[str, Any], folder: Path, time_limit: float) -> dict[str, Any]:
    """Run a task in a fresh process and return its answer.

    Two devices let a sampler on JAX move two chains at the same time. No compiled program is kept from an earlier run:
    JAX has no persistent cache, and what PyTensor compiles goes to a folder that is empty at the start.
    """
    task_path, answer_path = folder / "task.json", folder / "answer.json"
    answer_path.unlink(missing_ok=True)
    task_path.write_text(json.dumps(task | {"answer": str(answer_path)}))
    environment = {name: value for name, value in os.environ.items() if name != COMPILATION_CACHE}
    if task.get("num_devices", 1) > 1:
        flags = f"{environment.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={task['num_devices']}"
        environment["XLA_FLAGS"] = flags.strip()
    with tempfile.TemporaryDirectory(dir=folder) as compiled:
        kept = [environment.get(PYTENSOR_FLAGS, ""), f"base_compiledir={compiled}"]
        environment[PYTENSOR_FLAGS] = ",".join(filter(None, kept))
        return_code, said = _ended([sys.executable, child.__file__, str(task_path)], environment, time_limit)
    if not answer_path.exists():
        if return_code == -signal.SIGKILL:
            raise ChildError("killed by the system: not enough memory")
        words = said.strip().splitlines()[-1:] or [f"exit code {return_code}"]
        raise ChildError(words[0][:200])
    answer: dict[str, Any] = json.loads(answer_path.read_text())
    return answer


def _ended(command: list[str], environment: dict[str, str], time_limit: float) -> tuple[int, str]:
    """Exit code and what it said as errors; its own workers end with it."""
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            _, said = process.communicate(timeout=time_limit)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise TimeUpError from error
            raise
    return process.returncode, said
