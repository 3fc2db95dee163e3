"""Readers under coverage guidance (atheris, which is in no extra: pip install atheris), in a process for each.

    python -m coreset_mcmc_benchmarks.fuzz.guided formula 60

Inputs that reach new branches are kept and changed further. A crash, an input that takes 20 s, or one that takes more
than 2 GB of memory ends the process with its bytes printed. Without atheris the bytes of the examples are changed at
random, which finds less.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

INSTRUMENTED = (
    "coreset_mcmc.tables", "coreset_mcmc.commands", "coreset_mcmc.driver", "coreset_mcmc.results", "formulae",
)  # fmt: skip
MOST_SECONDS, MOST_MEGABYTES, MOST_BYTES = 20, 2_048, 16_384


class Fuzzed(NamedTuple):
    """What came of one reader."""

    target: str
    tries: int
    failure: str
    """Empty if nothing was found."""


def changed(rng: np.random.Generator, content: bytes, others: list[bytes]) -> bytes:
    """A few bytes replaced, removed, doubled or taken from another example."""
    result = bytearray(content or b" ")
    for _ in range(int(rng.integers(1, 6))):
        at = int(rng.integers(0, len(result) + 1))
        kind = int(rng.integers(0, 4))
        if kind == 0:
            result[at : at + 1] = rng.integers(0, 256, 1, dtype=np.uint8).tobytes()
        elif kind == 1:
            del result[at : at + int(rng.integers(1, 9))]
        elif kind == 2:
            result[at:at] = result[at : at + int(rng.integers(1, 17))]
        else:
            other = others[int(rng.integers(0, len(others)))]
            start = int(rng.integers(0, len(other) + 1))
            result[at:at] = other[start : start + int(rng.integers(1, 33))]
    return bytes(result[:MOST_BYTES])


def at_random(name: str, seconds: float, seed: int = 0) -> Fuzzed:
    """Changed examples in this process, for some seconds."""
    from coreset_mcmc_benchmarks.fuzz.readers import examples, tried, warmed  # noqa: PLC0415 - instrumented below

    reader = warmed(name)
    rng, known, tries, began = np.random.default_rng(seed), examples(name), 0, time.monotonic()
    while time.monotonic() - began < seconds:
        content = changed(rng, known[int(rng.integers(0, len(known)))], known)
        try:
            tried(reader, content)
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return Fuzzed(name, tries, f"{type(error).__name__}: {str(error)[:120]} from {content[:200]!r}")
        tries += 1
    return Fuzzed(name, tries, "")


def guided(name: str, seconds: int) -> Fuzzed:
    """In a process of its own with atheris, if it is there."""
    if importlib.util.find_spec("atheris") is None:
        return at_random(name, seconds)
    command = [sys.executable, "-m", "coreset_mcmc_benchmarks.fuzz.guided", name, str(seconds)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    text = ended.stdout + ended.stderr
    done = re.findall(r"Done (\d+) runs", text) or re.findall(r"#(\d+)", text)
    decisive = [line for line in text.splitlines() if line.startswith("SUMMARY: libFuzzer")]
    lines = decisive or [
        line for line in text.splitlines() if "Exception" in line or "ERROR" in line or "Error:" in line
    ]
    return Fuzzed(
        name, int(done[-1]) if done else 0, "" if ended.returncode == 0 else " / ".join(lines)[:300] or "crashed"
    )


def main(name: str, seconds: str) -> None:
    """The process: the readers' own modules are instrumented, JAX is not."""
    import atheris  # noqa: PLC0415 - in no extra

    with atheris.instrument_imports(include=list(INSTRUMENTED)):
        from coreset_mcmc_benchmarks.fuzz.readers import examples, tried, warmed  # noqa: PLC0415

    corpus = Path(tempfile.mkdtemp(prefix="coreset-mcmc-corpus-"))
    for number, content in enumerate(examples(name)):
        (corpus / f"example-{number}").write_bytes(content)
    reader = warmed(name)
    limits = [f"-max_total_time={seconds}", f"-timeout={MOST_SECONDS}", f"-rss_limit_mb={MOST_MEGABYTES}",
              f"-max_len={MOST_BYTES}", f"-artifact_prefix={corpus}/"]  # fmt: skip
    atheris.Setup([sys.argv[0], *limits, str(corpus)], lambda content: tried(reader, content))
    atheris.Fuzz()


if __name__ == "__main__":
    main(*sys.argv[1:3])
