"""Rows that matter: a coreset drawn by how much each log-likelihood varies over the posterior.

Uniform rows waste a coreset where few rows carry the information: of 98 673 flights of which 57 were cancelled, most
say nothing that the others have not said. With sigma_n the standard deviation of l_n over draws of the Laplace
approximation, row n is included with probability

    pi_n = min(1, c (alpha / N + (1 - alpha) sigma_n / sum sigma)),      sum_n pi_n = M,

and starts with the weight 1 / pi_n, which makes the weighted log-likelihood unbiased (the sensitivities of Campbell and
Broderick 2019, without replacement). The uniform share alpha keeps rows in that matter only where the Gaussian is not.
Rows are chosen by systematic sampling: one uniform number places an even comb on the cumulated probabilities of rows
in random order. (In the order of the data neighbours, which are often alike, would keep each other out: on the paper's
delays, M = 100, that gave a median KL of 0.5 instead of 0.1.)
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from coreset_mcmc.data.shuffle import permuted
from coreset_mcmc.problem import Problem
from coreset_mcmc.types import Batch, Key, Position

NUM_INFLUENCE_DRAWS = 16
"""Draws behind sigma_n; each costs one pass over the rows. Sixteen know a standard deviation to a fifth."""

UNIFORM_SHARE = 0.3
"""alpha."""

NUM_CLIPPINGS = 20
"""Rounds in which rows that are sure to be included leave their excess to the others."""

ALMOST_ONE = 1.0 - 1e-9
"""Below one by more than rounding, so that no tooth of the comb falls on a row twice."""


def influences(problem: Problem, positions: Position) -> jax.Array:
    """sigma (N,) over positions with a leading axis; zero where it is not a number."""

    def of_block(batch: Batch) -> jax.Array:
        values = jax.vmap(lambda position: problem.model.log_likelihood(position, batch))(positions)
        return jnp.std(values, axis=0)

    sigma = problem.data.map_over_rows(of_block)
    return jnp.where(jnp.isfinite(sigma), sigma, 0.0)


def inclusion_probabilities(sigma: jax.Array, count: int) -> jax.Array:
    """pi (N,), which sum to ``count``."""
    size = sigma.shape[0]
    total = jnp.sum(sigma)
    share = jnp.where(total > 0, UNIFORM_SHARE, 1.0)
    wanted = share / size + (1.0 - share) * sigma / jnp.where(total > 0, total, 1.0)

    def clip(_: int, probabilities: jax.Array) -> jax.Array:
        is_sure = probabilities >= ALMOST_ONE
        left = count - jnp.sum(jnp.where(is_sure, 1.0, 0.0))
        others = jnp.sum(jnp.where(is_sure, 0.0, wanted))
        scaled = jnp.where(is_sure, 1.0, wanted * left / jnp.where(others > 0, others, 1.0))
        return jnp.minimum(scaled, 1.0)

    return jnp.minimum(jax.lax.fori_loop(0, NUM_CLIPPINGS, clip, jnp.minimum(count * wanted, 1.0)), ALMOST_ONE)


def influential_rows(key: Key, problem: Problem, positions: Position, count: int) -> tuple[jax.Array, jax.Array]:
    """``count`` distinct row numbers, and the weights that they start with."""
    size = problem.data.size
    order_key, comb_key = jax.random.split(key)
    probabilities = inclusion_probabilities(influences(problem, positions), count)
    order = permuted(order_key, size, jnp.arange(size))
    cumulated = jnp.cumsum(probabilities[order])
    comb = (jnp.arange(count) + jax.random.uniform(comb_key)) / count * cumulated[-1]
    chosen = order[jnp.clip(jnp.searchsorted(cumulated, comb, side="right"), 0, size - 1)]
    return chosen.astype(problem.indices.dtype), 1.0 / probabilities[chosen]
