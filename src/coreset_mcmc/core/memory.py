"""How much memory is left."""

from __future__ import annotations

import psutil


def free_bytes() -> int:
    """What can be taken without swapping."""
    return int(psutil.virtual_memory().available)
