"""Who competes on problems with many parameters, each from a model and data in memory to draws.

Ours by its own choice, the same number of rows without a Gaussian term, Laplace with Pareto-smoothed importance
weights on all rows, Pathfinder, and NumPyro's NUTS on all rows. A run of NUTS from scratch would take hours on some
of them. It is given a draw of the posterior and the standard deviations of all parameters for nothing (from a fit of
ours, outside the clock), tunes its step size, and draws a little; that time is scaled up to :data:`EFFECTIVE_DRAWS`,
each draw counted as an effective one: a bound from below.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

import coreset_mcmc as cm
from coreset_mcmc.core.precision import double_precision
from coreset_mcmc.data import to_array_data
from coreset_mcmc.models.model import Model
from coreset_mcmc.models.user_scale import shown_draws, shown_names
from coreset_mcmc.posterior.full import full_log_density
from coreset_mcmc.posterior.problem import starting_positions
from coreset_mcmc.results.fit import Fit
from coreset_mcmc_benchmarks.draws import Draws, draws_of
from coreset_mcmc_benchmarks.many.problems import Made

EFFECTIVE_DRAWS = 1_000
NUTS_TUNING, NUTS_DRAWS = 15, 15
PATHFINDER_DRAWS, NUM_ELBO_DRAWS = 2_000, 20
LAPLACE_DRAWS = 500
"""Over four chains; each is a pass over all rows."""


class Ended(NamedTuple):
    """What a contestant leaves."""

    draws: Draws | None
    """On the scale of the user; None where there are too few for moments."""
    seconds: float
    fitted: Fit | None = None
    note: str = ""


def _fit(made: Made, seed: int, **options: Any) -> Ended:
    began = time.perf_counter()
    fitted = cm.fit(made.model, made.data, random_seed=seed, progressbar=False, **options)
    return Ended(draws_of(fitted), time.perf_counter() - began, fitted, fitted.settings.get("gaussian_term", ""))


def ours(made: Made, size: int, draws: int, seed: int) -> Ended:
    """The default."""
    return _fit(made, seed, coreset_size=size, draws=draws)


def plain(made: Made, size: int, draws: int, seed: int) -> Ended:
    """A weighted subset and nothing else."""
    return _fit(made, seed, coreset_size=size, draws=draws, method=cm.LeastSquares(gaussian_term=False))


def laplace(made: Made, size: int, draws: int, seed: int) -> Ended:
    """A Gaussian at the mode of all rows, its draws weighted on all rows."""
    del size, draws
    return _fit(made, seed, method=cm.Laplace(), draws=LAPLACE_DRAWS, tune=0)


def _density(made: Made) -> tuple[Model, Any, Any]:
    """The model, all rows, and a flat start."""
    model = made.model
    rows = to_array_data(model.data if made.data is None else made.data)
    start = jax.tree.map(lambda leaf: leaf[0], starting_positions(model, jax.random.key(0), 1))
    return model, rows, start


@double_precision
def pathfinder(made: Made, size: int, draws: int, seed: int) -> Ended:
    """The best Gaussian along a path of L-BFGS (Zhang et al. 2022), not corrected."""
    from blackjax.vi import pathfinder as paths  # noqa: PLC0415 - BlackJAX takes a second to import

    del size, draws
    model, rows, start = _density(made)

    @jax.jit
    def search(key: Any, rows: Any, start: Any) -> Any:
        return paths.approximate(key, lambda at: full_log_density(model, rows, at), start, num_samples=NUM_ELBO_DRAWS)

    began = time.perf_counter()
    search_key, draw_key = jax.random.split(jax.random.key(seed))
    state, _ = search(search_key, rows, start)
    drawn, _ = paths.sample(draw_key, state, PATHFINDER_DRAWS)
    positions = jax.tree.map(lambda leaf: np.asarray(leaf)[:, None], drawn)
    seconds = time.perf_counter() - began
    return Ended(shown_draws(model, positions, shown_names(model, start)), seconds)


@double_precision
def nuts(made: Made, size: int, draws: int, seed: int) -> Ended:
    """NumPyro's NUTS, helped and scaled up as the module says; only its compiled steps are timed."""
    from numpyro.infer.hmc import hmc  # noqa: PLC0415 - needs the extra

    del draws
    helped = _fit(made, seed, coreset_size=size).fitted
    assert helped is not None
    model, rows, start = _density(made)
    flat = np.concatenate(
        [
            np.asarray(leaf).reshape(-1, int(np.prod(np.shape(leaf)[2:])))
            for leaf in jax.tree.leaves(helped.positions())
        ],
        axis=1,
    )
    unravel = ravel_pytree(start)[1]

    def potential(rows: Any) -> Callable[[jax.Array], jax.Array]:
        return lambda at: -full_log_density(model, rows, unravel(at))

    begin, move = hmc(potential_fn_gen=potential, algo="NUTS")
    state = begin(
        jnp.asarray(flat[-1]),
        NUTS_TUNING,
        inverse_mass_matrix=jnp.asarray(flat.var(axis=0)),
        adapt_mass_matrix=False,
        model_args=(rows,),
        rng_key=jax.random.key(seed),
    )
    step = jax.jit(lambda state, rows: move(state, model_args=(rows,)))
    for _ in range(NUTS_TUNING):
        state = jax.block_until_ready(step(state, rows))
    num_steps, began = 0, time.perf_counter()
    for _ in range(NUTS_DRAWS):
        state = jax.block_until_ready(step(state, rows))
        num_steps += int(state.num_steps)
    seconds = (time.perf_counter() - began) * EFFECTIVE_DRAWS / NUTS_DRAWS
    words = f"{num_steps / NUTS_DRAWS:.0f} leapfrog steps a draw; scaled up from {NUTS_DRAWS} draws"
    return Ended(None, seconds, note=words)


CONTESTANTS: dict[str, Callable[[Made, int, int, int], Ended]] = {
    "ours": ours,
    "plain": plain,
    "laplace": laplace,
    "pathfinder": pathfinder,
    "nuts": nuts,
}
