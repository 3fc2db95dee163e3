"""Passes over the rows by the workers of a Ray cluster.

Workers are actors, one for each core that the cluster has: unlike Ray's tasks they keep rows and compiled programs, and
it can be said which of them is to do what.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from coreset_mcmc.core.errors import InputError, RunError
from coreset_mcmc.engines.cluster import MEMORY_SHARE, RETRIES, TIMEOUT, Cluster
from coreset_mcmc.engines.crew import Capacity, Lost, Outcome, Ticket
from coreset_mcmc.engines.parcels import Reply, versions
from coreset_mcmc.engines.troubles import explained, require_extra
from coreset_mcmc.engines.worker import carry_out

BY_ITSELF = 2**17
"""Bytes above which something is put into Ray's store of objects instead of going along with a call."""


class Ray(Cluster):
    """Workers of a Ray cluster.

    Args:
        address: of a running cluster, as ``ray.init`` takes it. Without one, the cluster that this process is connected
            to, or else Ray is started on this machine.
        retries: how often a part of the rows is tried again when a worker dies or does not answer.
        timeout: seconds that a part of the rows may take, compilation included.
        memory_share: of a worker's memory, in which it keeps rows from pass to pass.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        retries: int = RETRIES,
        timeout: float = TIMEOUT,
        memory_share: float = MEMORY_SHARE,
    ) -> None:
        super().__init__(retries, timeout, memory_share)
        require_extra("ray", "ray")
        self._is_ours = _connect(address)
        self._actors: dict[str, Any] = {}
        self._whose: dict[Ticket, str] = {}
        self._names = itertools.count(1)

    def workers(self) -> dict[str, Capacity]:
        import ray

        if not ray.is_initialized():
            raise RunError("The connection to Ray was closed. Make a new engine: cm.Ray(...).")
        resources = ray.cluster_resources()
        wanted = max(int(resources.get("CPU", 1)), 1)
        while len(self._actors) < wanted:
            name = f"coreset-mcmc worker {next(self._names)}"
            self._actors[name] = ray.remote(_Actor).options(num_cpus=1, max_restarts=0).remote(name)
        memory = int(resources.get("memory", 0)) // wanted
        return dict.fromkeys(self._actors, Capacity(1, memory))

    def start(self, worker: str, order: bytes, cargo: dict[str, Any]) -> Ticket:
        import ray

        if worker not in self._actors:
            raise OSError("it is gone")
        placed = [
            content if isinstance(content, bytes) and len(content) < BY_ITSELF else ray.put(content)
            for content in cargo.values()
        ]
        ticket: Ticket = self._actors[worker].carry_out.remote(versions(), order, list(cargo), *placed)
        self._whose[ticket] = worker
        return ticket

    def wait(self, tickets: Sequence[Ticket], seconds: float) -> list[tuple[Ticket, Outcome]]:
        import ray

        if not tickets:
            time.sleep(seconds)
            return []
        ready, rest = ray.wait(list(tickets), num_returns=1, timeout=seconds)
        if ready and rest:
            ready += ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        return [(ticket, self._outcome(ticket)) for ticket in ready]

    def drop(self, tickets: Sequence[Ticket]) -> None:
        import ray

        for ticket in tickets:
            self._whose.pop(ticket, None)
            with suppress(Exception):
                ray.cancel(ticket)

    def leave(self, worker: str) -> None:
        """Its process is ended, for another to take its place."""
        import ray

        actor = self._actors.pop(worker, None)
        if actor is not None:
            with suppress(Exception):
                ray.kill(actor)

    def close(self) -> None:
        """End the workers, and Ray if it was started here."""
        import ray

        for worker in list(self._actors):
            self.leave(worker)
        if self._is_ours and ray.is_initialized():
            ray.shutdown()

    def _outcome(self, ticket: Ticket) -> Outcome:
        import ray
        from ray import exceptions

        worker = self._whose.pop(ticket, "of Ray")
        try:
            reply = ray.get(ticket)
            assert isinstance(reply, Reply)
        except exceptions.ActorDiedError as error:
            trouble = explained(error, worker)
            if isinstance(trouble, InputError):
                return trouble
            self.leave(worker)
            return Lost(f"died ({_first_line(error)})")
        except exceptions.RayTaskError as error:
            return explained(error.cause if isinstance(error.cause, Exception) else error, worker)
        except exceptions.RayError as error:
            return Lost(f"lost it ({type(error).__name__}: {_first_line(error)})")
        return reply


class _Actor:
    """A worker of Ray."""

    def __init__(self, name: str) -> None:
        self._name = name

    def carry_out(self, theirs: dict[str, str], order: bytes, names: Sequence[str], *cargo: Any) -> Reply:
        return carry_out(self._name, theirs, order, names, *cargo)


def _connect(address: str | None) -> bool:
    """Whether Ray was started, or connected to, here."""
    import ray

    if ray.is_initialized():
        return False
    try:
        ray.init(address=address, logging_level="warning")
    except (OSError, ValueError, RuntimeError) as error:
        raise InputError(
            "cm.Ray",
            got=f"address {address!r} ({type(error).__name__}: {error})",
            expected="the address of a Ray cluster that runs",
            fix='Start one ("ray start --head") or leave the address out to start Ray on this machine.',
        ) from error
    return True


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
