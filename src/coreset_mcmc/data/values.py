"""Values that no model can use, found in a pass: placeholder until rows on disk check themselves."""

from __future__ import annotations

from typing import Any

from coreset_mcmc.data.source import Source
from coreset_mcmc.data.task import Task


def checks_of_values(check_data: Any) -> list[Task]:
    del check_data
    return []


def raise_on_values(source: Source, found: list[Any]) -> None:
    del source, found
