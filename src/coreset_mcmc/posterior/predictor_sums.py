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
    """X'DX, of which what lies above the diagonal does not count, E'X, r'X and D'X, one below the other."""
    direct_hessian: Any
    """F (q, q)."""
    shared: Any = None
    """Sums over rows of E, r and D (q + 2,), for what all rows share; None, and no D'X, if nothing is known of that."""
    levels: tuple[Any, ...] = ()
    """For every factor the sums over rows of each level of DX, E, r and D side by side (L, p + q + 2), each times the
    multiplier of the row if the factor has one."""
    diagonals: tuple[Any, ...] = ()
    """For every factor with multipliers m the sums of D m^2 over rows of each level; None for others, where it is D."""
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
        """Gradient (m,), Hessian (m, m) and derivatives in psi as well (m, q): what rows share, dense, effects."""
        width, num_direct = self.products.shape[1], len(self.direct)
        lower = self.products[:width]
        gradient, hessian = self.products[width + num_direct], jnp.tril(lower) + jnp.tril(lower, -1).T
        mixed = self.products[width : width + num_direct].T
        if self.shared is None:
            return gradient, hessian, mixed
        blocks: dict[tuple[int, int], Any] = {(0, 0): self.shared[-1:, None], (1, 1): hessian}
        blocks |= {(0, 1): self.products[-1:], (1, 0): self.products[-1:].T}
        for place, (sums, diagonal) in enumerate(zip(self.levels, self.diagonals, strict=True), start=2):
            across = {0: sums[:, -1:], 1: sums[:, :width]}
            blocks[place, place] = jnp.diag(sums[:, -1] if diagonal is None else diagonal)
            blocks |= {(place, other): block for other, block in across.items()}
            blocks |= {(other, place): block.T for other, block in across.items()}
        count = 2 + len(self.levels)
        for (one, other), table in zip(combinations(range(2, count), 2), self.tables, strict=True):
            blocks |= {(one, other): table, (other, one): table.T}
        return (
            jnp.concatenate([self.shared[-2:-1], gradient, *(sums[:, -2] for sums in self.levels)]),
            jnp.block([[blocks[row, column] for column in range(count)] for row in range(count)]),
            jnp.concatenate([self.shared[None, :-2], mixed, *(sums[:, width:-2] for sums in self.levels)]),
        )
