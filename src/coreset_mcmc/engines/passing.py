"""One pass over the rows on workers: which part goes where and when, and what happens in bad weather.

A part goes to the worker that keeps its rows, or to whoever is free. A bounded number is under way, small ones by the
handful, and results are handed over in the order of the parts. A part whose worker dies or does not answer in time is
tried again elsewhere; an exception of the model is raised here at once, for it would be raised again.
"""

from __future__ import annotations

import pickle
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax

from coreset_mcmc.core.errors import RunError
from coreset_mcmc.core.watching import end_if_asked
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.source import Source
from coreset_mcmc.data.task import Task
from coreset_mcmc.engines.crew import Capacity, Crew, Lost, Outcome, Ticket
from coreset_mcmc.engines.parcels import Reply
from coreset_mcmc.engines.shipment import Shipment

QUEUED = 1
"""Parts that lie ready at a worker beyond those it works on, so that it never waits for the next."""
CROWDED = 3
"""Parts that wait for the worker that keeps them before an idle one helps, who has to read them first."""
WORTH_ASKING = 0.05
"""Seconds of work for which a worker is asked at a time, if parts take less."""
MOST_AT_ONCE = 16
"""Parts in one order."""
PATIENCE = 0.2
"""Seconds between looks at clocks and at requests to end."""
NEWS = 1.0
"""Seconds after which workers are counted again."""
NO_WORKERS = 120.0
"""Seconds for which a cluster may be without workers that answer."""


class _Running(NamedTuple):
    parts: list[int]
    worker: str
    since: float


class Pass:
    """One pass; used once."""

    def __init__(
        self, engine: Crew, source: Source, layout: Layout, tasks: Sequence[Task], parts: Sequence[int]
    ) -> None:
        self._engine, self._layout, self._parts = engine, layout, list(parts)
        self._shipment = Shipment(engine, source, layout, tasks)
        self._waiting = set(parts)
        self._running: dict[Ticket, _Running] = {}
        self._done: dict[int, list[Any]] = {}
        self._failures: defaultdict[int, list[str]] = defaultdict(list)
        self._answered: dict[str, float] = {}
        self._workers: dict[str, Capacity] = {}
        self._seen_workers, self._counted = time.monotonic(), 0.0
        self._turn, self._group = 0, 1

    def results(self) -> Iterator[list[Any]]:
        """The results of each part, in order; whatever is under way when nobody wants more is dropped."""
        self._count_workers()
        if self._workers.keys() <= self._engine.ledger.silent:
            self._engine.ledger.silent.clear()
        try:
            for turn, part in enumerate(self._parts):
                self._turn = turn
                self._start_what_can_be()
                while part not in self._done:
                    end_if_asked()
                    self._collect()
                    self._start_what_can_be()
                yield self._done.pop(part)
        finally:
            self._engine.drop(list(self._running))

    def _count_workers(self) -> None:
        now = time.monotonic()
        if self._workers and now - self._counted < NEWS:
            return
        self._workers, self._counted = self._engine.workers(), now
        for ticket, running in list(self._running.items()):
            if running.worker not in self._workers:
                self._engine.drop([ticket])
                self._take(self._running.pop(ticket), Lost("died or was taken away"))
        if self._workers:
            self._seen_workers = now
        elif now - self._seen_workers > min(NO_WORKERS, self._engine.timeout):
            raise RunError(f"No worker of the cluster has answered for {now - self._seen_workers:.0f} s. Start some.")

    def _start_what_can_be(self) -> None:
        load = Counter(running.worker for running in self._running.values())
        usable = {name: room for name, room in self._workers.items() if name not in self._engine.ledger.silent}
        threads = sum(room.threads for room in usable.values())
        while self._waiting and usable:
            worker = min(usable, key=lambda name: load[name] / usable[name].threads)
            if load[worker] >= usable[worker].threads + QUEUED:
                return
            group = max(min(self._group, len(self._waiting) // threads), 1)
            window = self._parts[self._turn : self._turn + 2 * (threads + QUEUED * len(usable)) * group]
            parts = self._choose([part for part in window if part in self._waiting], worker, is_idle=load[worker] == 0)
            if not parts:
                usable.pop(worker)
                continue
            is_doubtful = any(part in self._failures for part in parts)
            self._start(parts[: 1 if is_doubtful else group], worker)
            load[worker] += 1

    def _choose(self, candidates: list[int], worker: str, *, is_idle: bool) -> list[int]:
        """Parts that are at home there, or nowhere; another worker's only if there is nothing else to do."""
        homes = {part: self._shipment.home_of(part) for part in candidates}
        usable = self._workers.keys() - self._engine.ledger.silent
        own = [part for part in candidates if homes[part] == worker]
        free = [part for part in candidates if homes[part] not in usable]
        crowded = [home for home, count in Counter(homes.values()).items() if count >= CROWDED]
        others = [part for part in candidates if homes[part] in crowded] if is_idle else []
        return own or free or others[-1:]

    def _start(self, parts: list[int], worker: str, *, everything: bool = False) -> None:
        self._waiting.difference_update(parts)
        capacity = self._workers.get(worker, Capacity(1, 0))
        try:
            order, cargo = self._shipment.load(parts, worker, capacity, everything=everything)
            ticket = self._engine.start(worker, order, cargo)
        except OSError as error:
            self._failed(parts, worker, Lost(f"could not be sent its part ({error})"))
            return
        self._running[ticket] = _Running(parts, worker, time.monotonic())

    def _collect(self) -> None:
        for ticket, outcome in self._engine.wait(list(self._running), PATIENCE):
            running = self._running.pop(ticket, None)
            if running is not None:
                self._take(running, outcome)
        self._look_at_clocks()
        self._count_workers()

    def _take(self, running: _Running, outcome: Outcome) -> None:
        if isinstance(outcome, Exception):
            raise self._described(outcome, running.parts[0], running.worker)
        if isinstance(outcome, Lost):
            self._engine.ledger.forget(running.worker)
            self._failed(running.parts, running.worker, outcome)
            return
        reply: Reply = outcome
        self._answered[reply.worker] = time.monotonic()
        if reply.missing:
            self._engine.ledger.forget(reply.worker)
            self._start(running.parts, reply.worker, everything=True)
        elif reply.error is not None:
            self._take_error(running, reply, reply.error)
        else:
            assert reply.results is not None
            self._done.update(zip(running.parts, reply.results, strict=True))
            self._shipment.note(reply)
            self._group = min(int(WORTH_ASKING * len(running.parts) / max(reply.seconds, 1e-9)), MOST_AT_ONCE)

    def _take_error(self, running: _Running, reply: Reply, pickled: bytes) -> None:
        """Files and memory may be there for another worker; any other exception would be raised again."""
        with jax.enable_x64(True):
            error = pickle.loads(pickled)
        if not isinstance(error, OSError | MemoryError):
            raise self._described(error, reply.failed, reply.worker)
        self._waiting.update(part for part in running.parts if part != reply.failed)
        self._failed([reply.failed], reply.worker, Lost(f"raised {type(error).__name__}: {error}"))

    def _look_at_clocks(self) -> None:
        """A worker that has been asked and has not answered for too long is left alone; its parts go elsewhere."""
        now = time.monotonic()
        late = {
            running.worker
            for running in self._running.values()
            if now - max(running.since, self._answered.get(running.worker, 0.0)) > self._engine.timeout
        }
        for worker in late:
            tickets = [ticket for ticket, running in self._running.items() if running.worker == worker]
            first, *others = [self._running.pop(ticket).parts for ticket in tickets]
            self._engine.drop(tickets)
            self._engine.leave(worker)
            self._engine.ledger.silent.add(worker)
            self._engine.ledger.forget(worker)
            self._waiting.update(part for parts in others for part in parts)
            self._counted = 0.0
            self._count_workers()
            self._failed(first, worker, Lost(f"did not answer within {self._engine.timeout:g} s"))

    def _failed(self, parts: list[int], worker: str, lost: Lost) -> None:
        usable = self._workers.keys() - self._engine.ledger.silent
        for part in parts:
            self._failures[part].append(f"worker {worker} {lost.reason}")
            is_over = lost.is_final or len(self._failures[part]) > self._engine.retries
            if is_over or (self._workers and not usable):
                raise RunError(
                    f"{self._name(part)} could not be computed: {'; '.join(self._failures[part])}. Look at the logs of "
                    "these workers; if they were killed for lack of memory, give each more; if a part takes longer, "
                    "pass a longer timeout."
                )
        self._waiting.update(parts)
        self._counted = 0.0

    def _described(self, error: Exception, part: int, worker: str) -> Exception:
        error.add_note(f"Raised for {self._name(part)} on worker {worker}.")
        return error

    def _name(self, part: int) -> str:
        leaves = self._layout.leaves_of_part(part)
        first, last = self._layout.rows_of_leaf(leaves[0])[0], self._layout.rows_of_leaf(leaves[-1])[1] - 1
        return f"part {part} of the rows (row {first} to {last})"
