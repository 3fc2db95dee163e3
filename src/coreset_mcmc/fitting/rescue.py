"""When trajectories of fixed length mix badly: NUTS on the coreset, adapted anew, and slices where that fails too.

A target whose scale changes from place to place (Neal's funnel, as in hierarchical models) has no one step size and no
one covariance, and chains crawl where it is narrow. Trees that end where they turn, with small steps, cope better. On a
long curved ridge whose ends are narrower than its middle most steps go well, and the few that diverge are those that
would have reached the ends: the draws look mixed and are too close together. So few divergences are many, and where
there are any the steps of the trees are smaller still. At a hard edge, where the density falls to zero from one step to
the next, both end outside again and again; slices along random lines, shaped by the draws there are, stop at the edge
and ask for no gradient. Each is compiled only if it is needed, and of all draws those are kept that mix best.

Mixing is judged within chains: chains that are well mixed around different modes are not helped by another sampler.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.randomness import split
from coreset_mcmc.core.trees import chain_first, flat_draws
from coreset_mcmc.core.types import Key
from coreset_mcmc.diagnostics.metrics import bulk_ess
from coreset_mcmc.driver.run import Run, run
from coreset_mcmc.kernels.shape import shrunk_factor
from coreset_mcmc.kernels.slice import HitAndRunSlice
from coreset_mcmc.methods.sampling import FrozenSampling, SamplingProblem
from coreset_mcmc.methods.tuned_sampling import TunedSampling

FEWEST_DRAWS = 100
"""With fewer draws in a chain nothing can be said about its mixing."""
POOR_SHARE, POOR_SIZE = 0.1, 100
"""A chain mixes badly if fewer than a tenth of its draws, and fewer than a hundred, are effective."""
POOR_DIVERGING = 0.002
"""Of all steps. With one in a hundred the spread along a ridge was seen to be an eighth too small."""
SHAPING_WINDOWS = (60, 120, 240)
"""Steps of the windows whose draws shape the trees, the first half of each left out."""
MOST_COORDINATES = 50
"""For slices: each of their steps goes along as many lines."""
CRAWL_ACCEPTANCE, DIVERGING_ACCEPTANCE = 0.95, 0.99
"""What the steps of the trees are tuned for, where trajectories crawled and where they diverged."""
ENOUGH_TO_SHAPE = 2
"""Draws for each coordinate that a window must have to give trees another shape."""


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


def sample_by_trees(
    key: Key,
    sampler: TunedSampling,
    problem: SamplingProblem,
    *,
    diverges: bool,
    tune: int,
    draws: int,
    progressbar: bool,
) -> Run:
    """NUTS on the coreset from where the chains are, shaped anew in windows that double: all by one program.

    The shape stays as it is where a window has too few draws for so many parameters. ``diverges``: whether trajectories
    did. The run's counts and times include those of the windows.
    """
    trees = replace(sampler, by_trees=True, acceptance_rate=DIVERGING_ACCEPTANCE if diverges else CRAWL_ACCEPTANCE)
    lengths = (*SHAPING_WINDOWS, max(tune, trees.num_tuning) + draws)
    runs: list[Run] = []
    for length, one_key in zip(lengths, split(key, len(lengths)), strict=True):
        made = run(
            trees, problem, one_key, num_steps=length, progressbar=progressbar,
            description="sampling" if length == lengths[-1] else "NUTS",
        )  # fmt: skip
        runs.append(made)
        if made.is_interrupted:
            break
        kept = flat_draws(made.history.position)[length // 2 :]
        kept = kept.reshape(-1, kept.shape[2])
        if len(kept) >= ENOUGH_TO_SHAPE * kept.shape[1]:
            trees = replace(trees, scale=shrunk_factor(jnp.asarray(kept)))
        problem = replace(problem, initial_positions=made.state.chains.position)
    return joined(runs, runs[-1])


def joined(runs: Sequence[Run], kept: Run) -> Run:
    """The run whose draws are kept, with what all of them have taken."""
    return replace(
        kept,
        seconds=sum(one.seconds for one in runs),
        compile_seconds=sum(one.compile_seconds for one in runs),
        num_evaluations=sum(one.num_evaluations for one in runs),
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
