"""How much memory there is, so that what cannot fit is refused before it is begun."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from coreset_mcmc.core.errors import require

MEMINFO = Path("/proc/meminfo")
GROUP = Path("/sys/fs/cgroup")
SHARE = 0.5
"""Of the free memory that one result may take."""

_limit: ContextVar[int | None] = ContextVar("limit", default=None)


@contextmanager
def limited_to(num_bytes: int | None) -> Iterator[None]:
    """No more than this counts as free for what is done inside; None for all that there is."""
    token = _limit.set(num_bytes)
    try:
        yield
    finally:
        _limit.reset(token)


def free_memory() -> int | None:
    """Bytes that this process may still take; None where nobody tells."""
    known = [number for number in (_found_free(), _limit.get()) if number is not None]
    return min(known, default=None)


def _found_free() -> int | None:
    try:
        lines = dict(line.split(":", 1) for line in MEMINFO.read_text().splitlines())
        free = 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        return None
    try:
        limit, used = ((GROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
        return free if limit == "max" else max(min(free, int(limit) - int(used)), 0)
    except (OSError, ValueError):
        return free


def require_within_limit(subject: str, num_bytes: int, *, fix: str) -> None:
    """Refuse what takes more than the user allows, if the user has said so."""
    limit = _limit.get()
    require(
        limit is None or num_bytes <= limit,
        subject,
        got=f"{num_bytes / 10**9:,.2g} GB",
        expected=f"at most the {(limit or 0) / 10**9:,.2g} GB that may be used",
        fix=fix,
    )


def require_room(subject: str, num_bytes: int, *, fix: str) -> None:
    """Refuse a result that would take more than half of the free memory."""
    free = free_memory()
    require(
        free is None or num_bytes <= SHARE * free,
        subject,
        got=f"a result of {num_bytes / 2**30:,.2f} GiB, while {(free or 0) / 2**30:,.2f} GiB of memory are free",
        expected=f"one that takes at most {SHARE:.0%} of it",
        fix=fix,
    )
