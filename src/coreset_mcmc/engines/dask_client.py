"""Connections to Dask, and what Dask says of its workers."""

from __future__ import annotations

import os
from typing import Any

from coreset_mcmc.core.errors import InputError, require


def connected(client_or_address: Any) -> tuple[Any, bool]:
    """A client, and whether it was made here."""
    from distributed import Client

    if isinstance(client_or_address, Client):
        require(
            not client_or_address.asynchronous,
            "cm.Dask",
            got="an asynchronous client",
            expected="a synchronous one",
            fix="Pass the scheduler's address.",
        )
        return client_or_address, False
    try:
        return Client(client_or_address, set_as_default=False), True
    except (OSError, TypeError, ValueError) as error:
        raise InputError(
            "cm.Dask",
            got=f"{client_or_address!r} ({type(error).__name__}: {error})",
            expected="a distributed.Client, a cluster, or the address of a scheduler that runs",
            fix='Start one ("dask scheduler"; "dask worker ADDRESS") or pass cm.Dask(distributed.LocalCluster()).',
        ) from error


def is_future(content: Any) -> bool:
    """Whether Dask has it, or will have it."""
    from distributed import Future

    return isinstance(content, Future)


def memory_of(worker: dict[str, Any]) -> int:
    """Of a worker that has no limit: its share of this machine's, as if the worker's was like it."""
    limit = worker["memory_limit"]
    if limit:
        return int(limit)
    import psutil

    return int(psutil.virtual_memory().total) // (os.cpu_count() or 1) * int(worker["nthreads"])
