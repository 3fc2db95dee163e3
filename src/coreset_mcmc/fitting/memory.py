"""Whether all rows can be held in memory, for methods that cannot do without."""

from __future__ import annotations

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.memory import SHARE, free_memory
from coreset_mcmc.data.rows import Rows


def check_memory(method: str, rows: Rows) -> None:
    """Refuse a method that holds all rows where they do not fit."""
    free = free_memory()
    if rows.source.whole() is not None or free is None:
        return
    needed = 2 * rows.size * rows.source.bytes_per_row
    require(
        needed <= SHARE * free,
        f"method {method}",
        got=f"{rows.size:,} rows on disk, about {needed / 2**30:,.2f} GiB in memory",
        expected=f"at most {SHARE:.0%} of the {free / 2**30:,.2f} GiB that may be used: each of its steps looks at "
        "rows of its own choice",
        fix="Use the default method, which passes over the rows; or a sample of the rows.",
    )
