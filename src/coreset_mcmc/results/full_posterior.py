"""Draws of the full posterior from a trained coreset: by importance weights, or by a second stage on all rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.entry_point import entry_point
from coreset_mcmc.core.errors import require, require_count
from coreset_mcmc.core.randomness import key_of
from coreset_mcmc.core.trees import first_position, flattened, num_positions, thinned
from coreset_mcmc.core.types import Position
from coreset_mcmc.data.blocks import rows_of
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.data.selection import SelectedRows
from coreset_mcmc.driver.cost import Cost
from coreset_mcmc.driver.progress import show_passes
from coreset_mcmc.driver.run import run
from coreset_mcmc.kernels.base import check_continuous
from coreset_mcmc.kernels.shape import shrunk_factor
from coreset_mcmc.kernels.slice import HitAndRunSlice
from coreset_mcmc.methods.full_data.delayed_acceptance import DelayedAcceptance, ExactProblem
from coreset_mcmc.methods.law import Law
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.target import CoresetTarget
from coreset_mcmc.results.ratios import good_shape, log_ratios_to_full, ratios_to_full
from coreset_mcmc.results.tree import statistics_of

LOW_ACCEPTANCE = 0.2


MOST_TRIED = 400
"""Draws among which chains look for a start that all rows allow."""


class FullDraws(NamedTuple):
    """Draws of the full posterior that take the place of those of the coreset."""

    positions: Position
    """Leaves (draw, chain, ...)."""
    statistics: Mapping[str, Any]
    law: Law
    settings: Mapping[str, float]
    """How far they can be trusted."""
    cost: Cost | None = None
    """Of new draws."""


@entry_point
def reweighted(
    model: Model,
    positions: Position,
    data: Any,
    coreset: SelectedRows,
    *,
    draws: int | None,
    seed: int,
    progressbar: bool = False,
) -> FullDraws:
    """See :meth:`coreset_mcmc.Fit.reweight`."""
    rows = rows_of(data, "reweight", infinite=model.infinite)
    kept = thinned(positions, draws)
    count = num_positions(kept)
    require_count("draws", count, at_least=25, fix="Pareto smoothing fits a tail to the largest fifth of them.")
    with show_passes(progressbar):
        ratios = ratios_to_full(model, kept, rows, coreset, description="importance weights")
    _require_possible("reweight", ratios.effective_size > 0.0, count)
    if not ratios.pareto_k < good_shape(count):
        warnings.warn(
            f"The Pareto k-hat of the weights is {ratios.pareto_k:.2f}, above {good_shape(count):.2f}: the coreset "
            "posterior lacks mass where the full one has some, and no weights can make up for that. Use fit.exact(), "
            "or a larger coreset_size.",
            stacklevel=4,
        )
    generator = np.random.default_rng(seed)
    comb = (np.arange(count) + generator.random()) / count
    places = np.minimum(np.searchsorted(np.cumsum(np.exp(ratios.log_weights)), comb), count - 1)
    chosen = generator.permutation(places)
    return FullDraws(
        jax.tree.map(lambda leaf: np.asarray(leaf)[chosen][:, None], kept),
        {},
        Law.REWEIGHTED,
        {"pareto_k": ratios.pareto_k, "effective_draws": ratios.effective_size},
    )


@entry_point
def exact_draws(
    model: Model,
    positions: Position,
    data: Any,
    coreset: SelectedRows,
    *,
    draws: int,
    tune: int,
    chains: int,
    num_inner: int | None,
    seed: int,
    progressbar: bool,
) -> FullDraws:
    """See :meth:`coreset_mcmc.Fit.exact`."""
    for name, value, least in (("draws", draws, 1), ("tune", tune, 0), ("chains", chains, 1)):
        require_count(name, value, at_least=least, fix="Leave it out for the default.")
    rows = rows_of(data, "exact", infinite=model.infinite)
    every = thinned(positions, None)
    check_continuous("of Fit.exact", jax.tree.map(jnp.asarray, first_position(every)), fix="Use Fit.reweight instead.")
    flat = flattened(jax.tree.map(jnp.asarray, every))
    chosen = jax.tree.map(jnp.asarray, rows.take(np.asarray(coreset.indices)))
    term = jax.tree.map(jnp.asarray, coreset.term)
    target = CoresetTarget(chosen, jnp.asarray(coreset.weights, jnp.float64), model, term)
    sampler = DelayedAcceptance(HitAndRunSlice(scale=shrunk_factor(flat)), num_inner or 2 * flat.shape[1])
    with show_passes(progressbar):
        starts, num_tried = _starts(model, positions, rows, coreset, chains)
        made = run(
            sampler,
            ExactProblem(rows, target, starts),
            key_of(seed),
            num_steps=tune + draws,
            progressbar=progressbar,
            description="exact draws",
        )
    if made.num_steps == 0:
        raise KeyboardInterrupt("interrupted before the first draw")
    rate = float(np.mean(made.history.acceptance_rate))
    if not rate >= LOW_ACCEPTANCE:
        warnings.warn(
            f"Only {100 * rate:.0f} % of the proposals from the coreset were accepted on all rows: the draws are right "
            "in the long run, but few are different. Use a larger coreset_size, or a smaller num_inner.",
            stacklevel=4,
        )
    history = jax.tree.map(lambda leaf: leaf[min(tune, len(leaf) - 1) :], made.history)
    rate = float(np.mean(history.acceptance_rate))
    cost = Cost.of(made)
    cost = replace(cost, num_evaluations=cost.num_evaluations + num_tried * (rows.size + len(coreset.indices)))
    return FullDraws(history.position, statistics_of(history), Law.EXACT, {"acceptance_rate": rate}, cost)


def _starts(model: Model, positions: Position, rows: Rows, coreset: SelectedRows, chains: int) -> tuple[Position, int]:
    """Evenly spaced draws that all rows allow, and how many were tried.

    A chain that starts where the full posterior is zero would stay there.
    """
    num_tried = 0
    for count in (chains, max(chains, MOST_TRIED)):
        tried = thinned(positions, count)
        num_tried += num_positions(tried)
        log_ratios = log_ratios_to_full(model, tried, rows, coreset, description="looking for starts")
        possible = np.flatnonzero(np.isfinite(log_ratios))
        if len(possible) == num_positions(tried):
            break
    _require_possible("exact", len(possible) > 0, num_positions(tried))
    spread = np.linspace(0, len(possible) - 1, min(chains, len(possible))).astype(int)
    places = possible[spread][np.arange(chains) % len(spread)]
    return jax.tree.map(lambda leaf: jnp.asarray(leaf[places]), tried), num_tried


def _require_possible(subject: str, condition: bool, count: int) -> None:
    require(
        condition,
        f"fit.{subject}",
        got=f"{count} draws of the coreset posterior, all impossible under rows outside the coreset",
        expected="draws that the full posterior has, too",
        fix="Use a larger coreset_size.",
    )
