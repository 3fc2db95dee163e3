"""The model that a user sees: parameters by name on their own scale, full log-densities, predictions of responses."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.models.checks import check_support, regression_columns
from coreset_mcmc.models.model import Model
from coreset_mcmc.tables.factors import check_codes
from coreset_mcmc.tables.families import FAMILIES
from coreset_mcmc.tables.scale import UserScale
from coreset_mcmc.tables.standardised import Structure, logarithms, standardised_model


def users_model(structure: Structure, scale: UserScale, response: str, start: dict[str, np.ndarray]) -> Model:
    """The standardised model with names, and with log-densities of the response in its own unit."""
    family = FAMILIES[structure.family]
    inner = standardised_model(structure)
    unit, mean = scale.response_scale, scale.response_mean

    def log_likelihood(position: Position, predicted: jax.Array, batch: Batch) -> jax.Array:
        return family.log_density(logarithms(position), predicted, batch["y"]) - math.log(unit)

    def named(values: Any) -> dict[str, Any]:
        return {response: mean + unit * values if family.has_scale else values}

    def predictive(key: Key, position: Position, batch: Batch) -> dict[str, jax.Array]:
        return named(family.draw(key, logarithms(position), structure.predictor(position, batch)))

    def expected(position: Position, batch: Batch) -> dict[str, jax.Array]:
        return named(family.expected(logarithms(position), structure.predictor(position, batch)))

    def observed(batch: Batch) -> dict[str, Any]:
        return named(np.asarray(batch["y"]))

    vectors = [term for term in scale.terms if term.levels is not None]
    return Model.from_linear_predictor(
        inner.log_prior,
        structure.predictor,
        log_likelihood,
        regressors=structure.regressors,
        initial_position=start,
        change_bound=inner.change_bound,
        check_data=partial(_check_data, structure),
        dims={term.name: (f"{term.name}_dim",) for term in vectors},
        coords={f"{term.name}_dim": list(term.levels or ()) for term in vectors},
        constrain=scale.constrain,
        unconstrain=scale.unconstrain,
        predictive=predictive,
        expected=expected,
        observed=observed,
        compiled=inner,
        identity={
            "structure": inner.identity,
            "names": [term.name for term in scale.terms],
            "means": scale.means,
            "scales": scale.scales,
            "response": [response, mean, unit],
        },
    )


def _check_data(structure: Structure, data: Any) -> None:
    """Columns of the right shape, and responses that the family can have."""
    _, y = regression_columns(data, structure.num_dense)
    if structure.factors:
        check_codes(data, structure.factors)
    require(
        structure.has_offset == ("offset" in data),
        "regression data",
        got=f"keys {sorted(data)}",
        expected='"x", "y" and "offset"' if structure.has_offset else '"x" and "y"',
        fix="Use the data of the regression, or its new_rows(frame).",
    )
    family = FAMILIES[structure.family]
    if family.name == "bernoulli":
        check_support(y, (y == 0) | (y == 1), expected="0 or 1 in every row", fix="Recode the response.")
    elif family.link == "log":
        is_count = (y >= 0) & (y == np.floor(y))
        check_support(y, is_count, expected="whole numbers of at least 0", fix="Pass counts.")
