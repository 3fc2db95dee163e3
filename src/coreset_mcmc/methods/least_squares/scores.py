"""How much each row matters: two scores at the mode, found in one pass.

*Influence.* Uniform rows waste a coreset where few rows carry the information: of 98 673 flights of which 57 were
cancelled, most say nothing that the others have not said. The influence of a row is the standard deviation of l_n over
draws of the Laplace approximation. Rows that are drawn by it, and weighted by the inverse of their chance, give an
unbiased log-likelihood (the sensitivities of Campbell and Broderick 2019).

*Remainder.* The root mean square of what the expansion of l_n to second order at the mode leaves: rows drawn by it
stand behind the control variates of :mod:`coreset_mcmc.methods.least_squares.taylor`, and make the coreset beside a
Gaussian term, where remainders are all that its rows have to explain.
"""

from __future__ import annotations

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Batch
from coreset_mcmc.methods.least_squares.taylor import EVALUATIONS_PER_REMAINDER, row_remainders
from coreset_mcmc.methods.sums import centred, log_likelihood_matrix
from coreset_mcmc.models.model import Model
from coreset_mcmc.posterior.by_passes import Unravel

MANY_ROWS = 4_000_000
"""From here on fewer draws stand behind a score: chances need not be known well, and passes are dear."""


def num_influence_draws(size: int) -> int:
    """Sixteen know a standard deviation to a fifth, four to two fifths."""
    return 16 if size < MANY_ROWS else 4


def num_remainder_draws(size: int) -> int:
    """Behind the second score; each costs three evaluations."""
    return 8 if size < MANY_ROWS else 4


@dataclass(frozen=True)
class Scores:
    """The scores (B,) of a block that are asked for: of a coreset, then of a sample behind control variates."""

    model: Model
    unravel: Unravel
    of_coreset: bool
    of_sample: bool
    explains_remainders: bool
    """Whether the rows of the coreset stand beside a Gaussian term, so that their remainders are what counts."""

    def __call__(
        self, batch: Batch, weights: jax.Array, draws: jax.Array, centre: jax.Array, displacements: jax.Array
    ) -> tuple[jax.Array, ...]:
        del weights
        scores = []
        if self._wants_influence:
            scores.append(_spread(centred(log_likelihood_matrix(self.model, jax.vmap(self.unravel)(draws), batch))))
        if self._num_remainders:
            remainder = _spread(row_remainders(self.model, self.unravel, centre, batch, displacements))
            scores += [remainder] * self._num_remainders
        return tuple(scores)

    @property
    def is_needed(self) -> bool:
        return self.of_coreset or self.of_sample

    @property
    def _wants_influence(self) -> bool:
        return self.of_coreset and not self.explains_remainders

    @property
    def _num_remainders(self) -> int:
        return int(self.of_sample) + int(self.of_coreset and self.explains_remainders)

    def num_evaluations(self, size: int, num_sampled: int) -> int:
        """What both cost for so many rows, and for those that tell the scale beforehand, unless that is all of them."""
        count = num_influence_draws(size) if self._wants_influence else 0
        if self._num_remainders:
            count += EVALUATIONS_PER_REMAINDER * num_remainder_draws(size)
        return count * (size + num_sampled if num_sampled < size else size)


def _spread(values: jax.Array) -> jax.Array:
    return jnp.sqrt(jnp.mean(values**2, axis=0))
