"""To accept or not, from as few rows as a sequential test asks for.

Metropolis-Hastings accepts theta* if the mean over all N rows of delta_n = l_n(theta*) - l_n(theta) exceeds

    threshold = (log u + log pi_0(theta) - log pi_0(theta*) + log Q(theta* | theta) - log Q(theta | theta*)) / N.

A sequential test takes rows in random order without replacement and looks at the running mean now and then, until it is
sure on which side of the threshold the full mean lies. After all N rows there is nothing left to doubt: the test ends
there, whatever its statistics say, and the decision is the exact one.

Mean and spread are updated block by block (Chan, Golub and LeVeque 1983, the block form of Welford's update) and are
known at every look inside a block, so a test may look at 1, 2, 4, ... rows although they are evaluated at once.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.types import Key, Position
from coreset_mcmc.data.inside import DataSource
from coreset_mcmc.methods.subsampling.lazy_batches import Blocks, plan_blocks, row_order
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.target import finite_or_impossible


class Evidence(NamedTuple):
    """What is known about the changes delta_n at each of several looks."""

    look: jax.Array
    """Number of the look, from 0."""
    num_rows: jax.Array
    mean: jax.Array
    sum_of_squares: jax.Array
    """Squared deviations from the mean, summed over the rows so far."""
    largest: jax.Array
    """The largest absolute change so far."""


class SequentialTest(Protocol):
    """When to look, and when a look is enough."""

    @property
    def block_width(self) -> int:
        """How many rows to evaluate at once to begin with."""

    def looks(self, size: int) -> np.ndarray:
        """Increasing numbers of rows at which to look, the last of which is ``size``."""

    def is_enough(self, evidence: Evidence, threshold: jax.Array, bound: jax.Array, size: int) -> jax.Array:
        """Whether each look is enough to tell the side of the threshold, as booleans; comparisons with NaN are no.

        ``bound`` is at least the absolute change of any row, if the test asked for that.
        """


class Decision(NamedTuple):
    """The outcome of one test, and what the rows seen tell about the log-likelihood."""

    is_accepted: jax.Array
    num_used: jax.Array
    """Rows that the deciding look used."""
    num_rows: jax.Array
    """Rows evaluated: at least those used, up to the end of the last block."""
    total: jax.Array
    """Log-likelihood of the evaluated rows, summed, at the position kept."""
    is_possible: jax.Array
    """Whether all of these were finite; those that are not are left out of the total."""


class _Progress(NamedTuple):
    num_rows: jax.Array
    num_looks: jax.Array
    mean: jax.Array
    sum_of_squares: jax.Array
    largest: jax.Array
    totals: jax.Array
    """Summed log-likelihoods at the position and at the proposal, (2,)."""
    impossible: jax.Array
    """Whether some row was impossible at the position and at the proposal, (2,)."""
    is_decided: jax.Array
    is_accepted: jax.Array
    num_used: jax.Array


def decide(
    key: Key,
    test: SequentialTest,
    model: Model,
    data: DataSource,
    position: Position,
    proposal: Position,
    threshold: jax.Array,
    bound: jax.Array,
) -> Decision:
    """Whether to move from ``position`` to ``proposal``, by looking at rows in the random order that ``key`` fixes.

    A threshold of +inf means that the proposal is impossible already: it is refused without looking at a row. A row
    that is impossible under the proposal settles the matter too; one that is impossible at the position itself (which
    a chain can reach without having seen that row) lets the chain leave.
    """
    size = data.size
    order = row_order(key, size)
    both = jax.tree.map(lambda here, there: jnp.stack([here, there]), position, proposal)
    looks = test.looks(size)

    def look_at(blocks: Blocks, progress: _Progress) -> _Progress:
        places = jnp.arange(blocks.width)
        batch = data.take(order(progress.num_rows + places))
        values = finite_or_impossible(jax.vmap(lambda at: model.log_likelihood(at, batch))(both))
        is_impossible = values == -jnp.inf
        values = jnp.where(is_impossible, 0.0, values)
        change = values[1] - values[0]

        look = progress.num_looks + jnp.arange(_most_looks(looks, blocks))
        num_rows = jnp.append(jnp.asarray(looks, jnp.int32)[look], progress.num_rows + blocks.width)
        evidence = _evidence(progress, look, num_rows, change)
        end = progress.num_rows + blocks.width
        at_looks = jax.tree.map(lambda leaf: leaf[: look.size], evidence)
        is_due = (look < looks.size) & (at_looks.num_rows <= end)
        is_enough = is_due & (test.is_enough(at_looks, threshold, bound, size) | (at_looks.num_rows == size))
        first = jnp.argmax(is_enough)

        impossible = progress.impossible | jnp.any(is_impossible, axis=1)
        is_settled = jnp.any(impossible)
        return _Progress(
            num_rows=end,
            num_looks=progress.num_looks + jnp.sum(is_due, dtype=jnp.int32),
            mean=evidence.mean[-1],
            sum_of_squares=evidence.sum_of_squares[-1],
            largest=evidence.largest[-1],
            totals=progress.totals + jnp.sum(values, axis=1),
            impossible=impossible,
            is_decided=is_settled | jnp.any(is_enough),
            is_accepted=jnp.where(is_settled, ~impossible[1], evidence.mean[first] > threshold),
            num_used=jnp.where(is_settled, end, num_rows[first]),
        )

    progress = _nothing_seen(threshold)
    for blocks in plan_blocks(size, test.block_width):
        progress = jax.lax.while_loop(partial(_goes_on, blocks), partial(look_at, blocks), progress)
    kept = progress.is_accepted.astype(jnp.int32)
    return Decision(
        is_accepted=progress.is_accepted,
        num_used=progress.num_used,
        num_rows=progress.num_rows,
        total=progress.totals[kept],
        is_possible=~progress.impossible[kept],
    )


def _goes_on(blocks: Blocks, progress: _Progress) -> jax.Array:
    return ~progress.is_decided & (progress.num_rows < blocks.end)


def _nothing_seen(threshold: jax.Array) -> _Progress:
    zero, none = jnp.zeros_like(threshold), jnp.zeros((), jnp.int32)
    return _Progress(
        num_rows=none,
        num_looks=none,
        mean=zero,
        sum_of_squares=zero,
        largest=zero,
        totals=jnp.stack([zero, zero]),
        impossible=jnp.array([False, False]),
        is_decided=threshold == jnp.inf,
        is_accepted=jnp.array(False),
        num_used=none,
    )


def _most_looks(looks: np.ndarray, blocks: Blocks) -> int:
    """The most looks that fall into any one of the blocks, at least one to have something to compare."""
    edges = blocks.start + blocks.width * np.arange(blocks.num_blocks + 1)
    return max(int(np.diff(np.searchsorted(looks, edges, side="right")).max()), 1)


def _evidence(progress: _Progress, look: jax.Array, num_rows: jax.Array, change: jax.Array) -> Evidence:
    """Moments after ``num_rows`` rows, for each look in this block and for its end.

    Changes are measured from the mean so far (at first from the first change): small differences keep their digits, and
    changes that are all equal have a spread of exactly zero.
    """
    centre = jnp.where(progress.num_rows == 0, change[0], progress.mean)
    is_inside = jnp.arange(change.size) < (num_rows - progress.num_rows)[:, None]
    deviation = jnp.where(is_inside, change - centre, 0.0)
    shift = jnp.sum(deviation, axis=1)
    squares = jnp.sum(deviation**2, axis=1) - shift**2 / num_rows
    return Evidence(
        look=look,
        num_rows=num_rows,
        mean=centre + shift / num_rows,
        sum_of_squares=jnp.maximum(progress.sum_of_squares + squares, 0.0),
        largest=jnp.maximum(progress.largest, jnp.max(jnp.where(is_inside, jnp.abs(change), 0.0), axis=1)),
    )
