"""How much each row of a coreset decides: its weight times the spread of its log-likelihood over draws.

A weight alone says it only where rows are alike. With an offset a row of a thousandth of the exposure of the others may
have a thousand times their weight and decide no more than they do. Over draws of the posterior the log-likelihood of
such a row hardly moves, and w_m sd(l_m) is what its term moves the sum by.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.entry_point import entry_point
from coreset_mcmc.core.trees import thinned
from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.data.rows import Rows
from coreset_mcmc.models.model import Model
from coreset_mcmc.results.coreset import Coreset

DRAWS = 64
"""They know a spread to about a tenth of itself."""


@entry_point
def influence_of(model: Model, positions: Position, rows: Rows, coreset: Coreset) -> np.ndarray:
    """Of each row of the coreset (M,); infinite where some draw is impossible under it."""
    structure = jax.tree.structure(rows.source.schema)
    batch = jax.tree.unflatten(structure, [np.asarray(values) for values in coreset.columns.values()])
    spread = np.asarray(_spread(_Spread(model), batch, thinned(positions, DRAWS)))
    weights = coreset.weights
    return np.where(weights > 0, weights * np.where(np.isnan(spread), np.inf, spread), 0.0)


def effective_number(shares: np.ndarray) -> float:
    """Kish's number of equal parts that would be as concentrated: (sum v)^2 / sum v^2; an infinite part is alone."""
    if np.isinf(shares).any():
        return float(np.isinf(shares).sum())
    squares = float(np.sum(shares**2))
    return float(shares.sum() ** 2 / squares) if squares > 0.0 else 0.0


@dataclass(frozen=True)
class _Spread:
    """The standard deviation over draws of each row's log-likelihood."""

    model: Model

    def __call__(self, batch: Batch, positions: Position) -> jax.Array:
        return jnp.std(jax.vmap(lambda position: self.model.log_likelihood(position, batch))(positions), axis=0)


@partial(jax.jit, static_argnums=0)
def _spread(function: _Spread, batch: Batch, positions: Position) -> jax.Array:
    return function(batch, positions)
