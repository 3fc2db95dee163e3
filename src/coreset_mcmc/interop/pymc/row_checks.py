"""Does each row stand alone? A numerical test of the one thing a coreset rests on.

The log-likelihood of some rows, in any order, must be the same numbers that the full data gives for them. A model with
one latent for each row, with a size written into it, or with time running from row to row fails, whatever its code
looks like.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.precision import as_working_array
from coreset_mcmc.core.types import Batch, Position

NUM_POSITIONS = 2
JITTER = 0.3
"""Standard deviation of the random positions around the start, so that no parameter stays at a special value."""
BATCH_SIZE = 3
NUM_BATCHES = 4
TOLERANCE = 1e-8
"""Relative to the largest log-likelihood: sums over rows may be taken in another order, nothing else may change."""


def random_positions(start: Position, count: int = NUM_POSITIONS, seed: int = 0) -> Position:
    """Positions around a start, with a leading axis."""
    rng = np.random.default_rng(seed)

    def around(leaf: Any) -> jax.Array:
        values = np.asarray(leaf, np.float64)
        return jnp.asarray(values + JITTER * rng.normal(size=(count, *values.shape)))

    return jax.tree.map(around, start)


def check_rows_stand_alone(
    log_likelihood: Callable[[Position, Batch], jax.Array],
    start: Position,
    data: Batch,
    *,
    subject: str,
    hint: str = "",
) -> None:
    """Refuse a log-likelihood whose value for a row depends on which other rows are there.

    Args:
        log_likelihood: one value for each row of a batch.
        start: a position; the test is done near it.
        data: all rows.
        subject: whose log-likelihood it is, for the message.
        hint: what else the message should say when a batch of few rows cannot be evaluated.
    """
    rows = jax.tree.map(as_working_array, data)
    size = jax.tree.leaves(rows)[0].shape[0]
    positions = random_positions(start)
    function = jax.jit(jax.vmap(log_likelihood, in_axes=(0, None)))
    expected = np.asarray(_values(function, positions, rows, size, subject, hint))
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0, where=np.isfinite(expected))))
    rng = np.random.default_rng(1)
    for _ in range(NUM_BATCHES):  # of one size, so that they share a program
        places = rng.permutation(size)[:BATCH_SIZE]
        batch = jax.tree.map(lambda leaf, places=places: leaf[places], rows)
        got = np.asarray(_values(function, positions, batch, len(places), subject, hint))
        require(
            np.allclose(got, expected[:, places], rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True),
            subject,
            got="a row whose log-likelihood changes when other rows are left out",
            expected="rows that are independent given the parameters",
            fix="Time series, cumulative sums, ranks, Gaussian processes over the rows and quantities such as a mean "
            "of the data computed inside the model tie rows together. Compute such columns before the model (lagged "
            "values as data, a mean as a number), or make one row of each independent unit.",
        )
    single = jax.tree.map(lambda leaf: leaf[:1], rows)
    _values(partial(jax.eval_shape, function), positions, single, 1, subject, hint)


def _values(function: Any, positions: Position, batch: Batch, count: int, subject: str, hint: str) -> jax.Array:
    try:
        values = function(positions, batch)
    except InputError:
        raise
    except Exception as error:
        summary = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise InputError(
            subject,
            got=f"{type(error).__name__} on {count} of the rows: {summary}",
            expected="a log-likelihood that can be evaluated for any number of rows",
            fix=hint
            or "A size that is written into the model (shape=len(y), numpy arrays built from it inside the model) "
            "fixes the number of rows: take it from the data, as in y.shape[0], or leave it out.",
        ) from error
    require(
        values.shape[1:] == (count,),
        subject,
        got=f"log-likelihoods of shape {values.shape[1:]} for {count} rows",
        expected=f"shape ({count},), one value for each row",
        fix="Rows run along the first axis of the observed values, and their log-likelihoods must not be summed. A "
        "time series, a Gaussian process or a multivariate normal over all rows has one density for all of them: make "
        "one row of each independent unit.",
    )
    return values
