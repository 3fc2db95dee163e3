"""What is sent along with the orders of one pass: everything that a worker is not known to have."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.source import Source
from coreset_mcmc.data.task import Task
from coreset_mcmc.engines.crew import Capacity, Crew
from coreset_mcmc.engines.parcels import (
    Order,
    Reply,
    cargo_name,
    name_of_rows,
    packed_arguments,
    packed_program,
    packed_source,
)


class Shipment:
    """The parcels of a pass."""

    def __init__(self, engine: Crew, source: Source, layout: Layout, tasks: Sequence[Task]) -> None:
        self._engine, self._source, self._layout = engine, source, layout
        programs = [packed_program(task.program) for task in tasks]
        arguments = packed_arguments(tasks)
        self._sends_rows = engine.sends_rows(source)
        reader = None if self._sends_rows else packed_source(source)
        self._parcels = {parcel.name: parcel for parcel in (*programs, arguments, *([reader] if reader else []))}
        self._programs, self._arguments = tuple(parcel.name for parcel in programs), arguments.name
        self._reader = reader.name if reader else None
        self._rows = reader.name if reader else name_of_rows(source)

    def home_of(self, part: int) -> str | None:
        """The worker that keeps this part."""
        return self._engine.ledger.home_of(self._rows, self._layout.leaf_rows, part)

    def load(
        self, parts: Sequence[int], worker: str, capacity: Capacity, *, everything: bool
    ) -> tuple[bytes, dict[str, Any]]:
        """An order, and what goes with it; ``everything`` if the worker has lacked something."""
        ledger = self._engine.ledger
        cargo: dict[str, Any] = {
            name: parcel.content
            for name, parcel in self._parcels.items()
            if everything or not ledger.has_parcel(worker, name)
        }
        for part in parts if self._sends_rows else ():
            if everything or self.home_of(part) != worker:
                cargo[cargo_name(part)] = self._engine.rows_to_send(self._source, self._layout, part, worker)
        room = int(self._engine.memory_share * capacity.memory)
        order = Order(tuple(parts), self._layout, self._programs, self._arguments, self._reader, self._rows, room)
        return pickle.dumps(order), cargo

    def note(self, reply: Reply) -> None:
        """A worker has done what it was asked: it knows the parcels of this pass."""
        self._engine.ledger.note_parcels(reply.worker, list(self._parcels))
        for part in reply.kept:
            self._engine.ledger.note_home(self._rows, self._layout.leaf_rows, part, reply.worker)
