"""What a worker does, of whatever cluster: one part of the rows for one order.

It opens parcels and keeps them, so that programs are compiled once; it keeps rows, so that they are read once. What it
needs and has not got it asks for: workers come and go, and whoever sends must not have to know what became of them.
"""

from __future__ import annotations

import pickle
import time
import traceback
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.entry_point import entry_point
from coreset_mcmc.core.errors import InputError, RunError
from coreset_mcmc.core.types import Batch
from coreset_mcmc.data.engine import on_part
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.leaf import Leaf
from coreset_mcmc.data.source import Source
from coreset_mcmc.data.task import Task
from coreset_mcmc.engines.keeping import KeptRows, Parcels, PartName, PartRows, size_of
from coreset_mcmc.engines.parcels import Order, Reply, cargo_name, versions

PARCELS = Parcels()
ROWS = KeptRows()
"""Of this process."""

SentRows = list[tuple[Batch, np.ndarray | None]]
"""The rows of each leaf of a part and how often each counts."""


def carry_out(worker: str, theirs: dict[str, str], order: bytes, names: Sequence[str], *cargo: Any) -> Reply:
    """Carry out a pickled :class:`Order`; ``cargo`` are parcels and rows of these names."""
    require_same_versions(worker, theirs)
    with jax.enable_x64(True):  # or JAX's arrays lose digits when they are unpickled
        return _carry_out(worker, pickle.loads(order), dict(zip(names, cargo, strict=True)))


def _carry_out(worker: str, order: Order, cargo: dict[str, Any]) -> Reply:
    started, results, part = time.monotonic(), [], order.parts[0]
    try:
        parcels: dict[str, Any] = {wanted: _opened(wanted, cargo) for wanted in _wanted(order)}
        missing = [wanted for wanted, content in parcels.items() if content is None]
        if order.source is None:
            absent = [part for part in order.parts if ROWS.get(_name(order, part)) is None]
            missing += [cargo_name(part) for part in absent if cargo_name(part) not in cargo]
        if missing:
            return Reply(worker, missing=tuple(missing))
        arguments: list[Any] = parcels[order.arguments]
        tasks = [Task(parcels[program], own) for program, own in zip(order.programs, arguments, strict=True)]
        for part in order.parts:
            rows = _rows(order, part, parcels.get(order.source or ""), cargo.get(cargo_name(part), []))
            results.append([_in_numpy(result) for result in entry_point(on_part)(rows, order.layout, tasks, part)])
    except Exception as error:
        return Reply(worker, error=_pickled(error), failed=part)
    kept = tuple(part for part in order.parts if ROWS.get(_name(order, part)) is not None)
    return Reply(worker, results, kept, time.monotonic() - started)


def _name(order: Order, part: int) -> PartName:
    return PartName(order.rows, order.layout.leaf_rows, part)


def _rows(order: Order, part: int, source: Source | None, sent: SentRows) -> PartRows:
    layout, numbers = order.layout, order.layout.leaves_of_part(part)
    if source is None:
        leaves = [Leaf(layout, number, *leaf) for number, leaf in zip(numbers, sent, strict=False)]
        return PartRows(ROWS, _name(order, part), _Sent(leaves), sum(map(size_of, leaves)), order.room)
    num_rows = layout.rows_of_leaf(numbers[-1])[1] - layout.rows_of_leaf(numbers[0])[0]
    return PartRows(ROWS, _name(order, part), source, source.bytes_per_row * num_rows, order.room)


class _Sent(NamedTuple):
    """Rows that came along with an order."""

    all_leaves: list[Leaf]

    def leaves(self, layout: Layout, numbers: Sequence[int]) -> Iterator[Leaf]:
        return iter(self.all_leaves)


def _wanted(order: Order) -> list[str]:
    return [*order.programs, order.arguments, *([order.source] if order.source else [])]


def _opened(name: str, cargo: dict[str, Any]) -> Any | None:
    content = PARCELS.get(name)
    if content is None and name in cargo:
        content = PARCELS.keep(name, pickle.loads(cargo[name]))
    return content


def require_same_versions(worker: str, theirs: dict[str, str]) -> None:
    """Refuse to work with other versions of what matters."""
    ours = versions()
    differing = [name for name in theirs if ours.get(name) != theirs[name]]
    if differing:
        raise InputError(
            f"worker {worker}",
            got=", ".join(f"{name} {ours.get(name, 'missing')}" for name in differing),
            expected=", ".join(f"{name} {theirs[name]}" for name in differing),
            fix="Install the same versions on workers as here, and start the workers anew.",
        )


def _in_numpy(result: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf) if isinstance(leaf, jax.Array) else leaf, result)


def _pickled(error: Exception) -> bytes:
    """The exception itself if it survives that, with the worker's own traceback as a note."""
    import cloudpickle

    error.add_note("On the worker:\n" + "".join(traceback.format_exception(error)))
    try:
        data: bytes = cloudpickle.dumps(error.with_traceback(None))
        pickle.loads(data)
    except Exception:
        data = pickle.dumps(RunError(f"{type(error).__name__}: {error}"))
    return data
