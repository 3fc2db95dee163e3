"""Who passes over the rows: one process here, workers elsewhere.

An engine does one thing: it carries out tasks on all parts of a source and hands over their results in the order of the
parts. Sums, samples, outputs for each row, all that is built on it, is written once, in
:mod:`coreset_mcmc.data.rows`.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from queue import Queue
from threading import Event, Thread
from typing import Any, Protocol

import jax
import numpy as np

from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.leaf import Leaf
from coreset_mcmc.data.source import Source
from coreset_mcmc.data.task import Task


class Engine(ABC):
    """Carries out tasks."""

    @abstractmethod
    def each_part(
        self, source: Source, layout: Layout, tasks: Sequence[Task], parts: Sequence[int]
    ) -> Generator[list[Any], None, None]:
        """The result of each task for each of these parts, in their order."""


def merged(tasks: Sequence[Task], one: list[Any] | None, other: list[Any]) -> list[Any]:
    """Results of several tasks for earlier rows and for later ones, put together."""
    if one is None:
        return other
    return [task.program.merge(*pair) for task, *pair in zip(tasks, one, other, strict=True)]


def on_leaf(tasks: Sequence[Task], leaf: Leaf) -> list[Any]:
    """The result of each task for one leaf; in whatever thread, in double precision."""
    with jax.enable_x64(True):
        return [task.program.on_leaf(leaf, task.arguments) for task in tasks]


_COMPILED: set[int] = set()
"""Programs that have run in this process. A wrong entry costs a second compilation and nothing else."""


def _programs(source: Source, layout: Layout, tasks: Sequence[Task]) -> int:
    """What the compiled programs of a pass depend on."""
    columns, structure = jax.tree.flatten((source.schema, [task.arguments for task in tasks]))
    shapes = tuple((np.shape(column), str(getattr(column, "dtype", type(column)))) for column in columns)
    return hash((tuple(task.program for task in tasks), layout.leaf_rows, structure, shapes))


class GivesLeaves(Protocol):
    """A source, or a part of one that a worker has kept."""

    def leaves(self, layout: Layout, numbers: Sequence[int]) -> Iterator[Leaf]:
        """These leaves, in ascending order."""


def on_part(source: GivesLeaves, layout: Layout, tasks: Sequence[Task], part: int) -> list[Any]:
    """The results for one part, leaf after leaf: what a worker of any engine does."""
    total: list[Any] | None = None
    for leaf in source.leaves(layout, layout.leaves_of_part(part)):
        total = merged(tasks, total, on_leaf(tasks, leaf))
    assert total is not None
    return total


class Local(Engine):
    """Passes in this process: one thread reads ahead, others compute, results are put together in order.

    Args:
        threads: how many leaves are computed on at the same time; by default one for each core.
    """

    def __init__(self, threads: int | None = None) -> None:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.threads = threads or cores

    def each_part(
        self, source: Source, layout: Layout, tasks: Sequence[Task], parts: Sequence[int]
    ) -> Generator[list[Any], None, None]:
        for part, results in self._leaves_by_part(source, layout, tasks, parts):
            total: list[Any] | None = None
            for result in results:
                total = merged(tasks, total, result)
            assert total is not None, part
            yield total

    def _leaves_by_part(
        self, source: Source, layout: Layout, tasks: Sequence[Task], parts: Sequence[int]
    ) -> Iterator[tuple[int, Iterator[list[Any]]]]:
        numbers = [number for part in parts for number in layout.leaves_of_part(part)]
        results = self._each_leaf(source, layout, tasks, numbers)
        for part in parts:
            yield part, (next(results) for _ in layout.leaves_of_part(part))

    def _each_leaf(
        self, source: Source, layout: Layout, tasks: Sequence[Task], numbers: Sequence[int]
    ) -> Iterator[list[Any]]:
        """Results of leaves in their order, with a bounded number of leaves in memory."""
        programs = _programs(source, layout, tasks)
        num_alone = len(numbers) if self.threads == 1 else 0 if programs in _COMPILED else 1
        first, numbers = list(numbers[:num_alone]), numbers[num_alone:]
        for leaf in source.leaves(layout, first):  # compiles what is not compiled, once
            yield on_leaf(tasks, leaf)
        _COMPILED.add(programs)
        if not numbers:
            return
        with _ReadAhead(source, layout, numbers, self.threads) as leaves, ThreadPoolExecutor(self.threads) as pool:
            waiting: deque[Future[list[Any]]] = deque()
            try:
                for leaf in leaves:
                    waiting.append(pool.submit(on_leaf, tasks, leaf))
                    del leaf
                    if len(waiting) > self.threads:
                        yield waiting.popleft().result()
                while waiting:
                    yield waiting.popleft().result()
            finally:
                for future in waiting:
                    future.cancel()


class _ReadAhead:
    """Leaves read by a thread of their own, a few ahead of whoever uses them."""

    def __init__(self, source: Source, layout: Layout, numbers: Sequence[int], ahead: int) -> None:
        self._source, self._layout, self._numbers = source, layout, numbers
        self._queue: Queue[Leaf | BaseException | None] = Queue(ahead)
        self._stop = Event()
        self._thread = Thread(target=self._read, name="coreset-mcmc-reader", daemon=True)

    def __enter__(self) -> Iterator[Leaf]:
        self._thread.start()
        return self._leaves()

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        while self._thread.is_alive():
            while not self._queue.empty():
                self._queue.get_nowait()
            self._thread.join(0.01)

    def _leaves(self) -> Iterator[Leaf]:
        while (item := self._queue.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item

    def _read(self) -> None:
        try:
            for leaf in self._source.leaves(self._layout, self._numbers):
                self._queue.put(leaf)
                if self._stop.is_set():
                    return
            self._queue.put(None)
        except BaseException as error:
            self._queue.put(error)
