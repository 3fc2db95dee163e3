"""A regression on standardised columns, as compiled steps see it.

eta = z_0 + x'z (+ offset) with independent priors on z_0, z and the logarithms of sigma, nu and alpha. Nothing here
depends on the table but shapes and the numbers of priors, which are the same for every table unless the user gives
them, so two tables of the same shape share one model and its compiled programs. Factors that are codes are the
exception: how common their levels are is part of the program.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.models.model import ChangeBound, Model
from coreset_mcmc.models.regressors import Coefficients, Regressors, RowRegressors
from coreset_mcmc.tables.factors import CODES, Factor
from coreset_mcmc.tables.families import FAMILIES
from coreset_mcmc.tables.priors import Prior, joint_log_density

INTERCEPT, COEFFICIENTS = "Intercept", "coefficients"
"""Keys of a position; those of positive parameters are "log_" and their name."""


@dataclass(frozen=True)
class Structure:
    """Everything that determines the compiled program."""

    family: str
    intercept: Prior | None
    coefficients: tuple[Prior, ...]
    positive: tuple[tuple[str, Prior], ...]
    has_offset: bool
    factors: tuple[Factor, ...] = ()

    @property
    def num_dense(self) -> int:
        """Columns of x."""
        return len(self.coefficients) - sum(len(factor.scales) for factor in self.factors)

    def of_rows(self, batch: Batch) -> RowRegressors:
        """x, and codes."""
        return RowRegressors(batch["x"], tuple(batch[CODES][:, place] for place in range(len(self.factors))))

    def of_position(self, position: Position) -> Coefficients:
        """What those are multiplied with."""
        z = position[COEFFICIENTS] if self.coefficients else jnp.zeros(0)
        shared = position[INTERCEPT] if self.intercept is not None else jnp.zeros(())
        pieces, start = [], 0
        for factor in self.factors:
            pieces.append(z[start : factor.start])
            start = factor.columns.stop
            shared = shared - factor.centre(z)
        dense = jnp.concatenate([*pieces, z[start:]]) if pieces else z
        return Coefficients(shared, dense, tuple(factor.effects(z) for factor in self.factors))

    @property
    def regressors(self) -> Regressors:
        """Both together."""
        return Regressors(self.of_rows, self.of_position)

    def predictor(self, position: Position, batch: Batch) -> jax.Array:
        """eta of each row."""
        predicted = self.regressors.predictor(position, batch)
        return predicted + batch["offset"] if "offset" in batch else predicted

    def row_length(self, batch: Batch) -> jax.Array:
        """Of the derivative of eta."""
        squares = 1.0 + jnp.sum(batch["x"] ** 2, axis=1)
        for place, factor in enumerate(self.factors):
            squares = squares + jnp.asarray(factor.squared_lengths)[batch[CODES][:, place]]
        return jnp.sqrt(squares)


def logarithms(position: Position) -> dict[str, jax.Array]:
    """Of the positive parameters."""
    return {name.removeprefix("log_"): value for name, value in position.items() if name.startswith("log_")}


def _largest_change(largest: jax.Array, position: Position, proposal: Position) -> jax.Array:
    """softplus has a slope of at most one, so a row changes by no more than its predictor."""
    squares = [jnp.sum((proposal[name] - position[name]) ** 2) for name in position]
    return largest * jnp.sqrt(sum(squares, jnp.zeros(())))


@lru_cache
def standardised_model(structure: Structure) -> Model:
    """The model of standardised rows {"x": (N, p), "y": (N,)}, with "offset": (N,) and "codes": (N, F) if need be."""
    family = FAMILIES[structure.family]

    def log_prior(position: Position) -> jax.Array:
        total = jnp.zeros(())
        if structure.intercept is not None:
            total = total + structure.intercept.log_density(position[INTERCEPT])
        if structure.coefficients:
            total = total + joint_log_density(structure.coefficients, position[COEFFICIENTS])
        for name, prior in structure.positive:
            total = total + prior.log_density(position[f"log_{name}"])
        return total

    def log_likelihood(position: Position, predicted: jax.Array, batch: Batch) -> jax.Array:
        return family.log_density(logarithms(position), predicted, batch["y"])

    return Model.from_linear_predictor(
        log_prior,
        structure.predictor,
        log_likelihood,
        regressors=structure.regressors,
        change_bound=ChangeBound(structure.row_length, _largest_change) if structure.family == "bernoulli" else None,
        identity=asdict(structure),
        name=f"{structure.family} regression",
    )
