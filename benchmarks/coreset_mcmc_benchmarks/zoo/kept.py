"""Truths that were computed before: in a folder, by the name of the problem and a digest of its rows.

A truth is a grid over all rows, seconds of work each, so a table of a hundred problems that is made again on other code
should not pay for it again. Which folder, if any, is said for the time of a ``with`` block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import jax
import numpy as np

from coreset_mcmc_benchmarks.verdicts.problems import Moments

FOLDER: ContextVar[Path | None] = ContextVar("folder of truths", default=None)
P = ParamSpec("P")


@contextmanager
def kept_in(folder: Path | None) -> Iterator[None]:
    """Truths that are computed meanwhile are kept there, and found again."""
    token = FOLDER.set(folder)
    try:
        yield
    finally:
        FOLDER.reset(token)


def digest(arguments: Any) -> str:
    """Of rows, boxes and names; functions count by their names."""
    sums = hashlib.sha256()
    for leaf in jax.tree.leaves(arguments):
        named = getattr(leaf, "name", None) or getattr(leaf, "__qualname__", None)
        sums.update(named.encode() if named else np.ascontiguousarray(leaf).tobytes())
    return sums.hexdigest()[:20]


def kept(compute: Callable[P, Moments]) -> Callable[P, Moments]:
    """The same function, which remembers."""

    @wraps(compute)
    def remembering(*arguments: P.args, **options: P.kwargs) -> Moments:
        folder = FOLDER.get()
        if folder is None:
            return compute(*arguments, **options)
        path = folder / f"{compute.__name__}-{digest((arguments, options))}.npz"
        if not path.exists():
            made = compute(*arguments, **options)
            folder.mkdir(parents=True, exist_ok=True)
            np.savez(path, mean=made.mean, covariance=made.covariance, ess=made.ess)
        with np.load(path) as stored:
            return Moments(stored["mean"], stored["covariance"], float(stored["ess"]))

    return remembering
