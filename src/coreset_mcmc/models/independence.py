"""Whether rows are independent, tried out before any work starts.

A coreset needs a log-likelihood that is a sum over rows, each depending on the position and on its own row alone. A
time series, a column centred inside the model or a normalisation over the batch look the same from outside. So a few
rows are evaluated at random positions, then in another order and then without some of them: every row must keep its
value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.errors import InputError
from coreset_mcmc.core.types import Batch, Position

NUM_ROWS = 8
"""Rows that are tried."""
NUM_FEWER = 5
TOLERANCE = 1e-6
"""Relative to the size of the values: rounding in single precision passes, a dependence does not."""


def num_rows_of(batch: Batch) -> int:
    """The length of the leading axis."""
    return int(np.shape(jax.tree.leaves(batch)[0])[0])


def first_rows(batch: Batch, count: int) -> Batch:
    """The first few rows."""
    return jax.tree.map(lambda leaf: leaf[:count], batch)


def some_rows(batch: Batch, count: int = NUM_ROWS, shift: int = 0) -> Batch:
    """Rows spread evenly over the data; another ``shift`` gives others."""
    size = num_rows_of(batch)
    places = (np.linspace(0, size - 1, min(count, size)).astype(int) + shift) % size
    return jax.tree.map(lambda leaf: leaf[places], batch)


def random_position(generator: np.random.Generator, position: Position, radius: float = 1.0) -> Position:
    """Uniform numbers in the shapes of a position."""
    return jax.tree.map(lambda leaf: generator.uniform(-radius, radius, size=np.shape(leaf)), position)


def agree(one: Any, other: Any) -> bool:
    """Equal up to rounding; infinities of the same sign and NaN count as equal."""
    return bool(np.allclose(np.asarray(one), np.asarray(other), rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True))


def check_rows_are_independent(
    log_likelihood: Callable[[Position, Batch], Any],
    position: Position,
    batch: Batch,
    *,
    subject: str,
    num_positions: int = 2,
) -> None:
    """Refuse a log-likelihood whose value for a row changes with the other rows of the batch or with their order."""
    generator = np.random.default_rng(0)
    rows = some_rows(batch)
    count = num_rows_of(rows)
    order = np.roll(np.arange(count)[::-1], 1)
    mixed = jax.tree.map(lambda leaf: leaf[order], rows)
    for number in range(num_positions):
        at = position if number == 0 else random_position(generator, position)
        values = np.asarray(log_likelihood(at, rows))
        is_same_in_any_order = agree(np.asarray(log_likelihood(at, mixed)), values[order])
        fewer = min(NUM_FEWER, max(count - 1, 1))
        is_same_alone = agree(np.asarray(log_likelihood(at, first_rows(rows, fewer))), values[:fewer])
        if not (is_same_in_any_order and is_same_alone):
            what = "the number or the values of the other rows" if is_same_in_any_order else "the order of the rows"
            raise InputError(
                subject,
                got=f"a log-likelihood of a row that changes with {what}",
                expected="rows that are independent given the parameters",
                fix="A coreset cannot stand in for a time series or another dependence across rows. If rows are "
                "independent, do what uses all of them (centring, scaling, counting, N / batch size) before the model "
                "and pass the results as constants.",
            )
