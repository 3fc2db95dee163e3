"""The same in processes of their own, with real signals and real limits of the operating system."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from coreset_mcmc_benchmarks.faults.runs import IN_WORDS, SETTINGS, differs, half_written
from coreset_mcmc_benchmarks.faults.trials import SAME, SEED, Stage, Trial, fresh

POLL, LONGEST = 0.02, 300.0
SMALL_FILE, SMALL_MEMORY = 20_000, 1_400_000_000
"""Bytes that a file, and a process with its address space, may have; a run needs more of both."""

Limit = tuple[int, int]
"""Which resource, and how much of it."""
START = """
import resource
for kind, size in {limits}:
    resource.setrlimit(kind, (size, size))
from coreset_mcmc.commands.cli import app
app(prog_name="coreset-mcmc")
"""


class Child:
    """``coreset-mcmc`` in a process; programs that one has compiled serve the next."""

    def __init__(self, stage: Stage, *arguments: object, limit: Limit | None = None) -> None:
        cache = {
            "JAX_COMPILATION_CACHE_DIR": str(stage.folder / "compiled"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        }
        self.process = subprocess.Popen(
            [sys.executable, "-c", START.format(limits=[] if limit is None else [limit]), *map(str, arguments)],
            env={**os.environ, **cache},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def ended(self) -> tuple[int, str]:
        """Exit code and what was printed."""
        text, _ = self.process.communicate(timeout=LONGEST)
        return self.process.returncode, " ".join(text.split())

    def wait_for(self, path: Path) -> bool:
        """Until a file is there; False if the process ended without it."""
        began = time.monotonic()
        while not path.exists():
            if self.process.poll() is not None or time.monotonic() - began > LONGEST:
                return False
            time.sleep(POLL)
        return True


def begun(stage: Stage, run: Path, limit: Limit | None = None) -> Child:
    """A new run in a process of its own."""
    return Child(stage, "fit", stage.table, *SETTINGS, "--seed", SEED, "--no-report", "--out", run, limit=limit)


def gone_on(stage: Stage, run: Path) -> str:
    """Trouble with the folder as it is, with going on, or with the bits; empty if there is none."""
    broken = half_written(run) if run.exists() else ""
    if broken:
        return f"half-written {broken}"
    is_begun = (run / "config.toml").exists()
    code, text = (Child(stage, "resume", run) if is_begun else begun(stage, run)).ended()
    return f"exit {code}: {text[-150:]}" if code else differs(run, whole_in_a_process(stage))


def whole_in_a_process(stage: Stage) -> Path:
    """A finished run to compare with, by a process with the same options of XLA."""
    whole = stage.folder / "whole-in-a-process"
    if not (whole / "summary.json").exists():
        code, text = begun(stage, whole).ended()
        if code:
            raise RuntimeError(text)
    return whole


def signalled(stage: Stage, fault: str, number: signal.Signals, name: str) -> Trial:
    """A signal as soon as a file is there."""
    run = fresh(stage, None)
    child = begun(stage, run)
    if not child.wait_for(run / name):
        return Trial(fault, name, f"ended before: {child.ended()[1][-100:]}")
    child.process.send_signal(number)
    code, text = child.ended()
    if number is signal.SIGINT and (code not in (0, *IN_WORDS) or "Traceback" in text):
        return Trial(fault, name, f"exit {code}: {text[-150:]}")
    return Trial(fault, name, gone_on(stage, run) or SAME)


def limited(stage: Stage, fault: str, kind: int, size: int) -> Trial:
    """A run that does not get what it needs ends, in words where Python is asked, and goes on when it does."""
    run = fresh(stage, None)
    code, text = begun(stage, run, (int(kind), size)).ended()
    if code == 0:
        return Trial(fault, f"{size} bytes", "the limit was not felt")
    if kind == resource.RLIMIT_FSIZE and (code not in IN_WORDS or "Traceback" in text):
        return Trial(fault, f"{size} bytes", f"exit {code}: {text[-150:]}")
    return Trial(fault, f"{size} bytes", gone_on(stage, run) or SAME)


def at_once(stage: Stage) -> Trial:
    """Two processes go on with one folder: one of them does."""
    run = fresh(stage, stage.copies / "00-config.toml-written")
    ends = [child.ended() for child in [Child(stage, "resume", run) for _ in range(2)]]
    told = [code == 0 or (code in IN_WORDS and "Traceback" not in text) for code, text in ends]
    if not all(told) or all(code for code, _ in ends):
        return Trial("two processes, real", "resume", str([(code, text[-80:]) for code, text in ends]))
    return Trial("two processes, real", "resume", differs(run, whole_in_a_process(stage)) or SAME)


def in_processes(stage: Stage) -> Iterator[Trial]:
    """All of them."""
    whole_in_a_process(stage)
    for name in ("config.toml", "checkpoint/training.npz", "checkpoint/sampling.npz", "draws.nc"):
        yield signalled(stage, "kill -9, real", signal.SIGKILL, name)
        yield signalled(stage, "Ctrl-C, real", signal.SIGINT, name)
    yield limited(stage, "full disk, real", resource.RLIMIT_FSIZE, SMALL_FILE)
    yield limited(stage, "out of memory, real", resource.RLIMIT_AS, SMALL_MEMORY)
    yield at_once(stage)
