"""Values that no model can use, or not this one, found in the first pass over rows that are not in memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.core.types import Batch
from coreset_mcmc.data.finite import NotFinite, check_finite
from coreset_mcmc.data.leaf import Leaf, widened
from coreset_mcmc.data.source import Source
from coreset_mcmc.data.task import Program, Task


class _Refused(NamedTuple):
    """What a model said, about which run of rows."""

    message: str
    start: int
    stop: int


@dataclass(frozen=True)
class _Suits(Program):
    """The first leaf whose rows a model refuses, if there is one."""

    check_data: Callable[[Batch], None]

    def on_leaf(self, leaf: Leaf, arguments: Any) -> _Refused | None:
        try:
            self.check_data(widened(leaf.batch))
        except InputError as error:
            return _Refused(str(error), leaf.start, leaf.stop)
        return None

    def merge(self, one: _Refused | None, other: _Refused | None) -> _Refused | None:
        return other if one is None else one


def checks_of_values(check_data: Callable[[Batch], None] | None, infinite: bool = False) -> list[Task]:
    """Whether all numbers are finite, or at least numbers, and whether the model can use them."""
    return [Task(NotFinite(infinite))] + ([] if check_data is None else [Task(_Suits(check_data))])


def raise_on_values(source: Source, found: list[Any]) -> None:
    """Refuse what those have found."""
    if not found:
        return
    check_finite(found[0], source)
    refused: _Refused | None = found[1] if len(found) > 1 else None
    if refused is not None:
        raise InputError(
            "data",
            got=f"rows that the model refuses, between {source.place_of(refused.start)} and "
            f"{source.place_of(refused.stop - 1)}: {refused.message}",
            expected="rows that suit the model",
            fix="Repair or drop them.",
        )
