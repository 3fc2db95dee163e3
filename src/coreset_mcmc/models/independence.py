"""Whether rows are independent, tried out before any work starts.

A coreset needs a log-likelihood that is a sum over rows, each depending on the position and on its own row alone. A
time series, a column centred inside the model or a division by the number of rows look the same from outside. So a few
rows are evaluated together, and then some of them in another order: every row must keep its value. Every model goes
through this test; how a log-likelihood is evaluated, in Python or compiled, is up to the caller.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.compilation import quick_compilation
from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.models.rows import num_rows_of, rows_at, unlike_rows

Evaluate = Callable[[Position, tuple[Batch, ...]], tuple[Any, ...]]
"""Log-likelihoods (P, B) of each of several batches, at P positions along a leading axis."""

JITTER = 0.3
"""Standard deviation of the random factors, on the scale of logarithms, that move a position away from its start."""
TOLERANCE = 64 * float(np.finfo(np.float32).eps)
"""Relative to the value of a row, or to one if it is smaller: 7.6e-6.

Other batches may add up in another order. A sum of n terms then differs by about the square root of n roundings; this
is what 4 096 terms in single precision may do, which a user's own function may compute in. A dependence is larger: the
mean of the others enters by its whole size.
"""
ADVICE = (
    "A coreset cannot stand in for a time series, a Gaussian process over the rows or another dependence between them: "
    "make one row of each independent unit. If rows are independent, do what uses all of them (centring, scaling, "
    "ranks, cumulative sums, counting, N / batch size) before the model and pass the results as columns or as numbers."
)


def random_positions(start: Position, count: int, seed: int = 0) -> Position:
    """Positions around a start, with a leading axis: numbers keep their signs, zeros move, whole numbers stay.

    A special value of a parameter, such as a slope of zero, could hide a dependence.
    """
    generator = np.random.default_rng(seed)

    def around(leaf: Any) -> np.ndarray:
        values = np.repeat(np.asarray(leaf)[None], count, axis=0)
        if not np.issubdtype(values.dtype, np.floating):
            return values
        noise = JITTER * generator.normal(size=values.shape)
        return np.where(values == 0, noise, values * np.exp(noise))

    return jax.tree.map(around, start)


def start_and_another(start: Position) -> Position:
    """A start and a random position near it, along a leading axis."""
    return jax.tree.map(
        lambda leaf, moved: np.concatenate([np.asarray(leaf)[None], moved]), start, random_positions(start, 1)
    )


def agree(one: Any, other: Any) -> bool:
    """Equal up to rounding; infinities of the same sign and NaN count as equal."""
    is_same_shape = np.shape(one) == np.shape(other)
    return is_same_shape and bool(np.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True))


def values_on(
    log_likelihood: Callable[[Position, Batch], jax.Array], positions: Position, batches: tuple[Batch, ...]
) -> tuple[jax.Array, ...]:
    """An :data:`Evaluate` for a log-likelihood in JAX, to be compiled."""
    return tuple(jax.vmap(log_likelihood, in_axes=(0, None))(positions, batch) for batch in batches)


def compiled(log_likelihood: Callable[[Position, Batch], jax.Array]) -> Evaluate:
    """The same, compiled; it takes longer to compile than to run, so compilation is cut short."""
    return jax.jit(partial(values_on, log_likelihood), compiler_options=quick_compilation(0))


def check_rows_are_independent(
    evaluate: Evaluate, positions: Position, batch: Batch, *, subject: str, hint: str | None = None
) -> None:
    """Refuse a log-likelihood whose value for a row changes with the other rows of the batch or with their order.

    Args:
        evaluate: the log-likelihood.
        positions: where to try it, along a leading axis. They may be outside the support.
        batch: rows to choose from.
        subject: whose log-likelihood it is, for the message.
        hint: what to do if a few rows cannot be evaluated; without it such an error is raised as it is.
    """
    rows = unlike_rows(batch)
    count = num_rows_of(rows)
    backwards = np.arange(count)[::-1]
    some = backwards[: max(1, 5 * count // 8)]
    together, apart = _evaluated(evaluate, positions, (rows, rows_at(rows, some)), subject, hint)
    if agree(apart, together[:, some]):
        return
    same_rows, mixed = _evaluated(evaluate, positions, (rows, rows_at(rows, backwards)), subject, hint)
    is_same_in_any_order = agree(mixed, same_rows[:, backwards])
    what = "the number or the values of the other rows" if is_same_in_any_order else "the order of the rows"
    raise InputError(
        subject,
        got=f"a log-likelihood of a row that changes with {what}",
        expected="rows that are independent given the parameters",
        fix=ADVICE,
    )


def _evaluated(
    evaluate: Evaluate, positions: Position, batches: tuple[Batch, ...], subject: str, hint: str | None
) -> list[np.ndarray]:
    try:
        values = [np.asarray(part) for part in evaluate(positions, batches)]
    except InputError:
        raise
    except Exception as error:  # whatever the library behind the model raises
        if hint is None:
            raise
        summary = next(iter(str(error).strip().splitlines()), "")
        raise InputError(
            subject,
            got=f"{type(error).__name__} on a few of the rows: {summary}",
            expected="a log-likelihood that can be evaluated for any number of rows",
            fix=hint,
        ) from error
    for part, batch in zip(values, batches, strict=True):
        require(
            part.shape[1:] == (num_rows_of(batch),),
            subject,
            got=f"log-likelihoods of shape {part.shape[1:]} for {num_rows_of(batch)} rows",
            expected=f"shape ({num_rows_of(batch)},), one value for each row",
            fix=advice_on_shape(part.shape[1:], num_rows_of(batch)),
        )
    return values


def advice_on_shape(shape: tuple[int, ...], num_rows: int) -> str:
    """Why the log-likelihoods do not have the shape of the rows."""
    if not shape:
        return "Do not sum over rows: return the log-likelihood of each."
    if num_rows in shape:
        return "Rows run along the first axis of the data and of the log-likelihoods; sum over all other axes."
    return (
        f"The length {shape[0]} is written into the model, or comes from an array around it that is not in the data: "
        "take sizes from the rows that are passed, as in x.shape[0], and pass arrays with a value for each row as data."
    )
