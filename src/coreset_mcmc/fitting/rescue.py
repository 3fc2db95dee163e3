"""When trajectories of fixed length mix badly: NUTS on the coreset, adapted anew, and slices where that fails too.

A target whose scale changes from place to place (Neal's funnel, as in hierarchical models) has no one step size and no
one covariance, and chains crawl where it is narrow. Trees that end where they turn, with small steps, cope better. At
a hard edge, where the density falls to zero from one step to the next, both end outside again and again; slices along
random lines, shaped by the draws there are, stop at the edge and ask for no gradient. Each is compiled only if it is
needed, and of all draws those are kept that mix best.

Mixing is judged within chains: chains that are well mixed around different modes are not helped by another sampler.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.trees import chain_first, flat_draws, num_positions
from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.data.array import ArrayData
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.diagnostics.metrics import bulk_ess
from coreset_mcmc.driver.run import Run, run
from coreset_mcmc.kernels.shape import shrunk_factor
from coreset_mcmc.kernels.slice import HitAndRunSlice
from coreset_mcmc.methods.full_data import NUTS
from coreset_mcmc.methods.sampling import FrozenSampling, SamplingProblem
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.gaussian_term import GaussianTerm
from coreset_mcmc.posterior.problem import Problem, make_problem
from coreset_mcmc.posterior.target import CoresetTarget

FEWEST_DRAWS = 100
"""With fewer draws in a chain nothing can be said about its mixing."""
POOR_SHARE, POOR_SIZE = 0.1, 100
"""A chain mixes badly if fewer than a tenth of its draws, and fewer than a hundred, are effective."""
POOR_DIVERGING = 0.01
NUM_WARMUP = 500
MOST_COORDINATES = 50
"""For slices: each of their steps goes along as many lines."""
TARGET_ACCEPTANCE = 0.95


class Mixing(NamedTuple):
    """How well the worst chain moves along its worst coordinate."""

    ess: float
    num_draws: int
    diverging: float
    """Share of all steps."""

    @property
    def is_poor(self) -> bool:
        if self.num_draws < FEWEST_DRAWS:
            return False
        is_effective = self.ess >= min(POOR_SHARE * self.num_draws, POOR_SIZE)
        return not (is_effective and self.diverging <= POOR_DIVERGING)

    @property
    def diverges(self) -> bool:
        """Whether it is an edge, and not a crawl, that keeps the chains from mixing."""
        return self.is_poor and not self.diverging <= POOR_DIVERGING

    @property
    def rank(self) -> tuple[bool, float]:
        """Larger is better: what is not poor first, then what has more effective draws."""
        return not self.is_poor, self.ess


def mixing_of(history: Any) -> Mixing:
    """From the info of the kept draws, with leading axes (draw, chain)."""
    flat = chain_first(flat_draws(history.position))
    num_draws = flat.shape[1]
    if num_draws < FEWEST_DRAWS:
        return Mixing(float("nan"), num_draws, 0.0)
    sizes = [np.min(np.nan_to_num(bulk_ess(chain[None]), nan=1.0)) for chain in flat]
    return Mixing(float(min(sizes)), num_draws, float(np.mean(history.diverging)))


@lru_cache(maxsize=8)
def _with_weights(model: Model) -> Model:
    """The same model for rows that carry their weights; a row without weight counts for nothing, whatever it says."""

    def log_likelihood(position: Position, batch: Batch) -> jax.Array:
        values = model.log_likelihood(position, batch["rows"])
        result: jax.Array = batch["weights"] * jnp.where(batch["weights"] != 0, values, 0.0)
        return result

    return Model(model.log_prior, log_likelihood, initial_position=model.initial_position, name=model.name)


def _with_term(model: Model, term: GaussianTerm | None) -> Model:
    """The same model with a Gaussian term beside its prior, as a constant of its programs."""
    if term is None:
        return model

    def log_prior(position: Position) -> jax.Array:
        return model.log_prior(position) + term.log_density(position)

    return replace(model, log_prior=log_prior)


def sample_by_trees(
    key: Key, target: CoresetTarget, positions: Position, *, tune: int, draws: int, progressbar: bool
) -> Run:
    """NUTS on the coreset from where the chains are; the run's counts and times include its warm-up."""
    num_chains = num_positions(positions)
    rows = ArrayData({"rows": target.rows, "weights": target.weights})
    every_row = SelectedRows(np.arange(rows.size), np.ones(rows.size))
    problem: Problem = make_problem(_with_term(_with_weights(target.model), target.term), rows, every_row, positions)
    method = NUTS(NUM_WARMUP, TARGET_ACCEPTANCE, num_chains=num_chains, max_mode_iterations=0)
    warm_key, draw_key = jax.random.split(key)
    warmed = run(method, problem, warm_key, num_steps=method.max_steps, progressbar=progressbar, description="NUTS")
    trained = method.finish(warmed.state, problem, kernel=None, num_chains=num_chains)
    sampled = run(
        trained.sampler, trained.problem, draw_key, num_steps=tune + draws, progressbar=progressbar,
        description="sampling",
    )  # fmt: skip
    return replace(
        sampled,
        seconds=warmed.seconds + sampled.seconds,
        compile_seconds=warmed.compile_seconds + sampled.compile_seconds,
        num_evaluations=warmed.num_evaluations + sampled.num_evaluations,
    )


def sample_by_slices(key: Key, problem: SamplingProblem, history: Any, *, num_steps: int, progressbar: bool) -> Run:
    """Hit-and-run on the coreset from where the chains are, as many lines in a step as there are coordinates.

    The directions are shaped by the draws of ``history``, however badly those have mixed.
    """
    drawn = flat_draws(history.position)
    num_coordinates = drawn.shape[2]
    scale = shrunk_factor(jnp.asarray(drawn.reshape(-1, num_coordinates)))
    sampler = FrozenSampling(HitAndRunSlice(scale=scale, num_directions=num_coordinates))
    return run(sampler, problem, key, num_steps=num_steps, progressbar=progressbar, description="slices")
