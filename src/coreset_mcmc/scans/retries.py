"""Reading again what could not be read: networks and disks have bad moments."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from coreset_mcmc.core.errors import RunError

ATTEMPTS = 4
FIRST_PAUSE = 0.2
"""Seconds; each further pause is four times as long."""

Result = TypeVar("Result")


def pause_or_give_up(name: str, attempt: int, error: Exception) -> None:
    """Wait before the next of several attempts, or say what could not be read."""
    if _is_final(error) or attempt + 1 >= ATTEMPTS:
        words = str(error).strip().splitlines()
        often = "" if _is_final(error) else f" in {ATTEMPTS} attempts"
        raise RunError(
            f"{name} could not be read{often} ({words[0][:300] if words else type(error).__name__}). "
            "Check that the file is whole and that its store can be reached; then run or resume again."
        ) from error
    time.sleep(FIRST_PAUSE * 4**attempt)


def _is_final(error: Exception) -> bool:
    """Whether another attempt would meet the same."""
    return isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError)


def with_retries(function: Callable[[], Result], name: str) -> Result:
    """What ``function`` returns, if necessary at a later attempt."""
    for attempt in range(ATTEMPTS):
        try:
            return function()
        except OSError as error:
            pause_or_give_up(name, attempt, error)
    raise AssertionError
