"""What a kind of cluster has to provide: how work is started, awaited and dropped, and what it calls a worker.

All else, which part goes where, what is sent along, what happens in bad weather, is in
:mod:`coreset_mcmc.engines.passing`, once for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.source import Source
from coreset_mcmc.engines.ledger import Ledger
from coreset_mcmc.engines.parcels import Reply

Ticket = Hashable
"""Stands for work that was started."""


class Capacity(NamedTuple):
    """How many parts a worker takes at once, and the bytes of memory it has."""

    threads: int
    memory: int


@dataclass(frozen=True)
class Lost:
    """Work whose result never came, and why: it is tried again, elsewhere if possible."""

    reason: str
    is_final: bool = False
    """Whether it was tried again often enough already."""


Outcome = Reply | Lost | Exception
"""An exception is raised where the pass was asked for."""


class Crew(ABC):
    """Workers elsewhere."""

    retries: int
    """How often a part is tried again."""
    timeout: float
    """Seconds that a part may take."""
    memory_share: float
    """Of a worker's memory, in which it keeps rows."""
    ledger: Ledger

    def sends_rows(self, source: Source) -> bool:
        """Whether workers are sent rows of this source, rather than read them for themselves."""
        return source.whole() is not None

    def rows_to_send(self, source: Source, layout: Layout, part: int, worker: str) -> Any:
        """The rows of a part, or what the cluster knows to turn into them on its way to the worker."""
        return [(leaf.batch, leaf.weights) for leaf in source.leaves(layout, layout.leaves_of_part(part))]

    @abstractmethod
    def workers(self) -> dict[str, Capacity]:
        """Workers at this moment, by name; a :class:`RunError` if the cluster is gone."""

    @abstractmethod
    def start(self, worker: str, order: bytes, cargo: dict[str, Any]) -> Ticket:
        """Have the worker do :func:`coreset_mcmc.engines.worker.carry_out`; OSError if nothing can be sent to it."""

    @abstractmethod
    def wait(self, tickets: Sequence[Ticket], seconds: float) -> list[tuple[Ticket, Outcome]]:
        """What has come of these, as soon as something has, or nothing after so many seconds."""

    @abstractmethod
    def drop(self, tickets: Sequence[Ticket]) -> None:
        """Nobody waits for these any more; must not raise."""

    @abstractmethod
    def leave(self, worker: str) -> None:
        """A worker has not answered in time."""
