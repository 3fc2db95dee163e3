"""One problem of the zoo: its family, why it is hard, and how it is made."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from coreset_mcmc_benchmarks.verdicts.problems import Problem

ROWS, SIZE = 2_000, 200
"""Of most problems: rows of the data and of the coreset. One shape, so that programs are compiled once."""


class Entry(NamedTuple):
    """A problem that is made when it is needed."""

    name: str
    family: str
    make: Callable[[], Problem]


def generator(name: str) -> np.random.Generator:
    """Random numbers that belong to the name of a problem."""
    return np.random.default_rng(zlib.crc32(name.encode()))
