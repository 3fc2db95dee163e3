"""Passes over the rows by the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from queue import Empty, Queue
from typing import Any
from uuid import uuid4

from coreset_mcmc.core.errors import RunError
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.source import Source
from coreset_mcmc.engines.cluster import MEMORY_SHARE, RETRIES, TIMEOUT, Cluster
from coreset_mcmc.engines.crew import Capacity, Lost, Outcome, Ticket
from coreset_mcmc.engines.dask_client import connected, is_future, memory_of
from coreset_mcmc.engines.dask_frame import DaskFrame, cut
from coreset_mcmc.engines.parcels import Reply, versions
from coreset_mcmc.engines.troubles import explained, require_extra
from coreset_mcmc.engines.worker import carry_out

BY_ITSELF = 2**20
"""Bytes above which something is scattered to a worker instead of going through the scheduler's list of tasks."""
HAS_PACKAGE = "bool(__import__('coreset_mcmc.engines.worker'))"
"""What a new worker is asked first: as text, for a function of ours would be lost on a worker without the package."""
GOODBYE = 5.0
"""Seconds to tell a scheduler, that may be gone, what is not needed any more."""


class Dask(Cluster):
    """Workers of a Dask cluster.

    Args:
        client_or_address: a ``distributed.Client``, a cluster such as ``LocalCluster``, or a scheduler's address.
        retries: how often a part of the rows is tried again when a worker dies or does not answer.
        timeout: seconds that a part of the rows may take, compilation included.
        memory_share: of a worker's memory, in which it keeps rows from pass to pass.
    """

    def __init__(
        self,
        client_or_address: Any,
        *,
        retries: int = RETRIES,
        timeout: float = TIMEOUT,
        memory_share: float = MEMORY_SHARE,
    ) -> None:
        super().__init__(retries, timeout, memory_share)
        require_extra("dask", "distributed")
        self._client, self._is_ours = connected(client_or_address)
        self._greeted: dict[str, Any] = {}
        """What has come of the question to each worker, None once it was answered."""
        self._outcomes: Queue[tuple[Ticket, Outcome]] = Queue()

    def workers(self) -> dict[str, Capacity]:
        self._require_scheduler()
        try:
            found = self._client.scheduler_info(n_workers=-1)["workers"]
        except (OSError, TimeoutError) as error:
            raise self._scheduler_is_gone() from error
        self._greet([name for name in found if name not in self._greeted])
        return {
            name: Capacity(worker["nthreads"], memory_of(worker))
            for name, worker in found.items()
            if self._is_ready(name)
        }

    def sends_rows(self, source: Source) -> bool:
        return isinstance(source, DaskFrame) or super().sends_rows(source)

    def rows_to_send(self, source: Source, layout: Layout, part: int, worker: str) -> Any:
        if not isinstance(source, DaskFrame):
            return super().rows_to_send(source, layout, part, worker)
        pieces, delayed = source.pieces(layout, part)
        frames = self._client.compute(delayed, workers=[worker], allow_other_workers=True)
        return self._submit(worker, cut, pieces, *frames)

    def start(self, worker: str, order: bytes, cargo: dict[str, Any]) -> Ticket:
        self._require_scheduler()
        placed = [self._placed(content, worker, name) for name, content in cargo.items()]
        future = self._submit(worker, _on_worker, versions(), order, list(cargo), *placed)
        self._client.loop.add_callback(self._watch, future, worker)
        ticket: Ticket = future
        return ticket

    def wait(self, tickets: Sequence[Ticket], seconds: float) -> list[tuple[Ticket, Outcome]]:
        outcomes = []
        with suppress(Empty):
            outcomes.append(self._outcomes.get(timeout=seconds))
            while True:
                outcomes.append(self._outcomes.get_nowait())
        self._require_scheduler()
        return outcomes

    def drop(self, tickets: Sequence[Ticket]) -> None:
        async def cancel() -> None:
            await self._client.cancel(list(tickets), asynchronous=True)

        if tickets and self._client.status == "running":
            with suppress(Exception):
                self._client.sync(cancel, callback_timeout=GOODBYE)

    def leave(self, worker: str) -> None:
        """Dask has no way to end what a worker's thread is doing; others may be using the worker."""

    def close(self) -> None:
        """Close the connection, if it was made here."""
        if self._is_ours:
            self._client.close()

    def _greet(self, newcomers: Sequence[str]) -> None:
        for name in newcomers:
            self._greeted[name] = self._submit(name, eval, HAS_PACKAGE)

    def _is_ready(self, worker: str) -> bool:
        """Whether it has answered; an :class:`InputError` if it lacks the package."""
        future = self._greeted[worker]
        if future is not None and future.status == "error":
            del self._greeted[worker]
            raise explained(future.exception(timeout=GOODBYE), worker)
        if future is not None and future.status == "finished":
            self._greeted[worker] = None
        elif future is not None and future.status != "pending":
            del self._greeted[worker]
            return False
        return self._greeted[worker] is None

    def _submit(self, worker: str, function: Any, *arguments: Any) -> Any:
        """To this worker and to no other, who would have neither rows nor programs; if it dies, we hear of it."""
        key = f"{function.__name__.strip('_')}-{uuid4().hex}"
        return self._client.submit(function, *arguments, key=key, pure=False, workers=[worker])

    def _placed(self, content: Any, worker: str, name: str) -> Any:
        is_small = isinstance(content, bytes) and len(content) < BY_ITSELF
        if is_small or is_future(content):
            return content
        return self._client.scatter(content, workers=[worker], hash=False)

    async def _watch(self, future: Any, worker: str) -> None:
        """Runs in the thread of the client."""
        from distributed.scheduler import KilledWorker

        outcome: Outcome
        try:
            outcome = await self._client.gather(future, asynchronous=True)
            assert isinstance(outcome, Reply)
        except KilledWorker as error:
            outcome = Lost(f"and {error.allowed_failures} others died while they had it", is_final=True)
        except (CancelledError, asyncio.CancelledError) as error:
            outcome = Lost(f"lost it ({error})")
        except Exception as error:
            outcome = explained(error, worker)
        self._outcomes.put((future, outcome))

    def _require_scheduler(self) -> None:
        if self._client.status != "running":
            raise self._scheduler_is_gone()

    def _scheduler_is_gone(self) -> RunError:
        address = getattr(self._client.scheduler, "address", "unknown")
        return RunError(
            f"The connection to the Dask scheduler at {address} was lost. Start the scheduler and its workers again, "
            "and the fit with a new client; from a checkpoint it goes on where it was."
        )


def _on_worker(theirs: dict[str, str], order: bytes, names: Sequence[str], *cargo: Any) -> Reply:
    from distributed import get_worker

    return carry_out(get_worker().address, theirs, order, names, *cargo)
