"""A regression on standardised columns, as compiled steps see it.

eta = z_0 + x'z (+ effects of groups) (+ offset) with independent priors on z_0, z and the parameters of the family.
Nothing here depends on the table but shapes and the numbers of priors, which are the same for every table unless the
user gives them, so two tables of the same shape share one model and its compiled programs. Factors that are codes are
the exception: how common their levels are is part of the program.

A response that is one of K levels without an order has K - 1 predictors: intercepts, coefficients and effects of groups
have a last axis for them.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp

from coreset_mcmc.core.types import Batch, Position
from coreset_mcmc.models.model import ChangeBound, Model
from coreset_mcmc.models.regressors import Coefficients, Regressors, RowRegressors
from coreset_mcmc.tables.factors import CODES, Factor
from coreset_mcmc.tables.families.family import ORDERED, Family, ascending
from coreset_mcmc.tables.groups import MULTIPLIERS, Group
from coreset_mcmc.tables.priors import Prior, joint_log_density

INTERCEPT, COEFFICIENTS = "Intercept", "coefficients"
"""Keys of a position; those of parameters of the family are "log_", "logit_" or "ordered_" and their name."""
WEIGHT = "weight"
"""The key of what the log-likelihood of a row is multiplied with."""


@dataclass(frozen=True)
class Structure:
    """Everything that determines the compiled program."""

    family: Family
    intercept: Prior | None
    coefficients: tuple[Prior, ...]
    parameters: tuple[tuple[Prior, ...], ...]
    """Of each parameter of the family; several for one that is a vector."""
    extras: tuple[str, ...] = ()
    """Keys of the rows beside "x", "y" and those of factors and groups, such as "offset"."""
    factors: tuple[Factor, ...] = ()
    groups: tuple[Group, ...] = ()

    @property
    def num_dense(self) -> int:
        """Columns of x."""
        return len(self.coefficients) - sum(len(factor.scales) for factor in self.factors)

    @property
    def num_levels(self) -> list[int]:
        """Of each column of codes."""
        of_groups = {group.code: group.num_groups for group in self.groups}
        return [*(factor.num_levels for factor in self.factors), *(of_groups[code] for code in sorted(of_groups))]

    def of_rows(self, batch: Batch) -> RowRegressors:
        """x, codes, and what effects are multiplied with."""
        codes = [batch[CODES][:, place] for place in range(len(self.factors))]
        multipliers: list[Any] = [None] * len(codes)
        for group in self.groups:
            for column in group.columns:
                codes.append(batch[CODES][:, group.code])
                multipliers.append(None if column is None else batch[MULTIPLIERS][:, column])
        return RowRegressors(batch["x"], tuple(codes), tuple(multipliers) if self.groups else ())

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
        effects = [factor.effects(z) for factor in self.factors]
        for group in self.groups:
            effects += group.effects(position)
        return Coefficients(shared, dense, tuple(effects))

    @property
    def regressors(self) -> Regressors | None:
        """Both together; nothing is known to others of several predictors."""
        return self._regressors if self.family.num_predictors == 1 else None

    @property
    def _regressors(self) -> Regressors:
        return Regressors(self.of_rows, self.of_position)

    def predictor(self, position: Position, batch: Batch) -> Any:
        """eta of each row (B,); a tuple of them for several predictors."""
        if self.family.num_predictors == 1:
            return self._predictor(position, batch)
        own = {key: position[key] for key in self._own_keys}
        count = self.family.num_predictors
        return tuple(
            self._predictor({key: leaf[..., number] for key, leaf in own.items()}, batch) for number in range(count)
        )

    def _predictor(self, position: Position, batch: Batch) -> jax.Array:
        predicted = self._regressors.predictor(position, batch)
        return predicted + batch["offset"] if "offset" in batch else predicted

    @property
    def _own_keys(self) -> list[str]:
        keys = [INTERCEPT] if self.intercept is not None else []
        return [*keys, *([COEFFICIENTS] if self.coefficients else []), *(group.name for group in self.groups)]

    def stacked(self, predicted: Any) -> jax.Array:
        """The predictors as the family takes them: (B,), or (B, K - 1)."""
        return jnp.stack(predicted, axis=-1) if isinstance(predicted, tuple) else predicted

    def of_family(self, position: Position) -> dict[str, jax.Array]:
        """The parameters of the family on the scale of chains."""
        return {parameter.name: position[parameter.key] for parameter in self.family.parameters}

    def log_likelihood(self, position: Position, predicted: Any, batch: Batch) -> jax.Array:
        """Of each row, times its weight."""
        found = self.family.log_density(self.of_family(position), self.stacked(predicted), batch)
        return found * batch[WEIGHT] if WEIGHT in batch else found

    def log_prior(self, position: Position) -> jax.Array:
        total = jnp.zeros(())
        if self.intercept is not None:
            total = total + jnp.sum(self.intercept.log_density(position[INTERCEPT]))
        if self.coefficients:
            total = total + self._of_coefficients(position[COEFFICIENTS])
        for parameter, priors in zip(self.family.parameters, self.parameters, strict=True):
            at = position[parameter.key]
            if parameter.support == ORDERED:
                total = total + joint_log_density(priors, ascending(at)) + jnp.sum(at[1:])
            else:
                total = total + priors[0].log_density(at)
        for group in self.groups:
            total = total + group.log_prior(position)
        return total

    def _of_coefficients(self, z: jax.Array) -> jax.Array:
        columns = [z] if z.ndim == 1 else [z[:, place] for place in range(z.shape[1])]
        return sum((joint_log_density(self.coefficients, column) for column in columns), jnp.zeros(()))

    def row_length(self, batch: Batch) -> jax.Array:
        """Of the derivative of eta."""
        squares = 1.0 + jnp.sum(batch["x"] ** 2, axis=1)
        for place, factor in enumerate(self.factors):
            squares = squares + jnp.asarray(factor.squared_lengths)[batch[CODES][:, place]]
        for group in self.groups:
            for column in group.columns:
                squares = squares + (1.0 if column is None else batch[MULTIPLIERS][:, column] ** 2)
        length: jax.Array = jnp.sqrt(squares) * batch.get(WEIGHT, 1.0)
        return length


def _largest_change(largest: jax.Array, position: Position, proposal: Position) -> jax.Array:
    """softplus has a slope of at most one, so a row changes by no more than its predictor."""
    squares = [jnp.sum((proposal[name] - position[name]) ** 2) for name in position]
    return largest * jnp.sqrt(sum(squares, jnp.zeros(())))


@lru_cache
def standardised_model(structure: Structure) -> Model:
    """The model of standardised rows {"x": (N, p), "y": (N,)}, and what else the structure names."""
    is_logistic = structure.family.name == "bernoulli" and structure.family.link == "logit"
    return Model.from_linear_predictor(
        structure.log_prior,
        structure.predictor,
        structure.log_likelihood,
        regressors=structure.regressors,
        change_bound=ChangeBound(structure.row_length, _largest_change) if is_logistic else None,
        log_concave=structure.family.log_concave and not structure.groups,
        identity=asdict(structure),
        name=f"{structure.family.name} regression",
    )
