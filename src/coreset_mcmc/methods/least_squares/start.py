"""The hot start of training: from the mode of the full posterior, with the rows that matter.

Damped Newton steps find the mode of all rows, from that of a sample if there are very many. There the Laplace
approximation gives the chains their starts and their shape; rows of the coreset are chosen by how much they matter
(:mod:`coreset_mcmc.methods.least_squares.influence`), and with many rows control variates are prepared that stand in
for passes over all of them (:mod:`coreset_mcmc.methods.least_squares.taylor`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.data.array import ArrayData
from coreset_mcmc.data.sample import UniformSample
from coreset_mcmc.data.shuffle import without_replacement
from coreset_mcmc.methods.least_squares.influence import NUM_INFLUENCE_DRAWS, influences
from coreset_mcmc.methods.least_squares.row_sampling import RowSample, sample_rows
from coreset_mcmc.methods.least_squares.taylor import (
    NUM_SCORING_DRAWS,
    TaylorSums,
    num_scoring_evaluations,
    remainder_scores,
    taylor_sums,
)
from coreset_mcmc.posterior.newton import NewtonSearch, NewtonSearchState, approximation_at, find_mode
from coreset_mcmc.posterior.problem import Problem

WIDENING = 1.5
"""Standard deviations of the draws of the first window, in those of the Laplace approximation."""

SAMPLE_SEED = 0
"""Chooses the rows on which the search for the mode begins; the mode of all rows does not depend on them."""

SAMPLE_MODE_ROWS = 1_000_000
"""From so many rows on the search for the mode begins on a sample; below, compiling that takes longer than it saves."""

SMALL_DATA = 4
"""Control variates are used from this many times the rows of their sample."""

TOLERANCE = 1e-3
"""Distance to the mode, in posterior standard deviations, at which the search ends."""


class ChosenRows(NamedTuple):
    """Rows of the coreset, and the weights that they start with."""

    indices: jax.Array
    rows: Batch
    weights: jax.Array


class Start(NamedTuple):
    """What is known at the mode."""

    positions: Position
    """Draws of the Laplace approximation, one for each chain."""
    scale: jax.Array
    """A factor (d, d) of its covariance."""
    chosen: ChosenRows | None
    taylor: TaylorSums | None
    num_evaluations: int


@dataclass(frozen=True)
class ModeStart:
    """How training starts at the mode; the arguments are those of :class:`~coreset_mcmc.methods.LeastSquares`."""

    num_chains: int
    max_newton_steps: Any
    subsample_size: int | None
    chooses_rows: bool

    @property
    def search(self) -> NewtonSearch:
        return NewtonSearch(max_iterations=self.max_newton_steps, tolerance=TOLERANCE)

    def samples_rows(self, problem: Problem) -> bool:
        """Whether there are so many rows that control variates pay."""
        return self.subsample_size is not None and problem.data.size >= SMALL_DATA * self.subsample_size

    def begins_on_sample(self, problem: Problem) -> bool:
        """Whether there are so many rows that even the search for the mode begins on few of them."""
        return self.samples_rows(problem) and problem.data.size >= SAMPLE_MODE_ROWS

    def from_sample(self, search: NewtonSearchState, problem: Problem) -> tuple[NewtonSearchState, jax.Array]:
        """A search on all rows that begins at the mode of the sample, or at the given start if it has none."""
        assert self.subsample_size is not None
        chosen = without_replacement(jax.random.key(SAMPLE_SEED), problem.data.size, self.subsample_size)
        sample = UniformSample(ArrayData(problem.data.take(chosen)), problem.data.size)
        found, info = find_mode(replace(problem, data=sample), self.search, search)
        start = jnp.where(found.has_converged, found.position, ravel_pytree(problem.position)[0])
        return self.search.init(problem, start), info.num_evaluations

    def no_taylor(self, problem: Problem) -> TaylorSums:
        """Something of the shape of control variates."""
        flat = ravel_pytree(problem.position)[0]
        rows = problem.data.take(jnp.zeros(self.subsample_size, jnp.int32))
        nothing = jnp.zeros((flat.size, flat.size))
        return TaylorSums(flat, jnp.zeros_like(flat), nothing, rows, jnp.ones(self.subsample_size))

    def at_the_mode(self, key: Key, search: NewtonSearchState, problem: Problem) -> Start:
        """Starts, shape, rows and control variates, once the search has converged."""
        gaussian = approximation_at(search)
        noise_key, row_key = jax.random.split(key)
        num_positions = max(self.num_chains, NUM_SCORING_DRAWS, NUM_INFLUENCE_DRAWS)
        noise = jax.random.normal(noise_key, (num_positions, gaussian.mean.shape[0]))
        positions = jax.vmap(ravel_pytree(problem.position)[1])(gaussian.draws(noise))
        scores, counts, num_evaluations = [], [], 0
        if self.chooses_rows:
            some = jax.tree.map(lambda leaf: leaf[:NUM_INFLUENCE_DRAWS], positions)
            scores.append(influences(problem, some))
            counts.append(problem.coreset_size)
            num_evaluations += NUM_INFLUENCE_DRAWS * problem.data.size
        if self.samples_rows(problem):
            assert self.subsample_size is not None
            scoring = WIDENING * noise[:NUM_SCORING_DRAWS] @ gaussian.scale_factor.T
            scores.append(remainder_scores(problem, gaussian.mean, scoring))
            counts.append(self.subsample_size)
            num_evaluations += num_scoring_evaluations(problem.data.size)
        samples = sample_rows(row_key, scores, counts) if scores else []
        starts = jax.tree.map(lambda leaf: leaf[: self.num_chains], positions)
        return Start(
            positions=starts,
            scale=gaussian.scale_factor,
            chosen=_chosen(problem, samples[0]) if self.chooses_rows else None,
            taylor=taylor_sums(problem, gaussian.mean, search.derivatives, samples[-1])
            if self.samples_rows(problem)
            else None,
            num_evaluations=num_evaluations,
        )


def _chosen(problem: Problem, sample: RowSample) -> ChosenRows:
    indices = sample.indices.astype(problem.indices.dtype)
    return ChosenRows(indices, problem.data.take(indices), 1.0 / sample.probabilities)
