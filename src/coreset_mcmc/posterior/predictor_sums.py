"""Sums over rows that depend on the position through a linear predictor, and the derivatives that follow from them.

The predictor is dense columns times coefficients and, for each factor, the effect of a row's level. The sums are those
for coefficients and effects: they stay small where factors have many levels, of which the Hessian is a diagonal. Their
step to the position, of which coefficients and effects are affine functions, is made once, after all rows were added.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from coreset_mcmc.core.types import Position, pytree, static
from coreset_mcmc.models.regressors import Regressors
from coreset_mcmc.posterior.second_order import Derivatives

Unravel = Callable[[jax.Array], Position]
"""From a flat position back to its tree; equal for trees of the same shape."""


@pytree
@dataclass(frozen=True)
class PredictorSums:
    """With X the dense columns, r and D slopes and curvatures in the predictor, E and F derivatives in psi.

    psi are the parameters that the likelihood reads by itself.
    """

    value: Any
    direct_gradient: Any
    """In psi (q,)."""
    products: Any
    """X'DX, of which what lies above the diagonal does not count, E'X and r'X, one below the other (p + q + 1, p)."""
    direct_hessian: Any
    """F (q, q)."""
    levels: tuple[Any, ...] = ()
    """For every factor the sums over rows of each level of DX, E, r and D side by side (L, p + q + 2)."""
    tables: tuple[Any, ...] = ()
    """For every two factors the sums of D over rows of each pair of levels."""
    direct: tuple[int, ...] = static(default=())
    """Which elements of the flat position psi is."""

    def derivatives(self, regressors: Regressors | None, unravel: Unravel, flat: jax.Array) -> Derivatives:
        """With respect to the flat position, of which the dense coefficients are all if there are no regressors."""
        gradient, hessian, mixed = self._of_coefficients()
        if regressors is not None:

            def coefficients(at: jax.Array) -> jax.Array:
                result: jax.Array = ravel_pytree(regressors.coefficients(unravel(at)))[0]
                return result

            transposed: Any = jax.vjp(coefficients, flat)[1]
            pull: Any = jax.vmap(lambda row: transposed(row)[0])
            gradient, hessian, mixed = pull(gradient[None])[0], pull(pull(hessian).T), pull(mixed.T).T
        places = np.array(self.direct, int)
        hessian = hessian.at[:, places].add(mixed).at[places, :].add(mixed.T)
        hessian = hessian.at[np.ix_(places, places)].add(self.direct_hessian)
        return Derivatives(self.value, gradient.at[places].add(self.direct_gradient), 0.5 * (hessian + hessian.T))

    def _of_coefficients(self) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Gradient (m,), Hessian (m, m) and derivatives in psi as well (m, q), coefficients first, then effects."""
        width = self.products.shape[1]
        lower = self.products[:width]
        blocks: dict[tuple[int, int], Any] = {(0, 0): jnp.tril(lower) + jnp.tril(lower, -1).T}
        for place, sums in enumerate(self.levels, start=1):
            across = sums[:, :width]
            blocks |= {(place, place): jnp.diag(sums[:, -1]), (place, 0): across, (0, place): across.T}
        pairs = combinations(range(1, len(self.levels) + 1), 2)
        for (one, other), table in zip(pairs, self.tables, strict=True):
            blocks |= {(one, other): table, (other, one): table.T}
        count = 1 + len(self.levels)
        return (
            jnp.concatenate([self.products[-1], *(sums[:, -2] for sums in self.levels)]),
            jnp.block([[blocks[row, column] for column in range(count)] for row in range(count)]),
            jnp.concatenate([self.products[width:-1].T, *(sums[:, width:-2] for sums in self.levels)]),
        )
