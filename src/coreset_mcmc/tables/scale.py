"""Between the standardised numbers on which chains move and the parameters of the user, both ways."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coreset_mcmc.core.errors import InputError, require
from coreset_mcmc.core.types import Position
from coreset_mcmc.tables.design import Term
from coreset_mcmc.tables.families.family import ORDERED, POSITIVE, Family, Parameter, natural, steps
from coreset_mcmc.tables.groups import GroupTerm
from coreset_mcmc.tables.standardised import COEFFICIENTS, INTERCEPT


@dataclass(frozen=True, eq=False)
class UserScale:
    """beta_j = z_j u / s_j, Intercept = m_y + u z_0 - sum_j m_j beta_j, sigma = s_y exp(log_sigma).

    u is the unit of the predictor: s_y where the response has a scale of its own, one over its mean with an inverse
    link, and 1 otherwise. Thresholds, which stand for an intercept, are shown where all predictors are zero, too.
    """

    family: Family
    terms: tuple[Term, ...]
    means: np.ndarray
    scales: np.ndarray
    response_mean: float
    response_scale: float
    has_intercept: bool
    groups: tuple[GroupTerm, ...]
    multiplier_scales: np.ndarray

    @property
    def predictor_unit(self) -> float:
        """u."""
        if self.family.has_scale:
            return self.response_scale
        return 1.0 / self.response_scale if self.family.divides_by_mean else 1.0

    @property
    def units(self) -> np.ndarray:
        """beta_j / z_j."""
        return self.predictor_unit / self.scales

    def unit_of(self, parameter: Parameter) -> float:
        """Of a parameter of the family."""
        return self.response_scale if parameter.name == "sigma" else 1.0

    def group_units(self, group: GroupTerm) -> np.ndarray:
        """Effects of each column of a term in the user's unit, over standardised ones."""
        scales = [1.0 if column is None else self.multiplier_scales[column] for column in group.columns]
        return self.predictor_unit / np.array(scales)

    def constrain(self, position: Position) -> dict[str, jax.Array]:
        """Parameters by name."""
        values: dict[str, jax.Array] = {}
        coefficients = self._coefficients(position)
        if INTERCEPT in position:
            at_centre = self.response_mean + self.predictor_unit * position[INTERCEPT]
            values[INTERCEPT] = at_centre - jnp.dot(self.means, coefficients)
        for term in self.terms:
            own = coefficients[term.columns]
            values[term.name] = own if term.levels is not None else own[0]
        for parameter in self.family.parameters:
            value = natural(parameter, position[parameter.key]) * self.unit_of(parameter)
            values[parameter.name] = value + jnp.dot(self.means, coefficients) * (parameter.support == ORDERED)
        for group in self.groups:
            effects, log_spread = position[group.name], position[f"log_{group.name}_sigma"]
            units = self.group_units(group).reshape(-1, *[1] * (effects.ndim - 2))
            own, spread = effects * units, jnp.exp(log_spread) * units
            values[group.name] = own if group.levels is not None else own[:, 0]
            values[f"{group.name}_sigma"] = spread if group.levels is not None else spread[0]
        return values

    def _coefficients(self, position: Position) -> Any:
        if COEFFICIENTS not in position:
            return jnp.zeros(len(self.means))
        z = position[COEFFICIENTS]
        return z * self.units.reshape(-1, *[1] * (z.ndim - 1))

    def unconstrain(self, values: Mapping[str, Any], position: Position) -> Position:
        """The position with the user's values put in; an intercept that is not given stays at the centre."""
        shown = {name: np.shape(value) for name, value in self.constrain(position).items()}
        unknown = [name for name in values if name not in shown]
        require(
            not unknown,
            "initvals",
            got=f"unknown names {unknown}",
            expected=f"names among {list(shown)}",
            fix="Leave out what should start where the model does.",
        )
        given = {name: _shaped(name, value, shown[name]) for name, value in values.items()}
        result = dict(position)
        coefficients = np.array(self._coefficients(position))
        for term in self.terms:
            if term.name in given:
                own = given[term.name]
                coefficients[term.columns] = own if term.levels is not None else own[None]
        centre = self.means @ coefficients
        if COEFFICIENTS in position:
            result[COEFFICIENTS] = coefficients / self.units.reshape(-1, *[1] * (coefficients.ndim - 1))
        if INTERCEPT in given:
            result[INTERCEPT] = np.asarray((given[INTERCEPT] + centre - self.response_mean) / self.predictor_unit)
        for parameter in self.family.parameters:
            if parameter.name in given:
                value = given[parameter.name] / self.unit_of(parameter)
                result[parameter.key] = _unbounded(parameter, value, centre, values[parameter.name])
        for group in self.groups:
            self._put_group(group, given, position, result)
        return result

    def _put_group(
        self, group: GroupTerm, given: Mapping[str, np.ndarray], position: Position, result: dict[str, Any]
    ) -> None:
        for name, key in ((group.name, group.name), (f"{group.name}_sigma", f"log_{group.name}_sigma")):
            if name not in given:
                continue
            shape = np.shape(position[key])
            units = self.group_units(group).reshape(-1, *[1] * (np.ndim(position[group.name]) - 2))
            value = given[name].reshape(shape) / units
            if key != name:
                _check(f"initvals {name}", bool(np.all(value > 0)), given[name], "numbers above 0")
                value = np.log(value)
            result[key] = value


def _unbounded(parameter: Parameter, value: np.ndarray, centre: Any, got: Any) -> np.ndarray:
    subject = f"initvals {parameter.name}"
    if parameter.support == POSITIVE:
        _check(subject, bool(value > 0), got, "a number above 0")
        return np.asarray(np.log(value))
    if parameter.support == ORDERED:
        _check(subject, bool(np.all(np.diff(value) > 0)), got, "numbers in ascending order")
        return steps(value - centre)
    _check(subject, bool(0 < value < 1), got, "a number between 0 and 1")
    return np.asarray(np.log(value) - np.log1p(-value))


def _check(subject: str, is_right: bool, got: Any, expected: str) -> None:
    require(is_right, subject, got=got, expected=expected, fix="Pass such values.")


def _shaped(name: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(value, float)
    count = int(np.prod(shape, initial=1))
    if array.size != count:
        raise InputError(
            f"initvals {name}",
            got=f"{array.size} values",
            expected=f"{count}",
            fix="Pass one for each column.",
        )
    return array.reshape(shape)
