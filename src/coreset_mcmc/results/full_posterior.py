"""Draws of the full posterior from a trained coreset: by importance weights, or by a second stage on all rows."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.entry_point import entry_point
from coreset_mcmc.core.errors import require_count
from coreset_mcmc.core.types import Position
from coreset_mcmc.data.blocks import rows_of, thinned
from coreset_mcmc.driver.run import Run, run
from coreset_mcmc.kernels.base import check_continuous
from coreset_mcmc.kernels.shape import shrunk_factor
from coreset_mcmc.kernels.slice import HitAndRunSlice
from coreset_mcmc.methods.full_data.delayed_acceptance import DelayedAcceptance, ExactProblem
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.target import CoresetTarget
from coreset_mcmc.results.ratios import Ratios, good_shape, ratios_to_full

LOW_ACCEPTANCE = 0.2


class Reweighted(NamedTuple):
    """Draws (1, S, ...) of the full posterior, resampled by their weights, and how far the weights can be trusted."""

    positions: Position
    ratios: Ratios


@entry_point
def reweighted(
    model: Model,
    positions: Position,
    data: Any,
    coreset: tuple[np.ndarray, np.ndarray],
    *,
    draws: int | None,
    seed: int,
) -> Reweighted:
    """See :meth:`coreset_mcmc.Fit.reweight`."""
    rows = rows_of(data, "reweight")
    kept = thinned(positions, draws)
    count = jax.tree.leaves(kept)[0].shape[0]
    require_count("draws", count, at_least=25, fix="Pareto smoothing fits a tail to the largest fifth of them.")
    ratios = ratios_to_full(model, kept, rows, *coreset)
    if not ratios.pareto_k < good_shape(count):
        warnings.warn(
            f"The Pareto k-hat of the weights is {ratios.pareto_k:.2f}, above {good_shape(count):.2f}: the coreset "
            "posterior lacks mass where the full one has some, and no weights can make up for that. Use fit.exact(), "
            "or a larger coreset_size.",
            stacklevel=5,
        )
    generator = np.random.default_rng(seed)
    comb = (np.arange(count) + generator.random()) / count
    places = np.minimum(np.searchsorted(np.cumsum(np.exp(ratios.log_weights)), comb), count - 1)
    chosen = generator.permutation(places)
    return Reweighted(jax.tree.map(lambda leaf: np.asarray(leaf)[chosen][None], kept), ratios)


@entry_point
def exact_draws(
    model: Model,
    positions: Position,
    data: Any,
    coreset: tuple[np.ndarray, np.ndarray],
    *,
    draws: int,
    tune: int,
    chains: int,
    num_inner: int | None,
    seed: int,
    progressbar: bool,
) -> Run:
    """See :meth:`coreset_mcmc.Fit.exact`. The history of the run holds tuning draws, too."""
    for name, value, least in (("draws", draws, 1), ("tune", tune, 0), ("chains", chains, 1)):
        require_count(name, value, at_least=least, fix="Leave it out for the default.")
    rows = rows_of(data, "exact")
    every = thinned(positions, None)
    first = jax.tree.map(lambda leaf: jnp.asarray(leaf[0]), every)
    check_continuous("of Fit.exact", first)
    flat = jax.vmap(lambda position: ravel_pytree(position)[0])(jax.tree.map(jnp.asarray, every))
    indices, weights = coreset
    target = CoresetTarget(rows.take(jnp.asarray(indices)), jnp.asarray(weights, jnp.float64), model)
    starts = jax.tree.map(jnp.asarray, thinned(positions, chains))
    available = jax.tree.leaves(starts)[0].shape[0]
    starts = jax.tree.map(lambda leaf: leaf[jnp.arange(chains) % available], starts)
    sampler = DelayedAcceptance(HitAndRunSlice(scale=shrunk_factor(flat)), num_inner or 2 * flat.shape[1])
    made = run(
        sampler,
        ExactProblem(rows, target, starts),
        jax.random.key(seed, impl="threefry2x32"),
        num_steps=tune + draws,
        progressbar=progressbar,
        description="exact draws",
    )
    rate = float(np.mean(made.history.acceptance_rate))
    if rate < LOW_ACCEPTANCE:
        warnings.warn(
            f"Only {100 * rate:.0f} % of the proposals from the coreset were accepted on all rows: the draws are right "
            "in the long run, but few are different. Use a larger coreset_size, or a smaller num_inner.",
            stacklevel=5,
        )
    return made
