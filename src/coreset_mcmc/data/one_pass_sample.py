"""Rows drawn without replacement by a score, in one pass over the rows.

Row n wants to be in the sample in proportion to

    a_n = alpha / N + (1 - alpha) score_n / (N m),

with m the mean score, known from a uniform sample beforehand. With a uniform number u_n that is a hash of the key and
the number of the row, the S rows with the lowest u_n / a_n are taken (sequential Poisson sampling, Ohlsson 1998), and
with t the lowest value that was not taken, row n had the chance pi_n = min(1, a_n t): sums with factors 1 / pi_n are
unbiased (the priority sampling of Duffield, Lund and Thorup 2007). Rows are the same however the data are divided. A
score that is not a finite number says that the row cannot be done without: it is taken for sure. The uniform share
alpha keeps rows in whose score says too little of them.

Systematic sampling in random order spreads more evenly but needs all N scores in memory and a second look at the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np

from coreset_mcmc.core.types import Batch
from coreset_mcmc.data.leaf import Leaf, widened
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.task import Program, RowFunction, Task, for_each_row

UNIFORM_SHARE = 0.3
"""alpha."""
SURE = 1e200
"""What a row wants that cannot be done without."""
RESERVE = 3.0
"""Rows up to this many times the expected threshold are kept until all are seen."""


class RowSample(NamedTuple):
    """Distinct rows, and the chance that each had; sorted by their numbers."""

    indices: np.ndarray
    """64-bit."""
    probabilities: np.ndarray
    rows: Batch
    """In working types."""


class _Kept(NamedTuple):
    """Candidates of one score: what decides, what they wanted, and the rows, as they are stored."""

    priority: np.ndarray
    wanted: np.ndarray
    indices: np.ndarray
    rows: Batch


@dataclass(frozen=True)
class _Keep(Program):
    """Candidates below a cut for each of several scores; the function returns a tuple of scores (B,)."""

    function: RowFunction

    def on_leaf(self, leaf: Leaf, arguments: Any) -> list[_Kept]:
        salt, scales, cuts, own = arguments
        scores = for_each_row(self.function, leaf.layout.block_rows, leaf.padded, own)
        found = [np.asarray(score)[: leaf.count] for score in scores]
        return _below(found, leaf.start, leaf.batch, salt, scales, cuts)

    def merge(self, one: list[_Kept], other: list[_Kept]) -> list[_Kept]:
        joined: list[_Kept] = jax.tree.map(lambda first, second: np.concatenate([first, second]), one, other)
        return joined


def _below(
    scores: Sequence[np.ndarray],
    start: int,
    batch: Batch,
    salt: np.uint64,
    scales: Sequence[tuple[float, float]],
    cuts: Sequence[float],
) -> list[_Kept]:
    """Of rows numbered from ``start`` those whose priority is below the cut, for each score."""
    numbers = start + np.arange(len(scores[0]), dtype=np.int64)
    uniform = hashed(salt, numbers)
    kept = []
    for score, scale, cut in zip(scores, scales, cuts, strict=True):
        wanted = _wanted(score, *scale)
        priority = uniform / wanted
        places = np.flatnonzero(priority <= cut)
        rows = jax.tree.map(lambda array, places=places: array[places], batch)
        kept.append(_Kept(priority[places], wanted[places], numbers[places], rows))
    return kept


def sample_by_scores(
    rows: Rows,
    function: RowFunction,
    arguments: Sequence[Any],
    counts: Sequence[int],
    *,
    seed: int,
    uniform_rows: Batch,
    description: str,
) -> list[RowSample]:
    """For each score that ``function(batch, weights, *arguments)`` returns a sample of so many rows.

    ``uniform_rows`` are a uniform sample, or all rows in their order, which then need no pass; they tell the scale of
    the scores.
    """
    known = _scores_of(rows, uniform_rows, function, arguments)
    scales = [_scale(score, rows.size) for score in known]
    cuts = [
        _cut(_wanted(score, *scale), count, rows.size)
        for score, scale, count in zip(known, scales, counts, strict=True)
    ]
    if len(known[0]) == rows.size:
        kept = _below(known, 0, uniform_rows, np.uint64(seed), scales, [np.inf] * len(counts))
        return [_drawn(part, count) for part, count in zip(kept, counts, strict=True)]
    while True:
        task = Task(_Keep(function), (np.uint64(seed), scales, cuts, tuple(arguments)))
        kept = rows.scan([task], description)[0]
        lacking = [len(part.indices) <= count < rows.size for part, count in zip(kept, counts, strict=True)]
        if not any(lacking):
            return [_drawn(part, count) for part, count in zip(kept, counts, strict=True)]
        cuts = [np.inf if is_short else cut for is_short, cut in zip(lacking, cuts, strict=True)]


def places_by_score(scores: np.ndarray, count: int, *, seed: int) -> np.ndarray:
    """Places of ``count`` distinct entries drawn in the same way, sorted."""
    wanted = _wanted(scores, *_scale(scores, len(scores)))
    priority = hashed(np.uint64(seed), np.arange(len(scores))) / wanted
    return np.sort(np.argsort(priority, kind="stable")[:count])


def _scores_of(rows: Rows, batch: Batch, function: RowFunction, arguments: Sequence[Any]) -> list[np.ndarray]:
    """Of rows in memory, by the program that is going to pass over all of them."""
    few = rows.weighted(batch, np.ones(jax.tree.leaves(batch)[0].shape[0]))
    parts = list(few.values(function, *arguments, description="scores of a sample"))
    return [np.concatenate(columns) for columns in zip(*parts, strict=True)]


def _scale(scores: np.ndarray, size: int) -> tuple[float, float]:
    """The uniform share, and the factor of a score, for the N rows of which these are a sample."""
    finite = scores[np.isfinite(scores)]
    mean = float(finite.mean()) if finite.size else 0.0
    if mean <= 0.0:
        return 1.0 / size, SURE
    return UNIFORM_SHARE / size, (1.0 - UNIFORM_SHARE) / (size * mean)


def _wanted(scores: np.ndarray, share: float, slope: float) -> np.ndarray:
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = share + slope * scores
    result: np.ndarray = np.minimum(np.where(np.isfinite(wanted), wanted, SURE), SURE)
    return result


def _cut(wanted: np.ndarray, count: int, size: int) -> float:
    """Well above the threshold to be expected: sum over all rows of min(1, a_n t) = S."""
    if count >= size:
        return np.inf
    drawn = wanted[wanted < SURE]  # rows that are in for sure have no say in the chance of the others
    mean = float(drawn.mean()) if drawn.size else 1.0 / size
    factor, threshold = size / len(wanted), count / (size * max(mean, 1e-300))
    for _ in range(60):
        expected = factor * float(np.minimum(1.0, wanted * threshold).sum())
        if expected >= count:
            break
        threshold *= 1.5
    return RESERVE * threshold


def _drawn(kept: _Kept, count: int) -> RowSample:
    """The rows with the lowest priorities; if all are taken, all were sure."""
    count = min(count, len(kept.indices))
    if count == len(kept.indices):
        return RowSample(kept.indices, np.ones(count), widened(kept.rows))
    order = np.argsort(kept.priority, kind="stable")
    chosen = np.sort(order[:count])
    chances = np.minimum(1.0, kept.wanted[chosen] * kept.priority[order[count]])
    rows = jax.tree.map(lambda array: array[chosen], kept.rows)
    return RowSample(kept.indices[chosen], chances, widened(rows))


def hashed(salt: np.uint64, numbers: np.ndarray) -> np.ndarray:
    """Uniform numbers in (0, 1) that depend on a salt and a row number alone (SplitMix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        bits = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + mixed(np.uint64(salt))
        uniform: np.ndarray = ((mixed(bits) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return uniform


def mixed(bits: Any) -> Any:
    """A 64-bit avalanche."""
    with np.errstate(over="ignore"):
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return bits ^ (bits >> np.uint64(31))
