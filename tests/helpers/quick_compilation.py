"""Options of XLA that halve the time of compilation, which is most of the tests' time.

Programs are the same, only less optimised. XLA reads its options from the environment when the first program is
compiled, and ends the process at one that it does not know: so they are tried in a process of their own, once for each
version of XLA. Worker processes inherit the environment.
"""

from __future__ import annotations

import os
import subprocess
import sys

import jaxlib
import pytest

QUICK = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)


def use_quick_compilation(config: pytest.Config) -> None:
    """For this process and those that it starts."""
    given = os.environ.get("XLA_FLAGS", "")
    if QUICK in given:
        return
    options = f"{given} {QUICK}".strip()
    if _are_known(config, options):
        os.environ["XLA_FLAGS"] = options


def _are_known(config: pytest.Config, options: str) -> bool:
    """Whether XLA starts with them; pytest's cache remembers that."""
    question = f"xla-{jaxlib.__version__}/{options.replace('/', '_')}"
    cache = getattr(config, "cache", None)
    answer = cache.get(question, None) if cache else None
    if answer is None:
        probe = [sys.executable, "-c", "import jax; jax.jit(lambda: 0)()"]
        environment = {**os.environ, "XLA_FLAGS": options}
        answer = subprocess.run(probe, env=environment, check=False, capture_output=True).returncode == 0
        if cache:
            cache.set(question, answer)
    return answer
