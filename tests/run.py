"""The README's test command: formatting, lint, types and tests, in that order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
CHECKS = [
    ["ruff", "format", "--check"],
    ["ruff", "check"],
    ["mypy"],
    ["pytest", "--numprocesses=2", "--dist=loadscope"],
]
QUICK_COMPILATION = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
"""Most of the tests' time is compilation; this halves it. Programs are the same, only less optimised."""


def environment() -> dict[str, str]:
    """With quick compilation if this version of the compiler knows how; an unknown flag would end the process."""
    quick = {**os.environ, "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} {QUICK_COMPILATION}".strip()}
    probe = [sys.executable, "-c", "import jax; jax.jit(lambda: 0)()"]
    is_known = subprocess.run(probe, env=quick, check=False, capture_output=True).returncode == 0
    return quick if is_known else dict(os.environ)


def main() -> int:
    for check in CHECKS:
        print("+", *check, flush=True)
        command = [sys.executable, "-m", *check]
        code = subprocess.run(command, cwd=ROOT, check=False, env=environment()).returncode
        if code:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
