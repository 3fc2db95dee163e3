"""The model that a user sees: parameters by name on their own scale, full log-densities, predictions of responses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import jax
import numpy as np

from coreset_mcmc.core.errors import require
from coreset_mcmc.core.types import Batch, Key, Position
from coreset_mcmc.models.checks import check_support, regression_columns
from coreset_mcmc.models.model import Model
from coreset_mcmc.tables.factors import check_codes
from coreset_mcmc.tables.groups import GroupTerm
from coreset_mcmc.tables.scale import UserScale
from coreset_mcmc.tables.standardised import INTERCEPT, WEIGHT, Structure, standardised_model


def users_model(
    structure: Structure,
    scale: UserScale,
    response: str,
    start: dict[str, np.ndarray],
    levels: Sequence[str] = (),
    factors: Sequence[tuple[str, ...]] = (),
) -> Model:
    """The standardised model with names, and with log-densities of the response in its own unit.

    ``levels`` are those of the response, ``factors`` the names of the groups of each factor.
    """
    family = structure.family
    inner = standardised_model(structure)
    unit, mean = scale.response_scale, scale.response_mean
    height = math.log(unit) if family.is_continuous else 0.0

    def in_unit(values: Any) -> Any:
        if family.has_scale:
            return mean + unit * values
        return values * unit if family.is_continuous else values

    def log_likelihood(position: Position, predicted: Any, batch: Batch) -> jax.Array:
        found = structure.log_likelihood(position, predicted, batch)
        return found - height * batch.get(WEIGHT, 1.0) if height else found

    def predictor(position: Position, batch: Batch) -> jax.Array:
        return structure.stacked(structure.predictor(position, batch))

    def predictive(key: Key, position: Position, batch: Batch) -> dict[str, jax.Array]:
        drawn = family.draw(key, structure.of_family(position), predictor(position, batch), batch)
        return {response: in_unit(drawn)}

    def expected(position: Position, batch: Batch) -> dict[str, jax.Array]:
        return {response: in_unit(family.expected(structure.of_family(position), predictor(position, batch)))}

    def observed(batch: Batch) -> dict[str, Any]:
        return {response: in_unit(np.asarray(batch["y"]))}

    dims, coords = _dimensions(structure, scale, response, levels, factors)
    return Model.from_linear_predictor(
        inner.log_prior,
        structure.predictor,
        log_likelihood,
        regressors=structure.regressors,
        initial_position=start,
        change_bound=inner.change_bound,
        check_data=_checks(structure),
        dims=dims,
        coords=coords,
        constrain=scale.constrain,
        unconstrain=scale.unconstrain,
        predictive=predictive,
        expected=expected,
        observed=observed,
        log_concave=inner.log_concave,
        compiled=inner,
        identity={
            "structure": inner.identity,
            "names": [term.name for term in scale.terms],
            "means": scale.means,
            "scales": scale.scales,
            "multipliers": scale.multiplier_scales,
            "response": [response, mean, unit],
        },
    )


def _dimensions(
    structure: Structure,
    scale: UserScale,
    response: str,
    levels: Sequence[str],
    factors: Sequence[tuple[str, ...]],
) -> tuple[dict[str, tuple[str, ...]], dict[str, list[str]]]:
    """Named as in Bambi."""
    dims: dict[str, tuple[str, ...]] = {}
    coords: dict[str, list[str]] = {}
    trailing: tuple[str, ...] = ()
    if structure.family.num_predictors > 1:
        trailing = (f"{response}_reduced_dim",)
        coords[trailing[0]] = list(levels[1:])
    if structure.family.is_ordered:
        dims["threshold"], coords["threshold_dim"] = (
            ("threshold_dim",),
            [f"{one}|{other}" for one, other in pairwise(levels)],
        )
    if structure.intercept is not None and trailing:
        dims[INTERCEPT] = trailing
    for term in scale.terms:
        own = (f"{term.name}_dim",) if term.levels is not None else ()
        if own:
            coords[own[0]] = list(term.levels or ())
        if own or trailing:
            dims[term.name] = (*own, *trailing)
    for group in scale.groups:
        dims |= _of_group(group, trailing)
        coords[dims[group.name][0]] = list(factors[group.factor])
        if group.levels is not None:
            coords[f"{group.expression}__expr_dim"] = list(group.levels)
    return dims, coords


def _of_group(group: GroupTerm, trailing: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    own = (f"{group.expression}__expr_dim",) if group.levels is not None else ()
    factor = group.name.partition("|")[2]
    found = {group.name: (f"{factor}__factor_dim", *own, *trailing)}
    return {**found, f"{group.name}_sigma": (*own, *trailing)} if own or trailing else found


def _checks(structure: Structure) -> Any:
    family = structure.family

    def check_data(data: Any) -> None:
        _, y = regression_columns(data, structure.num_dense)
        if structure.factors or structure.groups:
            check_codes(data, structure.num_levels)
        known = {"x", "y", *structure.extras}
        extra = [name for name in ("offset", WEIGHT, "trials", "censored") if (name in data) != (name in known)]
        require(
            not extra,
            "regression data",
            got=f"keys {sorted(data)}",
            expected=f"{', '.join(repr(name) for name in sorted(known))}",
            fix="Use the data of the regression, or its new_rows(frame).",
        )
        outside = family.outside(y, data)
        if outside is not None:
            check_support(y, ~outside, expected=family.expects, fix=family.instead)

    return check_data
