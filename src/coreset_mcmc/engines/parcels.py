"""What is sent to workers: pickled once, named by its content, so that nobody is sent the same twice.

A program must be the *same object* from pass to pass on a worker, or the worker would compile it in every pass. So a
worker keeps what it unpacked under the name of the parcel.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from functools import lru_cache
from importlib.metadata import version
from typing import Any, NamedTuple
from uuid import uuid4
from weakref import WeakKeyDictionary

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.data.layout import Layout
from coreset_mcmc.data.source import Source
from coreset_mcmc.data.task import Program, Task


class Parcel(NamedTuple):
    """Pickled content and its name."""

    name: str
    content: bytes


class Order(NamedTuple):
    """What a worker is asked to do; parcels by their names."""

    parts: tuple[int, ...]
    layout: Layout
    programs: tuple[str, ...]
    arguments: str
    source: str | None
    """None if the rows come along."""
    rows: str
    """The name of the rows as a whole, under which a worker keeps parts of them."""
    room: int
    """Bytes of memory in which a worker may keep rows."""


class Reply(NamedTuple):
    """What a worker has to say: results, or what it lacks, or the exception that was raised, pickled."""

    worker: str
    results: list[list[Any]] | None = None
    """Of each task, for each part."""
    kept: tuple[int, ...] = ()
    """Parts whose rows it keeps."""
    seconds: float = 0.0
    missing: tuple[str, ...] = ()
    error: bytes | None = None
    failed: int = -1
    """The part for which the exception was raised."""


def cargo_name(part: int) -> str:
    """The name under which the rows of a part are sent."""
    return f"rows of part {part}"


@lru_cache(maxsize=1)
def versions() -> dict[str, str]:
    """What must be the same here and on workers, for pickles to open and for numbers to be the same to the last bit."""
    python = ".".join(platform.python_version_tuple()[:2])
    return {"coreset-mcmc": version("coreset-mcmc"), "jax": version("jax"), "numpy": version("numpy"), "Python": python}


def packed(content: Any, subject: str) -> Parcel:
    """Any object, pickled with its closures."""
    import cloudpickle

    try:
        data = cloudpickle.dumps(content)
    except Exception as error:
        raise InputError(
            subject,
            got=f"what cannot be pickled ({type(error).__name__}: {error})",
            expected="what can be sent to workers",
            fix="Models and sources for a cluster must not hold open files, locks or connections.",
        ) from error
    return Parcel(hashlib.blake2b(data, digest_size=16).hexdigest(), data)


@lru_cache(maxsize=64)
def packed_program(program: Program) -> Parcel:
    """Equal programs make one parcel."""
    return packed(program, "program")


_sources: WeakKeyDictionary[Source, Parcel] = WeakKeyDictionary()
_names: WeakKeyDictionary[Source, str] = WeakKeyDictionary()


def packed_source(source: Source) -> Parcel:
    """A source that reads for itself, wherever it is."""
    if source not in _sources:
        _sources[source] = packed(source, "source")
    return _sources[source]


def name_of_rows(source: Source) -> str:
    """Rows in this process have a name of their own: their values are too many to be compared."""
    return _names.setdefault(source, uuid4().hex)


def packed_arguments(tasks: Sequence[Task]) -> Parcel:
    """Those of all tasks of a pass."""
    return packed([task.arguments for task in tasks], "arguments")
