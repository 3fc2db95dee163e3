"""Rows drawn without replacement, with chances that follow a score.

Row n is included with probability

    pi_n = min(1, c (alpha / N + (1 - alpha) score_n / sum score)),      sum_n pi_n = M.

Rows that would be drawn more than once are taken for sure and leave their excess to the others. A sum over the sample
with factors 1 / pi_n is unbiased (Horvitz and Thompson 1952), and rows that are sure to be there add no error to it.
The uniform share alpha keeps rows in whose score says too little of them.

Rows are drawn by systematic sampling: one uniform number places an even comb on the cumulated probabilities of rows in
random order. (In the order of the data neighbours, which are often alike, would keep each other out: on the paper's
delays, M = 100, that gave coresets with a median KL of 0.5 instead of 0.1.) Several samples share the order, and the
program: compiling it takes longer than running it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Key
from coreset_mcmc.data.shuffle import permuted

UNIFORM_SHARE = 0.3
"""alpha."""

MAX_CLIPPINGS = 50
"""Most rounds in which rows that are sure to be included leave their excess to the others; a few suffice."""

ALMOST_ONE = 1.0 - 1e-9
"""Below one by more than rounding, so that no tooth of the comb falls on a row twice."""


class RowSample(NamedTuple):
    """Distinct rows, and the chance that each had."""

    indices: jax.Array
    probabilities: jax.Array


def inclusion_probabilities(scores: jax.Array, count: jax.Array | int) -> jax.Array:
    """pi (N,), which sum to ``count``; a score that is not a number counts as zero."""
    size = scores.shape[0]
    scores = jnp.where(jnp.isfinite(scores), scores, 0.0)
    total = jnp.sum(scores)
    share = jnp.where(total > 0, UNIFORM_SHARE, 1.0)
    wanted = share / size + (1.0 - share) * scores / jnp.where(total > 0, total, 1.0)

    def clip(state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        probabilities, _, num_rounds = state
        is_sure = probabilities >= ALMOST_ONE
        num_sure = jnp.sum(is_sure)
        others = jnp.sum(jnp.where(is_sure, 0.0, wanted))
        scaled = jnp.where(is_sure, 1.0, wanted * (count - num_sure) / jnp.where(others > 0, others, 1.0))
        return jnp.minimum(scaled, 1.0), num_sure, num_rounds + 1

    def has_news(state: tuple[jax.Array, jax.Array, jax.Array]) -> jax.Array:
        probabilities, num_sure, num_rounds = state
        return (jnp.sum(probabilities >= ALMOST_ONE) != num_sure) & (num_rounds < MAX_CLIPPINGS)

    start = (jnp.minimum(count * wanted, 1.0), jnp.zeros((), jnp.int64), jnp.zeros((), jnp.int32))
    probabilities, _, _ = jax.lax.while_loop(has_news, clip, start)
    return jnp.minimum(probabilities, ALMOST_ONE)


def sample_rows(key: Key, scores: Sequence[jax.Array], counts: Sequence[int]) -> list[RowSample]:
    """For each of several scores (N,) a sample of so many distinct rows."""
    size = scores[0].shape[0]
    order_key, comb_key = jax.random.split(key)
    order = permuted(order_key, size, jnp.arange(size))
    offsets = jax.random.uniform(comb_key, (len(counts),))

    def one_sample(score: jax.Array, count: jax.Array, offset: jax.Array) -> RowSample:
        probabilities = inclusion_probabilities(score, count)
        cumulated = jnp.cumsum(probabilities[order])
        comb = (jnp.arange(max(counts)) + offset) / count * cumulated[-1]
        chosen = order[jnp.clip(jnp.searchsorted(cumulated, comb, side="right"), 0, size - 1)]
        return RowSample(chosen, probabilities[chosen])

    drawn = jax.vmap(one_sample)(jnp.stack(scores), jnp.asarray(counts), offsets)
    return [
        RowSample(drawn.indices[number, :count], drawn.probabilities[number, :count])
        for number, count in enumerate(counts)
    ]
