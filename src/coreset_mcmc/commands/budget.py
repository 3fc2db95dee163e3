"""How much memory a run may use, and whether its table is read into it or streamed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.memory import free_memory

AUTO, MEMORY, STREAM, DASK, RAY = "auto", "memory", "stream", "dask", "ray"
ENGINES = (AUTO, MEMORY, STREAM, DASK, RAY)
ON_CLUSTERS = (DASK, RAY)
EXAMPLES = {DASK: "tcp://10.0.0.1:8786", RAY: "ray://10.0.0.1:10001"}
TABLE_SHARE = 0.25
"""Of the memory that may be used: what a table may take to be held in it. Its design takes about as much once more, and
so does each while it is made."""
BYTES_PER_VALUE = 8
UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
BINARY_UNITS = {"k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}


def bytes_of(text: str) -> int:
    """Of a size such as "2GB", "500 MB", "1.5GiB" or a number of bytes."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*", text.lower())
    is_right = match is not None and not (match[3] and not match[2]) and float(match[1]) > 0
    if match is None or not is_right:
        raise InputError(
            f"--memory-limit {text}",
            got=repr(text),
            expected="a size above zero",
            fix="For example --memory-limit 2GB.",
        )
    return max(int(float(match[1]) * (BINARY_UNITS if match[3] else UNITS)[match[2]]), 1)


def in_words(num_bytes: float) -> str:
    """A size as people say it."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if num_bytes < 999.5:
            return (
                f"{num_bytes:.0f} {unit}" if unit in ("bytes", "kB") or num_bytes >= 99.5 else f"{num_bytes:.2g} {unit}"
            )
        num_bytes /= 1_000
    return f"{num_bytes:.2g} TB" if num_bytes < 99.5 else f"{num_bytes:,.0f} TB"


def check_engine(name: str, scheduler: str, memory_limit: str) -> None:
    """Refuse engines that do not exist, and those that lack an address or have one too many."""
    require(
        name in ENGINES,
        f"--engine {name}",
        got=repr(name),
        expected=f"one of {', '.join(ENGINES)}",
        fix="Leave --engine out: tables that are too large for the memory are streamed by themselves.",
    )
    if name in ON_CLUSTERS:
        require(
            bool(scheduler),
            f"--engine {name}",
            got="no --scheduler",
            expected="the address of the cluster",
            fix=f"For example --engine {name} --scheduler {EXAMPLES[name]}.",
        )
    else:
        require(
            not scheduler,
            f"--scheduler {scheduler}",
            got=f"--engine {name}, which has none",
            expected="--engine dask or --engine ray",
            fix="Say which with --engine, or leave --scheduler out.",
        )
    if memory_limit:
        bytes_of(memory_limit)


@dataclass(frozen=True)
class Budget:
    """The memory that may be used; ``limit`` is the user's, in bytes."""

    limit: int | None

    @classmethod
    def of(cls, memory_limit: str) -> Budget:
        return cls(bytes_of(memory_limit) if memory_limit else None)

    def holds(self, num_bytes: int) -> bool:
        """Whether a table of this size is read into memory; always where nobody knows how much there is."""
        free = free_memory()
        return free is None or num_bytes <= TABLE_SHARE * free

    def __str__(self) -> str:
        if self.limit is not None:
            return f"--memory-limit {in_words(self.limit)}"
        return f"{in_words(free_memory() or 0)} of memory free"


def require_held(budget: Budget, num_bytes: int, *, can_stream: bool) -> None:
    """Refuse to hold in memory what the user's limit does not allow."""
    instead = "Use --engine stream" if can_stream else "Save the table as Parquet, which can be streamed"
    require(
        budget.limit is None or budget.holds(num_bytes),
        "--engine memory" if can_stream else "table",
        got=f"{in_words(num_bytes)} of rows, and --memory-limit {in_words(budget.limit or 0)}",
        expected=f"a table of at most {TABLE_SHARE:.0%} of it, because its design has to fit as well",
        fix=f"{instead}, or raise --memory-limit.",
    )
