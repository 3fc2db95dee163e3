"""What a linear predictor is made of: columns of numbers, and factors of which each row has one level.

    eta_n = offset_n + a + sum_j dense_nj b_j + sum_f m_nf e_f[codes_nf]

with m_nf = 1 unless the effect of a level is one of a number, as a slope of each group is.

A factor of L levels would be L columns of zeros and ones. As a column of codes it costs one number for each row, and
sums over rows of a level take the place of products of matrices: a Hessian is then about as dear as without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Batch, Position


class RowRegressors(NamedTuple):
    """Of some rows."""

    dense: Any
    """(B, p)"""
    codes: tuple[Any, ...] = ()
    """The level of each row (B,), whole numbers from 0, for every factor."""
    multipliers: tuple[Any, ...] = ()
    """What the effect of its level is multiplied with (B,), or None, for every factor; empty for nothing at all."""

    @property
    def by_factor(self) -> list[tuple[Any, Any]]:
        """Codes and multipliers."""
        return list(zip(self.codes, self.multipliers or (None,) * len(self.codes), strict=True))


class Coefficients(NamedTuple):
    """What they are multiplied with."""

    shared: Any
    """a (), what all rows share: an intercept, or zero."""
    dense: Any
    """b (p,)"""
    effects: tuple[Any, ...] = ()
    """e_f, (L_f,) for every factor; a level of reference has an effect that is always zero."""


@dataclass(frozen=True)
class Regressors:
    """How a linear predictor follows from rows and from a position; none of both depends on the other.

    ``of_rows(batch)`` gives :class:`RowRegressors`; ``coefficients(position)``, affine in the position, gives
    :class:`Coefficients`.
    """

    of_rows: Callable[[Batch], RowRegressors]
    coefficients: Callable[[Position], Coefficients]

    def predictor(self, position: Position, batch: Batch) -> jax.Array:
        """eta (B,) without an offset."""
        rows, coefficients = self.of_rows(batch), self.coefficients(position)
        predicted: jax.Array = rows.dense @ coefficients.dense + coefficients.shared
        for (codes, multiplier), effects in zip(rows.by_factor, coefficients.effects, strict=True):
            own = jnp.take(effects, codes.astype(jnp.int32), mode="clip")
            predicted = predicted + (own if multiplier is None else own * multiplier)
        return predicted
