"""An engine on workers elsewhere, of whatever kind."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

from coreset_mcmc.core.errors import require, require_count, require_positive
from coreset_mcmc.data.engine import Engine
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.source import Source
from coreset_mcmc.data.task import Task
from coreset_mcmc.engines.crew import Crew
from coreset_mcmc.engines.ledger import Ledger
from coreset_mcmc.engines.passing import Pass

RETRIES = 3
TIMEOUT = 600.0
MEMORY_SHARE = 0.4
"""JAX, a part that is being read and the framework's own buffers need the rest."""


class Cluster(Crew, Engine):
    """Carries out tasks on workers, in the same order and to the same bits as any other engine."""

    def __init__(self, retries: int, timeout: float, memory_share: float) -> None:
        require_count("retries", retries, at_least=0, fix="It says how often a part of the rows is tried again.")
        require_positive("timeout", timeout, fix="It is the longest that a part of the rows may take, in seconds.")
        require(
            0.0 <= memory_share < 1.0,
            "memory_share",
            got=memory_share,
            expected="a number from 0 to below 1",
            fix="It is the share of a worker's memory in which it keeps rows; 0 keeps none.",
        )
        self.retries, self.timeout, self.memory_share = retries, timeout, memory_share
        self.ledger = Ledger()

    def each_part(
        self, source: Source, layout: Layout, tasks: Sequence[Task], parts: Sequence[int]
    ) -> Generator[list[Any], None, None]:
        yield from Pass(self, source, layout, tasks, parts).results()
